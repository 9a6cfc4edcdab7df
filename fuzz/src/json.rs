//! JSON drawn from bytes: any value made of the words that manifests are made of, and a value with something changed.

use super::choices::Bytes;
use nodefold_harness::swarm::Chance;
use serde_json::{Map, Value, json};

/// Keys and texts: as either they get somewhere.
const WORDS: [&str; 64] = [
    "metadata",
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "labels",
    "annotations",
    "finalizers",
    "deletionTimestamp",
    "spec",
    "status",
    "phase",
    "Running",
    "containers",
    "initContainers",
    "ephemeralContainers",
    "targetContainerName",
    "volumes",
    "emptyDir",
    "configMap",
    "secret",
    "secretName",
    "projected",
    "sources",
    "image",
    "imagePullPolicy",
    "volumeMounts",
    "mountPath",
    "subPath",
    "readOnly",
    "resources",
    "requests",
    "limits",
    "cpu",
    "memory",
    "100m",
    "1Gi",
    "restartPolicy",
    "Always",
    "Never",
    "dynamicVolumePolicy",
    "RestartContainer",
    "restartPolicyRules",
    "resizePolicy",
    "resourceName",
    "ports",
    "containerPort",
    "env",
    "value",
    "valueFrom",
    "livenessProbe",
    "tcpSocket",
    "lifecycle",
    "preStop",
    "nodeName",
    "app",
    "va",
    "/va",
    "$patch",
    "delete",
    "replace",
    "$setElementOrder/containers",
    "$retainKeys",
];

/// Values nested deeper than this are the reader's business (target `manifest`).
const DEPTH_MAX: u64 = 6;

/// Any value.
pub fn any(bytes: &mut Bytes<'_>) -> Value {
    nested(bytes, DEPTH_MAX)
}

fn nested(bytes: &mut Bytes<'_>, depth: u64) -> Value {
    let kinds = if depth == 0 { 5 } else { 8 };
    match bytes.below(kinds) {
        0 => Value::Null,
        1 => json!(bytes.once_in(1, 2)),
        2 => json!(bytes.number()),
        3 => json!(-(bytes.number() as i64 & i64::MAX)),
        4 => json!(bytes.one_of(&WORDS)),
        5 => (0..bytes.below(4)).map(|_| nested(bytes, depth - 1)).collect(),
        _ => {
            (0..bytes.below(5)).map(|_| (word(bytes), nested(bytes, depth - 1))).collect::<Map<_, _>>().into()
        }
    }
}

/// A word.
pub fn word(bytes: &mut Bytes<'_>) -> String {
    bytes.one_of(&WORDS).to_owned()
}

/// The value with one place in it changed: replaced, taken away, doubled, or taken from elsewhere in it.
pub fn changed(bytes: &mut Bytes<'_>, value: &Value) -> Value {
    let mut new = value.clone();
    let mut at = &mut new;
    loop {
        let inside = match at {
            Value::Object(fields) => fields.len(),
            Value::Array(entries) => entries.len(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        };
        if inside == 0 || bytes.once_in(1, 6) {
            break;
        }
        let which = bytes.below(inside as u64) as usize;
        let next = match at {
            Value::Object(fields) => fields.values_mut().nth(which),
            Value::Array(entries) => entries.get_mut(which),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        };
        match next {
            Some(next) => at = next,
            None => return new,
        }
    }
    match (bytes.below(4), &mut *at) {
        (0, Value::Object(fields)) => {
            fields.insert(word(bytes), nested(bytes, 2));
        }
        (0, Value::Array(entries)) => {
            let doubled = entries.get(bytes.below(entries.len() as u64) as usize).cloned();
            entries.extend(doubled);
        }
        (1, Value::Object(fields)) => {
            let key = fields.keys().nth(bytes.below(fields.len() as u64) as usize).cloned();
            key.and_then(|key| fields.remove(&key));
        }
        (1, Value::Array(entries)) => drop(entries.pop()),
        (..) => *at = nested(bytes, 3),
    }
    new
}
