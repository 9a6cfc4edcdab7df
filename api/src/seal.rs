//! Secrets for a journal (DESIGN S13): an append-only log can't forget, so bytes never enter it.
//!
//! A sealed event has a size and a keyed digest in each value's place. Equal bytes stay equal and nothing
//! that `Api` decides looks at them, so that the sealed event folds to the same digest as the one that was
//! sealed.

use crate::{ApiEvent, FieldValidation, Request};
use nodefold_k8s::{FieldProblem, ProblemReason, canonical, check_fields, default_object, object_version};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// `kubectl apply` keeps the whole manifest there, a secret's values too.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl ApiEvent {
    /// This event as a journal may keep it: a Secret's values replaced by their sizes and digests under
    /// `key`.
    ///
    /// Give the backends the bytes from the event as it came, and record this one.
    pub fn sealed(&self, key: &[u8; 32]) -> Cow<'_, ApiEvent> {
        match &self.request {
            Request::Create { object, .. } | Request::Update { object }
                if object.get("kind").and_then(Value::as_str) == Some("Secret") =>
            {
                let mut event = self.clone();
                if let Request::Create { object, .. } | Request::Update { object } = &mut event.request {
                    seal(object, key, self.field_validation == FieldValidation::Strict);
                }
                Cow::Owned(event)
            }
            Request::Create { .. }
            | Request::Update { .. }
            | Request::Dynamic { .. }
            | Request::Resize { .. }
            | Request::Ephemeral { .. }
            | Request::Delete { .. }
            | Request::Status { .. }
            | Request::PatchStatus { .. }
            | Request::Release { .. }
            | Request::NodeGates(_) => Cow::Borrowed(self),
        }
    }
}

fn seal(object: &mut Value, key: &[u8; 32], strict: bool) {
    let unknown = |problem: &FieldProblem| problem.reason == ProblemReason::UnknownField;
    let readable = check_fields(object, "Secret").iter().all(|problem| !strict && unknown(problem));
    if readable {
        default_object(object);
    }
    for field in ["data", "stringData"] {
        for (name, value) in object.get_mut(field).and_then(Value::as_object_mut).into_iter().flatten() {
            *value = match value.take() {
                Value::Null => Value::Null,
                // What can't be read is refused, and must be so when it is sealed.
                Value::String(_) if !readable => json!("sealed!"),
                text @ Value::String(_) => {
                    let alone = Value::Object(Map::from_iter([(name.clone(), text)]));
                    mark(&json!({"kind": "Secret", "data": alone}), key)
                }
                Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => json!(0),
            };
        }
    }
    let annotations = object.get_mut("metadata").and_then(|m| m.get_mut("annotations"));
    if let Some(applied) = annotations.and_then(|a| a.get_mut(LAST_APPLIED)) {
        *applied = mark(&json!({"kind": "ConfigMap", "data": {"": applied.take()}}), key);
    }
}

/// Size and digest of the only value, in letters that are base64 as well: 64 of them,
/// `sealed/<bytes>/<digest>/00`.
fn mark(of: &Value, key: &[u8; 32]) -> Value {
    let version = object_version(of, key);
    let bytes = version.keys.first().map_or(0, |(_, bytes)| *bytes);
    let text = format!("sealed/{bytes:021}/{:032x}", version.digest);
    Value::String(text + "/00")
}

/// What of a Secret sealing leaves alone, canonically: all but its values.
pub(crate) fn open_part(secret: &Value) -> String {
    canonical(&open(secret))
}

/// The same as an object, without values.
pub(crate) fn open(secret: &Value) -> Value {
    let mut part = secret.clone();
    if let Some(data) = part.get_mut("data").and_then(Value::as_object_mut) {
        data.values_mut().for_each(|value| *value = Value::Null);
    }
    let annotations = part.get_mut("metadata").and_then(|m| m.get_mut("annotations"));
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.shift_remove(LAST_APPLIED);
    }
    part
}
