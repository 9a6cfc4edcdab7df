//! What a PUT or PATCH makes of a stored object. Owns the order of patch and check; the rules are `Api`'s.

use super::ask::Change;
use super::failure::Failure;
use nodefold_api::FieldValidation;
use nodefold_k8s::merge::strategic_merge_pod;
use nodefold_k8s::{FieldProblem, check_patch_fields, json_merge, json_patch};
use serde_json::{Map, Value};

/// The object as the body wants it.
pub fn changed(kind: &str, old: &Value, body: Change, validation: FieldValidation) -> Result<Value, Failure> {
    match body {
        Change::Put(mut whole) => {
            // A body that says nothing of who owns the fields doesn't mean that nobody does.
            if whole["metadata"].is_object() && whole["metadata"]["managedFields"].is_null() {
                let owned = old["metadata"]["managedFields"].clone();
                if !owned.is_null() {
                    whole["metadata"]["managedFields"] = owned;
                }
            }
            Ok(whole)
        }
        Change::Strategic(patch) if kind == "Pod" => {
            let problems = check_patch_fields(&patch, kind);
            // What is dropped is told of the whole pod that the patch makes.
            if !problems.is_empty() && validation == FieldValidation::Strict {
                let told: Vec<String> = problems.iter().map(FieldProblem::to_string).collect();
                let what = format!(
                    "{kind} in version \"v1\" cannot be handled as a {kind}: strict decoding error: {}",
                    told.join(", ")
                );
                return Err(Failure::bad_request(what));
            }
            strategic_merge_pod(old, &patch)
                .map_err(|error| Failure::new(error.http_code(), "Invalid", error.to_string()))
        }
        Change::Strategic(patch) => {
            must_be_object(&patch)?;
            let mut new = old.clone();
            json_merge(&mut new, &without_directives(patch));
            Ok(new)
        }
        Change::Merge(patch) => {
            must_be_object(&patch)?;
            let mut new = old.clone();
            json_merge(&mut new, &patch);
            Ok(new)
        }
        Change::Json(operations) => json_patch(old, &operations).map_err(|wrong| match wrong.http_code() {
            400 => Failure::bad_request(wrong.to_string()),
            413 => Failure::new(413, "RequestEntityTooLarge", wrong.to_string()),
            code => Failure::new(code, "Invalid", format!("the patch can't be applied: {wrong}")),
        }),
        Change::Apply { .. } => Err(Failure::internal("apply is no patch")),
    }
}

fn must_be_object(patch: &Value) -> Result<(), Failure> {
    if patch.is_object() {
        return Ok(());
    }
    Err(Failure::bad_request("the patch is no object"))
}

/// Of kinds whose lists are all replaced as a whole, a strategic-merge patch is a merge patch; what speaks of lists' order and
/// of keys to keep has nothing to say.
fn without_directives(patch: Value) -> Value {
    match patch {
        Value::Object(fields) => {
            let says = |key: &String| !key.starts_with('$');
            let kept = fields.into_iter().filter(|(key, _)| says(key));
            Value::Object(kept.map(|(key, value)| (key, without_directives(value))).collect::<Map<_, _>>())
        }
        Value::Array(entries) => Value::Array(entries.into_iter().map(without_directives).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => patch,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn changed(kind: &str, old: &Value, body: Change) -> Result<Value, Failure> {
        super::changed(kind, old, body, FieldValidation::Strict)
    }

    #[test]
    fn each_kind_of_patch() {
        let old = json!({"kind": "ConfigMap", "data": {"a": "1", "b": "2"}});
        let merged = changed("ConfigMap", &old, Change::Merge(json!({"data": {"a": null}}))).unwrap();
        assert_eq!(merged["data"], json!({"b": "2"}));
        let body = json!({"data": {"c": "3", "$retainKeys": ["c"]}});
        let strategic = changed("ConfigMap", &old, Change::Strategic(body)).unwrap();
        assert_eq!(strategic["data"], json!({"a": "1", "b": "2", "c": "3"}));
        let operations =
            json!([{"op": "test", "path": "/data/a", "value": "1"}, {"op": "remove", "path": "/data/b"}]);
        assert_eq!(changed("ConfigMap", &old, Change::Json(operations)).unwrap()["data"], json!({"a": "1"}));
        let failing = json!([{"op": "test", "path": "/data/a", "value": "9"}]);
        assert_eq!(changed("ConfigMap", &old, Change::Json(failing)).unwrap_err().code, 422);
        for bad in [Change::Merge(json!(3)), Change::Json(json!({})), Change::Json(json!([{"op": "no"}]))] {
            assert_eq!(changed("ConfigMap", &old, bad).unwrap_err().code, 400);
        }
    }
}
