//! The built-in issuer: a key of the node's own signs tokens as a Kubernetes API server would write them (RFC 7519, ES256).
//! Whoever is to believe them reads the node's public key, which lies beside it as a JWK set.

use super::{Issuer, TokenRequest};
use crate::beneath;
use crate::fault::{Attempt, Fault};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nodefold_core::ids::PodUid;
use nodefold_core::time::Time;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Who the tokens say that issued them.
pub const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// The API takes no token of a shorter life.
const SHORTEST_LIFE: u64 = 600;

/// A key in a file. It is made when the first token is asked for.
pub struct LocalKey {
    directory: PathBuf,
    key: Mutex<Option<EcdsaKeyPair>>,
}

impl LocalKey {
    /// The key of a node: `service-account.key` in its directory.
    pub fn at(directory: impl Into<PathBuf>) -> LocalKey {
        LocalKey { directory: directory.into(), key: Mutex::default() }
    }

    fn open(&self) -> Result<EcdsaKeyPair, Fault> {
        let path = self.directory.join("service-account.key");
        let wrong = |what: &str| Fault::refused(format!("{}: {what}", path.display()));
        let random = SystemRandom::new();
        let document = match fs::read(&path) {
            Ok(document) => document,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
                    .map_err(|_| wrong("no key could be made"))?;
                let dir = beneath::open_root(&self.directory)?;
                crate::volumes::write_whole(&dir, "service-account.key", made.as_ref())?;
                made.as_ref().to_vec()
            }
            Err(error) => return Err(error).attempt(|| format!("read {}", path.display())),
        };
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &document, &random)
            .map_err(|error| wrong(&format!("is no P-256 key in PKCS#8: {error}")))?;
        let keys = json!({"keys": [public(&key)]}).to_string();
        let dir = beneath::open_root(&self.directory)?;
        crate::volumes::write_whole(&dir, "service-account.jwks.json", keys.as_bytes())?;
        Ok(key)
    }
}

impl Issuer for LocalKey {
    fn issue(&self, request: &TokenRequest, now: Time) -> Result<String, Fault> {
        if request.seconds < SHORTEST_LIFE {
            return Err(Fault::refused(format!(
                "may not specify a duration less than 10 minutes ({}s)",
                request.seconds
            )));
        }
        let mut key = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        if key.is_none() {
            *key = Some(self.open()?);
        }
        let Some(key) = key.as_ref() else { return Err(Fault::transient("there is no key")) };
        let head = json!({"alg": "ES256", "kid": key_id(key), "typ": "JWT"});
        let random = SystemRandom::new();
        let mut id = [0; 16];
        random.fill(&mut id).map_err(|_| Fault::transient("no random numbers for a token's id"))?;
        let body = claims(request, now, PodUid(u128::from_be_bytes(id)));
        let signed = format!("{}.{}", encoded(head.to_string()), encoded(body.to_string()));
        let signature = key
            .sign(&random, signed.as_bytes())
            .map_err(|_| Fault::transient("the token could not be signed"))?;
        Ok(format!("{signed}.{}", encoded(signature.as_ref())))
    }
}

/// What a token says. A node by itself has no ServiceAccount objects: their uid follows from the name.
fn claims(request: &TokenRequest, now: Time, id: PodUid) -> Value {
    let issued = now.0 / 1_000_000_000;
    let TokenRequest { namespace, service_account, audience, seconds, pod, pod_name, node_name } = request;
    let account = nodefold_core::codec::hash(&(namespace.as_str(), service_account.as_str())).0;
    json!({
        "aud": [audience.as_deref().unwrap_or(ISSUER)],
        "exp": issued + seconds,
        "iat": issued,
        "nbf": issued,
        "iss": ISSUER,
        "jti": id.to_string(),
        "sub": format!("system:serviceaccount:{namespace}:{service_account}"),
        "kubernetes.io": {
            "namespace": namespace,
            "node": {"name": node_name},
            "pod": {"name": pod_name, "uid": pod.to_string()},
            "serviceaccount": {"name": service_account, "uid": PodUid(account).to_string()},
        },
    })
}

fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The key's id: its RFC 7638 thumbprint.
fn key_id(key: &EcdsaKeyPair) -> String {
    let (x, y) = point(key);
    let text = format!("{{\"crv\":\"P-256\",\"kty\":\"EC\",\"x\":\"{x}\",\"y\":\"{y}\"}}");
    encoded(digest(&SHA256, text.as_bytes()))
}

/// The public key as a JWK.
fn public(key: &EcdsaKeyPair) -> Value {
    let (x, y) = point(key);
    json!({"alg": "ES256", "crv": "P-256", "kid": key_id(key), "kty": "EC", "use": "sig", "x": x, "y": y})
}

/// The coordinates, of an uncompressed point: a 4, x, y.
fn point(key: &EcdsaKeyPair) -> (String, String) {
    let bytes = key.public_key().as_ref();
    (encoded(&bytes[1..33]), encoded(&bytes[33..65]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    #[test]
    fn a_token_can_be_verified_by_the_published_key_of_every_life_of_the_node() {
        let dir = tempfile::tempdir().expect("a directory");
        let request = TokenRequest {
            namespace: "default".into(),
            service_account: "builder".into(),
            audience: Some("vault".into()),
            seconds: 600,
            pod: PodUid(7),
            pod_name: "web".into(),
            node_name: "node".into(),
        };
        for _ in 0..2 {
            let token = LocalKey::at(dir.path()).issue(&request, Time(1_000_000_000_000)).expect("a token");
            let (signed, signature) = token.rsplit_once('.').expect("three parts");
            let (head, body) = signed.split_once('.').expect("three parts");
            let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).expect("base64url");
            let json = |text: &str| serde_json::from_slice::<Value>(&decode(text)).expect("JSON");
            let keys = fs::read(dir.path().join("service-account.jwks.json")).expect("a key set");
            let keys: Value = serde_json::from_slice(&keys).expect("JSON");
            let jwk = &keys["keys"][0];
            assert_eq!(json(head)["kid"], jwk["kid"]);
            let mut public = vec![4];
            public.extend(decode(jwk["x"].as_str().expect("x")));
            public.extend(decode(jwk["y"].as_str().expect("y")));
            let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public);
            key.verify(signed.as_bytes(), &decode(signature)).expect("its signature holds");
            let body = json(body);
            assert_eq!(
                (&body["aud"][0], &body["exp"], &body["iat"]),
                (&json!("vault"), &json!(1600), &json!(1000))
            );
            assert_eq!(body["sub"], "system:serviceaccount:default:builder");
            assert_eq!(body["kubernetes.io"]["pod"]["uid"], PodUid(7).to_string());
        }
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &fs::metadata(dir.path().join("service-account.key")).expect("a key").permissions(),
        );
        assert_eq!(mode & 0o777, 0o600);
        let short = TokenRequest { seconds: 599, ..request };
        assert!(LocalKey::at(dir.path()).issue(&short, Time(0)).is_err());
    }
}
