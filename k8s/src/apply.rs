//! An apply configuration laid over an object. MutatingAdmissionPolicies do no more: nobody owns fields, nothing is removed. Who owns
//! what, and what goes when nobody does any more, is server-side apply's and the server's to know.
//!
//! Owns which lists of a pod are maps, sets or one value, and which objects are one value (v1.Pod's own declarations).

use crate::problem;
use serde_json::{Map, Value, json};

/// How a list is merged.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ListShape {
    /// Entries are told apart by these fields.
    Map(&'static [&'static str]),
    /// Members are scalars, each for itself.
    Set,
    /// It is one value.
    Atomic,
}

/// The list at a path of fields; entries of lists are no step of their own.
pub fn list_shape(kind: &str, names: &[&str]) -> ListShape {
    match names {
        ["metadata", "finalizers"] => return ListShape::Set,
        ["metadata", "ownerReferences"] => return ListShape::Map(&["uid"]),
        _ => {}
    }
    if kind == "ServiceAccount" && names == ["secrets"] {
        return ListShape::Map(&["name"]);
    }
    if kind != "Pod" {
        return ListShape::Atomic;
    }
    match names {
        ["spec", "containers" | "initContainers" | "ephemeralContainers"] => ListShape::Map(&["name"]),
        ["spec", "volumes" | "imagePullSecrets" | "schedulingGates" | "resourceClaims"] => {
            ListShape::Map(&["name"])
        }
        ["spec", "hostAliases"] => ListShape::Map(&["ip"]),
        ["spec", "topologySpreadConstraints"] => ListShape::Map(&["topologyKey", "whenUnsatisfiable"]),
        ["status", "conditions"] => ListShape::Map(&["type"]),
        ["status", "podIPs" | "hostIPs"] => ListShape::Map(&["ip"]),
        ["status", "volumeStatuses"] => ListShape::Map(&["name"]),
        ["spec", _, "env"] | ["spec", _, "resources", "claims"] => ListShape::Map(&["name"]),
        ["spec", _, "ports"] => ListShape::Map(&["containerPort", "protocol"]),
        ["spec", _, "volumeMounts"] => ListShape::Map(&["mountPath"]),
        ["spec", _, "volumeDevices"] => ListShape::Map(&["devicePath"]),
        _ => ListShape::Atomic,
    }
}

/// Objects that are one value.
pub fn is_atomic_object(names: &[&str]) -> bool {
    let words =
        ["configMapKeyRef", "secretKeyRef", "fieldRef", "resourceFieldRef", "labelSelector", "secretRef"];
    names.last().is_some_and(|last| words.contains(last)) || names == ["spec", "nodeSelector"]
}

/// Whether an entry of a list-map is the one that another describes. A port without a protocol is TCP's.
fn is_same(entry: &Value, other: &Value, keys: &[&str]) -> bool {
    let key = |entry: &Value, key: &str| match (entry.get(key), key) {
        (None | Some(Value::Null), "protocol") => json!("TCP"),
        (value, _) => value.cloned().unwrap_or_default(),
    };
    keys.iter().all(|name| key(entry, name) == key(other, name))
}

/// The object with the configuration's fields. What is one value may not be set: whoever wants to change a part of it would
/// remove the rest without seeing it. The paths of what is tried so is the error.
pub fn lay_over(kind: &str, object: &Value, configuration: &Value) -> Result<Value, Vec<String>> {
    let mut atomic = Vec::new();
    find_atomic(kind, configuration, &mut Vec::new(), "", &mut atomic);
    if !atomic.is_empty() {
        return Err(atomic);
    }
    let mut new = object.clone();
    merge(kind, &mut new, configuration);
    Ok(new)
}

/// The configuration's fields, in the object: maps and list-maps are merged, members of sets are added, and the rest is replaced.
pub fn merge(kind: &str, into: &mut Value, configuration: &Value) {
    merge_at(kind, into, configuration, &mut Vec::new());
}

fn find_atomic<'v>(
    kind: &str,
    value: &'v Value,
    names: &mut Vec<&'v str>,
    path: &str,
    out: &mut Vec<String>,
) {
    match value {
        Value::Object(fields) => {
            if is_atomic_object(names) {
                out.push(path.to_owned());
            }
            for (name, value) in fields {
                names.push(name);
                find_atomic(kind, value, names, &format!("{path}.{name}"), out);
                names.pop();
            }
        }
        Value::Array(entries) => {
            if list_shape(kind, names) == ListShape::Atomic {
                out.push(path.to_owned());
            }
            for (i, entry) in entries.iter().enumerate() {
                find_atomic(kind, entry, names, &problem::index(path, i), out);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn merge_at<'v>(kind: &str, into: &mut Value, from: &'v Value, names: &mut Vec<&'v str>) {
    match from {
        Value::Object(fields) => {
            if !into.is_object() {
                *into = Value::Object(Map::new());
            }
            for (name, value) in fields {
                names.push(name);
                merge_at(kind, &mut into[name.as_str()], value, names);
                names.pop();
            }
        }
        Value::Array(entries) => match (list_shape(kind, names), into.as_array_mut()) {
            (ListShape::Map(keys), Some(there)) => {
                for entry in entries {
                    match there.iter_mut().find(|other| is_same(other, entry, keys)) {
                        Some(other) => merge_at(kind, other, entry, names),
                        None => there.push(entry.clone()),
                    }
                }
            }
            (ListShape::Set, Some(there)) => {
                for entry in entries.iter().filter(|entry| !there.contains(entry)).collect::<Vec<_>>() {
                    there.push(entry.clone());
                }
            }
            (ListShape::Map(_) | ListShape::Set | ListShape::Atomic, _) => *into = from.clone(),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => *into = from.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_by_their_keys_and_new_ones_come_last() {
        let pod = json!({"spec": {"containers": [
            {"name": "a", "image": "a:1", "env": [{"name": "A", "value": "1"}],
                "ports": [{"containerPort": 80, "protocol": "TCP"}]}]}});
        let configuration = json!({"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [
            {"name": "b", "image": "b:1"},
            {"name": "a", "env": [{"name": "B", "value": "2"}, {"name": "A", "value": "3"}],
                "ports": [{"containerPort": 80, "name": "web"}]}]}});
        let expected = json!({"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [
            {"name": "a", "image": "a:1", "env": [{"name": "A", "value": "3"}, {"name": "B", "value": "2"}],
                "ports": [{"containerPort": 80, "protocol": "TCP", "name": "web"}]},
            {"name": "b", "image": "b:1"}]}});
        assert_eq!(lay_over("Pod", &pod, &configuration), Ok(expected));
    }

    #[test]
    fn what_is_one_value_is_refused_with_each_path() {
        let configuration = json!({"spec": {"nodeSelector": {"a": "b"}, "containers": [{"name": "a",
            "args": ["x"], "securityContext": {"capabilities": {"drop": ["ALL"]}},
            "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}]}});
        assert_eq!(
            lay_over("Pod", &json!({}), &configuration),
            Err([
                ".spec.nodeSelector",
                ".spec.containers[0].args",
                ".spec.containers[0].securityContext.capabilities.drop",
                ".spec.containers[0].env[0].valueFrom.secretKeyRef",
            ]
            .map(str::to_owned)
            .to_vec())
        );
    }
}
