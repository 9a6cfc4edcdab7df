//! Requests from inside a pod's network to what listens there, as a kubelet's probes and hooks make them: HTTP, HTTPS (whose
//! certificates nobody checks: a probe asks whether it answers, not who it is) and gRPC's health protocol.

use crate::fault::{Attempt, Fault};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// A page to get.
pub struct Page<'a> {
    /// From where.
    pub address: SocketAddr,
    /// By HTTPS.
    pub tls: bool,
    /// Its path.
    pub path: &'a str,
    /// Further header lines.
    pub headers: &'a [(String, String)],
}

/// Connects.
pub fn connect(address: SocketAddr, timeout: Duration) -> Result<TcpStream, Fault> {
    TcpStream::connect_timeout(&address, timeout).attempt(|| format!("dial tcp {address}"))
}

/// Gets a page; any answer from 200 to 399 is well.
pub fn get(page: &Page<'_>, timeout: Duration) -> Result<(), Fault> {
    let scheme = if page.tls { "https" } else { "http" };
    let asked = || format!("Get \"{scheme}://{}{}\"", page.address, page.path);
    let stream = TcpStream::connect_timeout(&page.address, timeout).attempt(asked)?;
    stream.set_read_timeout(Some(timeout)).and(stream.set_write_timeout(Some(timeout))).attempt(asked)?;
    if !page.tls {
        return exchange(stream, page, asked);
    }
    let name = ServerName::IpAddress(page.address.ip().into());
    let wrong = |error: rustls::Error| Fault::refused(format!("{}: {error}", asked()));
    let client = ClientConnection::new(Arc::new(trusting().map_err(wrong)?), name).map_err(wrong)?;
    exchange(StreamOwned::new(client, stream), page, asked)
}

fn exchange(mut stream: impl Read + Write, page: &Page<'_>, asked: impl Fn() -> String) -> Result<(), Fault> {
    let mut request = format!("GET {} HTTP/1.1\r\nConnection: close\r\n", page.path);
    let has = |wanted: &str| page.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
    if !has("host") {
        request.push_str(&format!("Host: {}\r\n", page.address));
    }
    if !has("user-agent") {
        request.push_str("User-Agent: kube-probe/1.35\r\n");
    }
    for (name, value) in page.headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).and_then(|()| stream.flush()).attempt(&asked)?;
    // The status line is all that counts; a server that sends more is not waited for.
    let mut answer = Vec::new();
    let mut buffer = [0; 512];
    while !answer.contains(&b'\n') && answer.len() < 8192 {
        match stream.read(&mut buffer).attempt(&asked)? {
            0 => break,
            got => answer.extend_from_slice(&buffer[..got]),
        }
    }
    let line = String::from_utf8_lossy(&answer);
    let code = line.split_whitespace().nth(1).and_then(|code| code.parse::<u16>().ok());
    match code {
        Some(200..400) => Ok(()),
        Some(code) => Err(Fault::refused(format!("HTTP probe failed with statuscode: {code}"))),
        None => Err(Fault::refused(format!("{}: malformed HTTP response", asked()))),
    }
}

/// A client that takes any certificate.
fn trusting() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let config = config.dangerous().with_custom_certificate_verifier(Arc::new(Trusting(provider)));
    Ok(config.with_no_client_auth())
}

#[derive(Debug)]
struct Trusting(Arc<CryptoProvider>);

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Asks `grpc.health.v1.Health/Check` about a service; only SERVING is well.
pub fn health(address: SocketAddr, service: &str, timeout: Duration) -> Result<(), Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.attempt(|| "start what speaks gRPC")?;
    let answered = runtime.block_on(async {
        tokio::time::timeout(timeout, check(address, service))
            .await
            .unwrap_or_else(|_| Err(format!("timeout: health rpc did not complete within {timeout:?}")))
    });
    answered.map_err(Fault::refused)
}

async fn check(address: SocketAddr, service: &str) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("error: health rpc probe failed: {error}");
    let stream = tokio::net::TcpStream::connect(address)
        .await
        .map_err(|error| format!("timeout: failed to connect service \"{address}\": {error}"))?;
    let (client, connection) = h2::client::handshake(stream).await.map_err(|error| failed(&error))?;
    let connection = tokio::spawn(connection);
    let request = http::Request::post(format!("http://{address}/grpc.health.v1.Health/Check"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("user-agent", "kube-probe/1.35")
        .body(())
        .map_err(|error| failed(&error))?;
    let mut client = client.ready().await.map_err(|error| failed(&error))?;
    let (response, mut stream) = client.send_request(request, false).map_err(|error| failed(&error))?;
    stream.send_data(question(service).into(), true).map_err(|error| failed(&error))?;
    let response = response.await.map_err(|error| failed(&error))?;
    let (head, mut body) = response.into_parts();
    let mut answer = Vec::new();
    while let Some(part) = body.data().await {
        let part = part.map_err(|error| failed(&error))?;
        body.flow_control().release_capacity(part.len()).map_err(|error| failed(&error))?;
        answer.extend_from_slice(&part);
        if answer.len() > 4096 {
            return Err(failed(&"the answer is too long"));
        }
    }
    let trailers = body.trailers().await.map_err(|error| failed(&error))?.unwrap_or_default();
    connection.abort();
    // With nothing to say, the status comes with the head.
    let status = trailers.get("grpc-status").or(head.headers.get("grpc-status"));
    let status = status.and_then(|status| status.to_str().ok()?.parse::<u32>().ok());
    match (head.status.is_success(), status) {
        (true, Some(0)) => match serving_status(&answer) {
            Some(1) => Ok(()),
            Some(2) => Err("service unhealthy (responded with \"NOT_SERVING\")".into()),
            Some(3) => Err("service unhealthy (responded with \"SERVICE_UNKNOWN\")".into()),
            Some(_) => Err("service unhealthy (responded with \"UNKNOWN\")".into()),
            None => Err(failed(&"the answer is no HealthCheckResponse")),
        },
        (true, Some(12)) => {
            Err(failed(&"this server does not implement the grpc health protocol (grpc.health.v1.Health)"))
        }
        (true, Some(code)) => Err(failed(&format!("rpc error: code = {code}"))),
        (_, _) => Err(failed(&format!("the server answered {} and no gRPC status", head.status))),
    }
}

/// A `HealthCheckRequest` in a gRPC frame: not compressed, its length, field 1.
fn question(service: &str) -> Vec<u8> {
    let mut message = Vec::new();
    if !service.is_empty() {
        message.push(0x0a);
        let mut length = service.len();
        while length >= 0x80 {
            message.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        message.push(length as u8);
        message.extend_from_slice(service.as_bytes());
    }
    let mut frame = vec![0];
    frame.extend_from_slice(&u32::try_from(message.len()).unwrap_or(0).to_be_bytes());
    frame.extend(message);
    frame
}

/// Field 1 of a `HealthCheckResponse` in a gRPC frame; an empty one says 0.
fn serving_status(frame: &[u8]) -> Option<u8> {
    let (head, message) = frame.split_at_checked(5)?;
    let length = u32::from_be_bytes(head[1..5].try_into().ok()?);
    match (head[0], length, message) {
        (0, 0, []) => Some(0),
        (0, 2, [0x08, status]) => Some(*status),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::PrivateKeyDer;
    use rustls::pki_types::pem::PemObject;
    use rustls::{ServerConfig, ServerConnection};
    use std::net::TcpListener;

    const LIMIT: Duration = Duration::from_secs(10);
    // For nobody: a key of this test, and a certificate that ended long ago, of another name.
    const KEY: &[u8] = b"-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgZMPgdIRV8P+E6Dy5
n4uCM+BBiRF9HvJqtvpVaZgViEShRANCAASFApl1c6SnDyLyNLMLVCkxiZ2/beVC
jBkvGJC69cAD0IGjWlTwkof276DdcP0+nBBDzFpvYMMyiG7G5oddIIx1
-----END PRIVATE KEY-----
";
    const CERTIFICATE: &[u8] = b"-----BEGIN CERTIFICATE-----
MIIBczCCARmgAwIBAgIUAdbh8M4RwvHgOw840p2IY2fPKfswCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAeFw0yNjEyMDEwNTUxMTFaFw0yNjEyMDIwNTUxMTFa
MA8xDTALBgNVBAMMBHRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASFApl1
c6SnDyLyNLMLVCkxiZ2/beVCjBkvGJC69cAD0IGjWlTwkof276DdcP0+nBBDzFpv
YMMyiG7G5oddIIx1o1MwUTAdBgNVHQ4EFgQUOLcfHYgOxBAz7GLDeSbdPo6OfBgw
HwYDVR0jBBgwFoAUOLcfHYgOxBAz7GLDeSbdPo6OfBgwDwYDVR0TAQH/BAUwAwEB
/zAKBggqhkjOPQQDAgNIADBFAiEA+LfV9fnAFn7zqXBlqQX0BOgz/n1hVyCXYY00
0z2VUNsCIBHaRO9xYUMNxwLvJ7w8gwI0mE/z61tYcJxq675qJwB9
-----END CERTIFICATE-----
";

    fn page(address: SocketAddr) -> Result<(), Fault> {
        get(&Page { address, tls: true, path: "/healthz", headers: &[] }, LIMIT)
    }

    #[test]
    fn an_answer_over_tls_counts_whoever_gives_it() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let server = std::thread::spawn(move || {
            let certificate = CertificateDer::from_pem_slice(CERTIFICATE).expect("a certificate");
            let key = PrivateKeyDer::from_pem_slice(KEY).expect("a key");
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let config = ServerConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .and_then(|config| config.with_no_client_auth().with_single_cert(vec![certificate], key))
                .expect("a server");
            let config = Arc::new(config);
            for answer in ["204 No Content", "503 Service Unavailable"] {
                let (stream, _) = listener.accept().expect("a client");
                let connection = ServerConnection::new(config.clone()).expect("a connection");
                let mut stream = StreamOwned::new(connection, stream);
                let mut request = [0; 1024];
                let got = stream.read(&mut request).expect("a request");
                assert!(request[..got].starts_with(b"GET /healthz HTTP/1.1\r\n"));
                write!(stream, "HTTP/1.1 {answer}\r\n\r\n").expect("an answer");
                stream.flush().expect("an answer");
            }
        });
        page(address).expect("204 is well");
        let told = page(address).expect_err("503 is not").message;
        assert_eq!(told, "HTTP probe failed with statuscode: 503");
        server.join().expect("the server ends");
        assert!(page(address).is_err(), "nobody listens");
    }

    #[test]
    fn only_serving_is_healthy() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        // What it answers: a message's field, and a status.
        let answers: [(&[u8], &str); 4] = [
            (&[0, 0, 0, 0, 2, 8, 1], "0"),
            (&[0, 0, 0, 0, 2, 8, 2], "0"),
            (&[0, 0, 0, 0, 0], "0"),
            (&[], "12"),
        ];
        let server = std::thread::spawn(move || {
            runtime.block_on(async {
                listener.set_nonblocking(true).expect("not blocking");
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                for (message, status) in answers {
                    let (stream, _) = listener.accept().await.expect("a client");
                    let mut connection = h2::server::handshake(stream).await.expect("a handshake");
                    let (request, mut respond) =
                        connection.accept().await.expect("a request").expect("a request");
                    assert_eq!(request.uri().path(), "/grpc.health.v1.Health/Check");
                    let mut body = request.into_body();
                    let asked = body.data();
                    tokio::pin!(asked);
                    // The connection moves only while it is asked for more.
                    let asked = tokio::select! {
                        asked = &mut asked => asked,
                        _ = connection.accept() => None,
                    };
                    assert_eq!(asked.expect("a message").expect("a message"), &b"\0\0\0\0\x05\n\x03web"[..]);
                    let mut stream =
                        respond.send_response(http::Response::new(()), false).expect("an answer");
                    stream.send_data(message.to_vec().into(), false).expect("an answer");
                    let mut trailers = http::HeaderMap::new();
                    trailers.insert("grpc-status", status.parse().expect("a header"));
                    stream.send_trailers(trailers).expect("an answer");
                    while connection.accept().await.is_some() {}
                }
            });
        });
        let told: Vec<String> = answers
            .iter()
            .map(|_| health(address, "web", LIMIT).map_or_else(|fault| fault.message, |()| "well".into()))
            .collect();
        assert_eq!(told[0], "well");
        assert!(told[1].contains("NOT_SERVING") && told[2].contains("UNKNOWN"), "{told:?}");
        assert!(told[3].contains("does not implement the grpc health protocol"), "{told:?}");
        server.join().expect("the server ends");
    }
}
