//! What secrets and configMaps hold: their keys, and what may not change. May not look at a value.

use super::Errors;
use crate::view::{at, text};
use serde_json::Value;

/// Keys are file names: `IsConfigMapKey`.
pub(super) fn keys(object: &Value, errors: &mut Errors) {
    if !matches!(text(object, "kind"), "Secret" | "ConfigMap") {
        return;
    }
    let names = |field: &str| at(object, field).as_object().map(|map| map.keys()).into_iter().flatten();
    for field in ["data", "binaryData"] {
        for key in names(field).filter(|key| !is_key(key)) {
            let detail = "a valid config key must consist of at most 253 alphanumeric characters, '-', '_' or '.', and be neither \
                          '.' nor begin with '..'";
            errors.invalid(format!("{field}[{key}]"), &Value::from(key.as_str()), detail);
        }
    }
    for key in names("data").filter(|key| names("binaryData").any(|other| other == *key)) {
        errors.invalid(
            format!("data[{key}]"),
            &Value::from(key.as_str()),
            "duplicate of key present in binaryData",
        );
    }
}

/// A secret's type stays; what says that it is immutable stays as it is.
pub(super) fn kept(old: &Value, new: &Value, errors: &mut Errors) {
    if at(old, "type") != at(new, "type") && text(old, "kind") == "Secret" {
        errors.invalid("type", at(new, "type"), "field is immutable");
    }
    if at(old, "immutable") == &Value::Bool(true) {
        for field in ["data", "binaryData", "immutable"] {
            if at(old, field) != at(new, field) {
                errors.forbidden(field, "field is immutable when `immutable` is set");
            }
        }
    }
}

fn is_key(key: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !key.is_empty() && key.len() <= 253 && key.chars().all(is_plain) && key != "." && !key.starts_with("..")
}
