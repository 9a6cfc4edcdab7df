//! Secrets and configMaps: how they are stored, and what of them may leave the boundary. Key names, sizes and
//! a keyed digest do; bytes never (S13).

use crate::defaults::default_pod;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nodefold_core::event::ObjectVersion;
use nodefold_core::ids::{Name, ObjectKind, ObjectRef};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Fills in what the API server fills in, whatever the kind: a pod's defaults; a secret's type, and its
/// `stringData` moved into `data`.
pub fn default_object(value: &mut Value) {
    match value.get("kind").and_then(Value::as_str) {
        Some("Pod") => default_pod(value),
        Some("Secret") => default_secret(value),
        Some(_) | None => {}
    }
}

fn default_secret(value: &mut Value) {
    let Some(secret) = value.as_object_mut() else { return };
    if secret.get("type").and_then(Value::as_str).is_none_or(str::is_empty) {
        secret.insert("type".into(), json!("Opaque"));
    }
    let Some(Value::Object(texts)) = secret.shift_remove("stringData") else { return };
    if secret.get("data").is_none_or(Value::is_null) {
        secret.insert("data".into(), Value::Object(Map::new()));
    }
    let Some(data) = secret.get_mut("data").and_then(Value::as_object_mut) else { return };
    for (key, text) in texts {
        if let Value::String(text) = text {
            data.insert(key, Value::String(STANDARD.encode(text)));
        }
    }
}

/// Which object a manifest is, if it is one that volumes refer to.
pub fn object_ref(value: &Value) -> Option<ObjectRef> {
    let kind = match value.get("kind").and_then(Value::as_str)? {
        "Secret" => ObjectKind::Secret,
        "ConfigMap" => ObjectKind::ConfigMap,
        "ClusterTrustBundle" => ObjectKind::ClusterTrustBundle,
        _ => return None,
    };
    let metadata = |name: &str| value.pointer(&format!("/metadata/{name}")).and_then(Value::as_str);
    let name = metadata("name")?.into();
    let namespace = match kind {
        ObjectKind::Secret | ObjectKind::ConfigMap => metadata("namespace").unwrap_or("default").into(),
        ObjectKind::ClusterTrustBundle => Name::from(""),
    };
    Some(ObjectRef { kind, namespace, name })
}

/// The bytes under each key of a secret or configMap, `stringData` over `data`; a trust bundle has one. What isn't base64 where it
/// should be counts as the text it is ([`crate::check_fields`] names it).
pub fn object_data(value: &Value) -> BTreeMap<String, Vec<u8>> {
    let encoded = |text: &str| STANDARD.decode(text).unwrap_or_else(|_| text.as_bytes().to_vec());
    let plain = |text: &str| text.as_bytes().to_vec();
    let mut data = BTreeMap::new();
    let mut collect = |field: &str, read: &dyn Fn(&str) -> Vec<u8>| {
        for (key, text) in value.get(field).and_then(Value::as_object).into_iter().flatten() {
            if let Value::String(text) = text {
                data.insert(key.clone(), read(text));
            }
        }
    };
    match value.get("kind").and_then(Value::as_str) {
        Some("Secret") => {
            collect("data", &encoded);
            collect("stringData", &plain);
        }
        Some("ClusterTrustBundle") => {
            if let Some(bundle) = value.pointer("/spec/trustBundle").and_then(Value::as_str) {
                data.insert("trustBundle".into(), plain(bundle));
            }
        }
        Some(_) | None => {
            collect("data", &plain);
            collect("binaryData", &encoded);
        }
    }
    data
}

/// The version that the core hears of. The digest is keyed, so that it can't be used to guess a secret's
/// content, and equal for equal keys and bytes, however they were written.
pub fn object_version(value: &Value, key: &[u8; 32]) -> ObjectVersion {
    let mut hasher = blake3::Hasher::new_keyed(key);
    let mut keys: Vec<(Name, u64)> = Vec::new();
    for (name, bytes) in object_data(value) {
        let size = bytes.len() as u64;
        hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
        hasher.update(&size.to_le_bytes()).update(&bytes);
        keys.push((name.into(), size));
    }
    let mut digest = [0; 16];
    digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    let resource_version = value.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or("");
    ObjectVersion { resource_version: resource_version.into(), digest: u128::from_le_bytes(digest), keys }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 32] = [7; 32];

    fn secret(data: Value, text: Value) -> Value {
        json!({"kind": "Secret", "metadata": {"name": "s", "resourceVersion": "9"}, "data": data, "stringData": text})
    }

    #[test]
    fn a_trust_bundle_that_changes_has_another_digest() {
        let of = |pem: &str| {
            let bundle = json!({"kind": "ClusterTrustBundle", "metadata": {"name": "b"}, "spec": {"trustBundle": pem}});
            object_version(&bundle, &KEY).digest
        };
        assert_eq!(of("one"), of("one"));
        assert_ne!(of("one"), of("two"));
    }

    #[test]
    fn equal_content_has_an_equal_digest_however_it_is_written() {
        let encoded = object_version(&secret(json!({"b": "Mg==", "a": "MQ=="}), Value::Null), &KEY);
        let text = object_version(&secret(json!({"a": "b2xk"}), json!({"a": "1", "b": "2"})), &KEY);
        assert_eq!(encoded, text);
        assert_eq!(encoded.keys, [("a".into(), 1), ("b".into(), 1)]);
        assert_eq!(&*encoded.resource_version, "9");
    }

    #[test]
    fn the_digest_depends_on_key_names_bytes_and_the_secret_key() {
        let digest = |data: Value, key: &[u8; 32]| object_version(&secret(Value::Null, data), key).digest;
        let one = digest(json!({"ab": "c"}), &KEY);
        assert_ne!(one, digest(json!({"a": "bc"}), &KEY));
        assert_ne!(one, digest(json!({"ab": "d"}), &KEY));
        assert_ne!(one, digest(json!({"ab": "c"}), &[8; 32]));
    }

    #[test]
    fn a_secret_is_stored_without_string_data() {
        let mut stored = secret(json!({"a": "b2xk", "b": "Mg=="}), json!({"a": "1"}));
        default_object(&mut stored);
        assert_eq!(stored["data"], json!({"a": "MQ==", "b": "Mg=="}));
        assert_eq!(stored["type"], "Opaque");
        assert!(stored.get("stringData").is_none());
    }

    #[test]
    fn config_maps_hold_text_and_bytes() {
        let map = json!({"kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"},
            "data": {"a": "MQ=="}, "binaryData": {"b": "MQ=="}});
        assert_eq!(
            object_data(&map),
            BTreeMap::from([("a".into(), b"MQ==".to_vec()), ("b".into(), b"1".to_vec())])
        );
        let reference = object_ref(&map).map(|r| (r.kind, r.namespace.to_string(), r.name.to_string()));
        assert_eq!(reference, Some((ObjectKind::ConfigMap, "n".into(), "c".into())));
    }
}
