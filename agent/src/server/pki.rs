//! Keys and certificates: an authority made once for a node, a server's certificate and the administrator's client certificate
//! at each start, and kubeconfigs. All of it is in the node's directory, for its owner alone.

use crate::beneath;
use crate::fault::{Attempt, Fault};
use crate::volumes::write_whole;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use time::{Duration, OffsetDateTime};

/// A node's authority.
pub struct Authority {
    dir: PathBuf,
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
}

/// Somebody's certificate and key, in PEM.
pub struct Credentials {
    certificate: String,
    key: String,
}

/// HTTP/2, as a TLS handshake names it.
pub const HTTP2: &[u8] = b"h2";

fn wrong(error: impl std::fmt::Display) -> Fault {
    Fault::refused(format!("certificates: {error}"))
}

impl Authority {
    /// The authority of a directory; made if it isn't there.
    pub fn open(dir: &Path) -> Result<Authority, Fault> {
        fs::create_dir_all(dir).attempt(|| format!("make {}", dir.display()))?;
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700))
            .attempt(|| format!("close {} to others", dir.display()))?;
        let (key_path, certificate_path) = (dir.join("ca.key"), dir.join("ca.crt"));
        let opened = beneath::open_root(dir)?;
        // The certificate is written last: with it, the key is there.
        if !certificate_path.exists() {
            let key = KeyPair::generate().map_err(wrong)?;
            let certificate = authority_params()?.self_signed(&key).map_err(wrong)?;
            write_whole(&opened, "ca.key", key.serialize_pem().as_bytes())?;
            write_whole(&opened, "ca.crt", certificate.pem().as_bytes())?;
        }
        let read = |path: &Path| fs::read_to_string(path).attempt(|| format!("read {}", path.display()));
        let key = KeyPair::from_pem(&read(&key_path)?).map_err(wrong)?;
        let pem = read(&certificate_path)?;
        let certificate = der(&pem)?;
        let issuer = Issuer::new(authority_params()?, key);
        Ok(Authority { dir: dir.to_owned(), issuer, certificate, pem })
    }

    /// A client's credentials.
    pub fn client(&self, user: &str, groups: &[String]) -> Result<Credentials, Fault> {
        let mut params = params(user, 365)?;
        for group in groups {
            params.distinguished_name.push(DnType::OrganizationName, group.as_str());
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(&params)
    }

    fn issue(&self, params: &CertificateParams) -> Result<Credentials, Fault> {
        let key = KeyPair::generate().map_err(wrong)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(wrong)?;
        Ok(Credentials { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    /// What the server speaks TLS with: clients may show a certificate of this authority, and no other.
    pub fn server(&self, node_name: &str) -> Result<rustls::ServerConfig, Fault> {
        let names = ["localhost", "kubernetes", "kubernetes.default", node_name, "127.0.0.1", "::1"];
        let mut params = CertificateParams::new(names.map(str::to_owned).to_vec()).map_err(wrong)?;
        dated(&mut params, 365);
        params.distinguished_name.push(DnType::CommonName, "nodefold");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let own = self.issue(&params)?;
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).map_err(wrong)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .allow_unauthenticated()
            .build()
            .map_err(wrong)?;
        let key = KeyPair::from_pem(&own.key).map_err(wrong)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(wrong)?
            .with_client_cert_verifier(clients)
            .with_single_cert(vec![der(&own.certificate)?, self.certificate.clone()], key)
            .map_err(wrong)?;
        config.alpn_protocols = vec![HTTP2.to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }

    /// A kubeconfig for these credentials, as JSON: kubectl reads it as the YAML that it is.
    pub fn kubeconfig(&self, server: &str, user: &str, credentials: &Credentials) -> Value {
        let data = |text: &str| STANDARD.encode(text);
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "nodefold", "cluster":
                {"server": server, "certificate-authority-data": data(&self.pem)}}],
            "users": [{"name": user, "user": {
                "client-certificate-data": data(&credentials.certificate),
                "client-key-data": data(&credentials.key)}}],
            "contexts": [{"name": "nodefold", "context":
                {"cluster": "nodefold", "user": user, "namespace": "default"}}],
            "current-context": "nodefold",
        })
    }

    /// Where tokens are: `token,user,uid,"group1,group2"`, a line each, as Kubernetes' own token file.
    pub fn tokens(&self) -> PathBuf {
        self.dir.join("tokens.csv")
    }
}

fn authority_params() -> Result<CertificateParams, Fault> {
    let mut params = params("nodefold-ca", 3650)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

fn params(name: &str, days: i64) -> Result<CertificateParams, Fault> {
    let mut params = CertificateParams::new(Vec::new()).map_err(wrong)?;
    dated(&mut params, days);
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}

/// From an hour ago, for clocks that are not quite right.
fn dated(params: &mut CertificateParams, days: i64) {
    let seconds = i64::try_from(crate::clock::now().0 / 1_000_000_000).unwrap_or(0);
    let now = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    params.not_before = now - Duration::hours(1);
    params.not_after = now + Duration::days(days);
}

fn der(pem: &str) -> Result<CertificateDer<'static>, Fault> {
    use rustls::pki_types::pem::PemObject;
    CertificateDer::from_pem_slice(pem.as_bytes()).map_err(wrong)
}
