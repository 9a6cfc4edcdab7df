//! Whether an object has what is expected in it, and if not, which path differs. Lists match by `name`, conditions by
//! `type`, volumeMounts by `mountPath`; what is not expected may be anything.

use serde_json::Value;
use std::fmt;

/// A place where an object is not as expected.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Where: `containerStatuses[name=app].ready`.
    pub path: String,
    /// What should be there.
    pub expected: Value,
    /// What is there; `None`: nothing.
    pub actual: Option<Value>,
    /// What would help: the names that there are.
    pub hint: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.actual {
            Some(actual) => write!(f, "{}: expected {}, is {actual}", self.path, self.expected)?,
            None => write!(f, "{}: expected {}, is absent", self.path, self.expected)?,
        }
        if self.hint.is_empty() { Ok(()) } else { write!(f, " ({})", self.hint) }
    }
}

/// Every place where `actual` lacks what `expected` has.
pub fn differences(expected: &Value, actual: &Value) -> Vec<Difference> {
    let mut out = Vec::new();
    compare("", expected, Some(actual), &mut out);
    out
}

fn compare(path: &str, expected: &Value, actual: Option<&Value>, out: &mut Vec<Difference>) {
    let differs = |hint: String| Difference {
        path: path.to_owned(),
        expected: expected.clone(),
        actual: actual.cloned(),
        hint,
    };
    let actual = match actual {
        Some(actual) if !actual.is_null() => actual,
        Some(_) | None => {
            // Kubernetes leaves zero values out.
            if !is_zero(expected) {
                out.push(differs(String::new()));
            }
            return;
        }
    };
    match (expected, actual) {
        (Value::Object(fields), Value::Object(present)) => {
            for (key, expected) in fields {
                compare(&join(path, key), expected, present.get(key), out);
            }
        }
        (Value::Array(items), Value::Array(present)) if items.is_empty() => {
            if !present.is_empty() {
                out.push(differs("an empty list means: nothing at all".into()));
            }
        }
        (Value::Array(items), Value::Array(present)) => {
            if items.iter().all(Value::is_object) {
                for item in items {
                    compare_entry(path, item, present, out);
                }
            } else if items != present {
                out.push(differs(String::new()));
            }
        }
        (expected, actual) => {
            if !is_same_scalar(path, expected, actual) {
                out.push(differs(String::new()));
            }
        }
    }
}

/// An expected entry of a list of objects, found by its key.
fn compare_entry(path: &str, expected: &Value, present: &[Value], out: &mut Vec<Difference>) {
    let last = path.rsplit('.').next().unwrap_or(path);
    let preferred = match last {
        "conditions" => "type",
        "volumeMounts" => "mountPath",
        "ports" => "containerPort",
        _ => "name",
    };
    let key = [preferred, "name", "type", "mountPath"].into_iter().find(|key| !expected[key].is_null());
    let Some(key) = key else {
        if !present.iter().any(|candidate| differences(expected, candidate).is_empty()) {
            out.push(Difference {
                path: format!("{path}[]"),
                expected: expected.clone(),
                actual: None,
                hint: format!(
                    "no entry of the list has all of it; the list is {}",
                    Value::Array(present.to_vec())
                ),
            });
        }
        return;
    };
    let path = format!("{path}[{key}={}]", plain(&expected[key]));
    let named: Vec<&Value> =
        present.iter().filter(|candidate| is_same_scalar("", &expected[key], &candidate[key])).collect();
    // Several entries of one name (a mount of one volume at two paths): the nearest one tells.
    let nearest = named.iter().map(|candidate| {
        let mut found = Vec::new();
        compare(&path, expected, Some(candidate), &mut found);
        found
    });
    match nearest.min_by_key(Vec::len) {
        Some(found) => out.extend(found),
        None => {
            let names: Vec<String> = present.iter().map(|entry| plain(&entry[key])).collect();
            let hint = if names.is_empty() {
                "the list is empty".into()
            } else {
                format!("there are: {}", names.join(", "))
            };
            out.push(Difference { path, expected: expected.clone(), actual: None, hint });
        }
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// What Kubernetes leaves out of an object because it says nothing.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::String(s) => s.is_empty(),
        Value::Array(items) => items.is_empty(),
        // `state: {running: {}}` asks for the key.
        Value::Object(_) => false,
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

/// Equal, or written in another way: YAML's `1` for Kubernetes' "1", `True` for "True", `1500m` for "1.5".
fn is_same_scalar(path: &str, expected: &Value, actual: &Value) -> bool {
    if expected == actual {
        return true;
    }
    let scalar = |v: &Value| matches!(v, Value::Bool(_) | Value::Number(_) | Value::String(_));
    if !scalar(expected) || !scalar(actual) {
        return false;
    }
    let (a, b) = (plain(expected), plain(actual));
    if a == b || (expected.is_boolean() && a.eq_ignore_ascii_case(&b)) {
        return true;
    }
    let is_amount =
        ["requests", "limits", "allocatedResources", "sizeLimit"].iter().any(|word| path.contains(word));
    match (is_amount, nodefold_k8s::quantity::parse(&a), nodefold_k8s::quantity::parse(&b)) {
        (true, Ok(a), Ok(b)) => a.milli() == b.milli(),
        (true | false, _, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(expected: Value, actual: Value) -> Vec<String> {
        differences(&expected, &actual).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_subset_holds_whatever_else_there_is() {
        let actual =
            json!({"phase": "Running", "containerStatuses": [{"name": "b"}, {"name": "a", "ready": true}]});
        assert_eq!(
            told(json!({"phase": "Running", "containerStatuses": [{"name": "a", "ready": true}]}), actual),
            [""; 0]
        );
    }

    #[test]
    fn the_path_that_differs_is_told() {
        let actual = json!({"containerStatuses": [{"name": "app", "ready": false, "state": {"waiting": {"reason": "X"}}}]});
        assert_eq!(
            told(
                json!({"containerStatuses": [{"name": "app", "ready": true, "state": {"running": {}}}]}),
                actual
            ),
            [
                "containerStatuses[name=app].ready: expected true, is false",
                "containerStatuses[name=app].state.running: expected {}, is absent",
            ]
        );
    }

    #[test]
    fn a_missing_entry_is_told_with_the_names_there_are() {
        let actual = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        assert_eq!(
            told(json!({"conditions": [{"type": "PodResizePending"}]}), actual),
            [
                r#"conditions[type=PodResizePending]: expected {"type":"PodResizePending"}, is absent (there are: Ready)"#
            ]
        );
    }

    #[test]
    fn mounts_match_by_path() {
        let actual =
            json!({"volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}]});
        assert_eq!(
            told(json!({"volumeMounts": [{"name": "v", "mountPath": "/b"}]}), actual.clone()),
            [""; 0]
        );
        assert_eq!(
            told(json!({"volumeMounts": [{"name": "w", "mountPath": "/b"}]}), actual),
            [r#"volumeMounts[mountPath=/b].name: expected "w", is "v""#]
        );
    }

    #[test]
    fn amounts_compare_as_amounts_and_left_out_zeros_are_zeros() {
        let actual = json!({"resources": {"requests": {"cpu": "1500m", "memory": "1Gi"}}, "name": "x"});
        assert_eq!(
            told(json!({"resources": {"requests": {"cpu": 1.5, "memory": "1024Mi"}}}), actual.clone()),
            [""; 0]
        );
        assert_eq!(
            told(json!({"readOnly": false, "restartCount": 0, "reason": ""}), actual.clone()),
            [""; 0]
        );
        assert_eq!(told(json!({"name": "1500m"}), json!({"name": "1.5"})).len(), 1, "a name is no amount");
        assert_eq!(told(json!({"readOnly": true}), actual), ["readOnly: expected true, is absent"]);
    }

    #[test]
    fn an_empty_list_means_none() {
        assert_eq!(told(json!({"volumes": []}), json!({})), [""; 0]);
        assert_eq!(told(json!({"volumes": []}), json!({"volumes": [{"name": "v"}]})).len(), 1);
    }
}
