//! JSON values as YAML text, as `kubectl get -o yaml` would show them.

use serde_json::Value;

/// The value as YAML.
pub fn text(value: &Value) -> String {
    match serde_saphyr::to_string(value) {
        Ok(text) => text,
        // JSON is YAML: what the writer can't lay out is still shown whole.
        Err(_) => format!("{value}\n"),
    }
}
