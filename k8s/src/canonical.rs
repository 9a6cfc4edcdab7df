//! Canonical JSON: one text for equal values. What blobs hold and digests are made of.

use nodefold_core::spec::Blob;
use serde_json::{Map, Value};

/// The value's text with all keys sorted and no spaces.
pub fn canonical(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    sorted.to_string()
}

/// The blob that holds these fields.
pub(crate) fn blob(fields: Map<String, Value>) -> Blob {
    if fields.is_empty() { Blob::default() } else { Blob(canonical(&Value::Object(fields)).into()) }
}

/// The fields that a blob holds. Blobs are only ever made by [`blob`]; one that isn't an object holds none.
pub(crate) fn open(blob: &Blob) -> Map<String, Value> {
    serde_json::from_str(&blob.0).unwrap_or_default()
}
