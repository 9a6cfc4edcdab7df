//! What a container's environment is read from: secrets and configMaps, looked at when it is created. May not look at
//! what it mounts: that is `content`.

use super::server::Server;
use nodefold_core::event::{ErrorClass, OpError};
use nodefold_core::ids::{Name, ObjectKind, ObjectRef};
use nodefold_core::spec::Container;
use serde_json::Value;
use std::collections::BTreeMap;

/// Whether all of it is there, that is not optional.
pub fn check(server: &Server, namespace: &Name, container: &Container) -> Result<(), OpError> {
    let manifest: Value = serde_json::from_str(&container.rest.0).unwrap_or(Value::Null);
    let entries = |list: &str| manifest[list].as_array().cloned().unwrap_or_default();
    for source in entries("envFrom") {
        for (kind, field) in [(ObjectKind::ConfigMap, "configMapRef"), (ObjectKind::Secret, "secretRef")] {
            if source[field].is_object() {
                keys(server, kind, namespace, &source[field])?;
            }
        }
    }
    for entry in entries("env") {
        for (kind, field, word) in [
            (ObjectKind::ConfigMap, "configMapKeyRef", "ConfigMap"),
            (ObjectKind::Secret, "secretKeyRef", "Secret"),
        ] {
            let reference = &entry["valueFrom"][field];
            if !reference.is_object() {
                continue;
            }
            let key = reference["key"].as_str().unwrap_or_default();
            let keys = keys(server, kind, namespace, reference)?;
            if keys.is_some_and(|keys| !keys.contains_key(key)) && reference["optional"] != true {
                let of = reference["name"].as_str().unwrap_or_default();
                return Err(error(format!("couldn't find key {key} in {word} {namespace}/{of}")));
            }
        }
    }
    Ok(())
}

/// The keys of an object; `None`: there is none, and that is all right.
fn keys(
    server: &Server,
    kind: ObjectKind,
    namespace: &Name,
    reference: &Value,
) -> Result<Option<BTreeMap<String, Vec<u8>>>, OpError> {
    let name = reference["name"].as_str().unwrap_or_default();
    let word = match kind {
        ObjectKind::Secret => "secret",
        ObjectKind::ConfigMap => "configmap",
        ObjectKind::ClusterTrustBundle => "clustertrustbundle",
    };
    match server.referenced(&ObjectRef { kind, namespace: namespace.clone(), name: name.into() }) {
        Some(object) => Ok(Some(nodefold_k8s::object_data(object))),
        None if reference["optional"] == true => Ok(None),
        None => Err(error(format!("{word} \"{name}\" not found"))),
    }
}

fn error(message: String) -> OpError {
    OpError {
        class: ErrorClass::Final,
        reason: Some("CreateContainerConfigError".into()),
        message: message.into(),
    }
}
