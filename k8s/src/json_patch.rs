//! JSON patches (RFC 6902) and merge patches (RFC 7396), with an API server's limits: a patch of a few lines may copy a part of an
//! object into itself again and again, and double it each time.

use json_patch::{Patch, PatchErrorKind, PatchOperation};
use serde_json::Value;

/// Operations of one patch.
const MOST_OPERATIONS: usize = 10_000;
/// Bytes of JSON that its copies may add together.
const MOST_COPIED: usize = 3 << 20;

/// Why a JSON patch can't be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonPatchError {
    /// It is no list of operations.
    #[error("a JSON patch is a list of operations: {0}")]
    Unreadable(String),
    /// It has more operations than are taken.
    #[error("The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {0}")]
    TooMany(usize),
    /// Its copies add more than is taken.
    #[error(
        "Unable to copy, the accumulated size increase of copy is {copied}, exceeding the limit {MOST_COPIED}"
    )]
    TooLarge {
        /// What they would add.
        copied: usize,
    },
    /// A test says that it shall not be applied.
    #[error("{0}")]
    TestFailed(String),
    /// An operation names what isn't there.
    #[error("{0}")]
    Failed(String),
}

impl JsonPatchError {
    /// The HTTP status with which an API server answers such a patch.
    pub fn http_code(&self) -> u16 {
        match self {
            JsonPatchError::Unreadable(_) => 400,
            JsonPatchError::TooMany(_) => 413,
            JsonPatchError::TooLarge { .. } | JsonPatchError::TestFailed(_) | JsonPatchError::Failed(_) => {
                422
            }
        }
    }
}

/// The object with the patch applied.
pub fn json_patch(object: &Value, patch: &Value) -> Result<Value, JsonPatchError> {
    let operations = patch.as_array().map_or(0, Vec::len);
    if operations > MOST_OPERATIONS {
        return Err(JsonPatchError::TooMany(operations));
    }
    let patch: Patch = serde_json::from_value(patch.clone())
        .map_err(|wrong| JsonPatchError::Unreadable(wrong.to_string()))?;
    let (mut object, mut copied) = (object.clone(), 0);
    for (i, operation) in patch.0.into_iter().enumerate() {
        if let PatchOperation::Copy(copy) = &operation {
            copied += copy.from.resolve(&object).map_or(0, size);
            if copied > MOST_COPIED {
                return Err(JsonPatchError::TooLarge { copied });
            }
        }
        let path = operation.path().to_string();
        json_patch::patch(&mut object, std::slice::from_ref(&operation)).map_err(|wrong| {
            let told = format!("operation {i} ({path}): {}", wrong.kind);
            if matches!(wrong.kind, PatchErrorKind::TestFailed) {
                JsonPatchError::TestFailed(told)
            } else {
                JsonPatchError::Failed(told)
            }
        })?;
    }
    Ok(object)
}

/// Applies a merge patch.
pub fn json_merge(object: &mut Value, patch: &Value) {
    json_patch::merge(object, patch);
}

/// About as many bytes as its JSON has.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| size(item) + 1).sum::<usize>(),
        Value::Object(fields) => {
            2 + fields.iter().map(|(key, value)| key.len() + size(value) + 4).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_patch_that_doubles_an_object_ends_before_the_memory_does() {
        let double = |n: usize| json!({"op": "copy", "from": "/a", "path": format!("/a/x{n}")});
        let bomb: Vec<Value> = (0..60).map(double).collect();
        let wrong =
            json_patch(&json!({"a": {"text": "0123456789"}}), &Value::Array(bomb)).expect_err("too large");
        assert_eq!(wrong.http_code(), 422, "{wrong}");
        assert!(matches!(wrong, JsonPatchError::TooLarge { .. }), "{wrong}");
        let many = vec![json!({"op": "add", "path": "/a", "value": 1}); MOST_OPERATIONS + 1];
        let wrong = json_patch(&json!({}), &Value::Array(many)).expect_err("too many");
        assert_eq!((wrong.http_code(), wrong), (413, JsonPatchError::TooMany(MOST_OPERATIONS + 1)));
    }

    #[test]
    fn each_error_is_told_apart_and_names_the_operation() {
        let object = json!({"a": 1});
        let patched = json_patch(&object, &json!([{"op": "copy", "from": "/a", "path": "/b"}]));
        assert_eq!(patched, Ok(json!({"a": 1, "b": 1})));
        for (patch, code) in [
            (json!({}), 400),
            (json!([{"op": "dance", "path": "/a"}]), 400),
            (json!([{"op": "test", "path": "/a", "value": 2}]), 422),
            (json!([{"op": "add", "path": "/b", "value": 2}, {"op": "remove", "path": "/c"}]), 422),
        ] {
            assert_eq!(json_patch(&object, &patch).expect_err("refused").http_code(), code, "{patch}");
        }
        let wrong = json_patch(
            &object,
            &json!([{"op": "add", "path": "/b", "value": 2}, {"op": "remove", "path": "/c"}]),
        );
        assert!(wrong.expect_err("refused").to_string().starts_with("operation 1 (/c)"));
    }
}
