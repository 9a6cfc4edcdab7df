//! Calls of admission webhooks: a question over TLS to the URL that its configuration names, and what comes back. Each call is a
//! connection of its own, with a time limit over all of it. What an answer means is `Api`'s.

use super::hub::Hub;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use nodefold_api::admission::{Endpoint, WebhookAnswer, WebhookCall};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// No answer is longer: as long as a request may be.
const LONGEST_ANSWER: usize = 3 << 20;
/// The longest that a configuration may ask to wait for.
const LONGEST_WAIT_SECONDS: u64 = 30;

/// Asks a webhook. Never fails: that it couldn't be asked is an answer, too.
pub async fn ask(call: &WebhookCall) -> WebhookAnswer {
    let endpoint = match call.endpoint() {
        Ok(endpoint) => endpoint,
        Err(unreachable) => return call.failed(unreachable),
    };
    let uid = match Hub::new_uid() {
        Ok(uid) => uid.to_string(),
        Err(fault) => return call.failed(fault),
    };
    let seconds = call.timeout_seconds.clamp(1, LONGEST_WAIT_SECONDS);
    let url = format!("{}?timeout={seconds}s", endpoint.url);
    let question = call.review_as(&uid).to_string();
    let failed = |why: &dyn Display| call.failed(format!("failed to call webhook: Post {url:?}: {why}"));
    let limit = Duration::from_secs(seconds);
    match tokio::time::timeout(limit, post(&endpoint, &url, question)).await {
        Err(_) => failed(&"context deadline exceeded"),
        Ok(Err(why)) => failed(&why),
        Ok(Ok(bytes)) => match serde_json::from_slice::<Value>(&bytes) {
            Ok(review) => call.read(&uid, &review),
            Err(wrong) => failed(&format!("the answer is no JSON: {wrong}")),
        },
    }
}

async fn post(endpoint: &Endpoint, url: &str, question: String) -> Result<Bytes, String> {
    let uri: Uri = url.parse().map_err(text)?;
    let (host, port) = (uri.host().unwrap_or_default(), uri.port_u16().unwrap_or(443));
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let name = ServerName::try_from(host.clone()).map_err(text)?;
    let connector = TlsConnector::from(Arc::new(settings(endpoint)?));
    let stream = TcpStream::connect((host.as_str(), port)).await.map_err(text)?;
    let stream = connector.connect(name, stream).await.map_err(text)?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(text)?;
    let driven = tokio::spawn(connection);
    let authority = uri.authority().map_or_else(|| host.clone(), ToString::to_string);
    let request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header("host", authority)
        .header("content-type", "application/json")
        .header("accept", "application/json")
        .header("user-agent", concat!("nodefold/", env!("CARGO_PKG_VERSION")))
        .body(Full::new(Bytes::from(question)))
        .map_err(text)?;
    let answer = sender.send_request(request).await.map_err(text)?;
    let code = answer.status();
    let body = Limited::new(answer.into_body(), LONGEST_ANSWER).collect().await;
    driven.abort();
    if !code.is_success() {
        return Err(format!("the server responded with {code}"));
    }
    body.map(|whole| whole.to_bytes()).map_err(|wrong| format!("the answer can't be read: {wrong}"))
}

fn text(error: impl Display) -> String {
    error.to_string()
}

/// Whom to trust: the authorities that the configuration names, else those of this host.
fn settings(endpoint: &Endpoint) -> Result<rustls::ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    match &endpoint.ca_bundle {
        Some(bundle) => {
            for certificate in CertificateDer::pem_slice_iter(bundle) {
                let certificate = certificate.map_err(|wrong| format!("clientConfig.caBundle: {wrong}"))?;
                roots.add(certificate).map_err(|wrong| format!("clientConfig.caBundle: {wrong}"))?;
            }
            if roots.is_empty() {
                return Err("clientConfig.caBundle holds no certificate".to_owned());
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                return Err("this host trusts no authority: give clientConfig.caBundle".to_owned());
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().map_err(text)?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
