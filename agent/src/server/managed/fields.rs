//! Fields as Kubernetes names them in `fieldsV1`: `f:` a field, `k:` an entry of a list-map by its keys, `v:` a member of a set.
//! Which lists are maps, sets or atomic is Kubernetes' declaration (`nodefold_k8s::apply`).

use nodefold_k8s::apply::{ListShape, is_atomic_object, list_shape};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The way to a field, in `fieldsV1` words.
pub type Path = Vec<String>;
/// Fields.
pub type Set = BTreeSet<Path>;

/// What only the server writes, and what names the object.
fn is_system(names: &[&str]) -> bool {
    matches!(
        names,
        ["apiVersion" | "kind"]
            | [
                "metadata",
                "name"
                    | "namespace"
                    | "uid"
                    | "resourceVersion"
                    | "generation"
                    | "creationTimestamp"
                    | "deletionTimestamp"
                    | "deletionGracePeriodSeconds"
                    | "managedFields"
                    | "selfLink"
            ]
    )
}

/// Fields of an object that can be owned, as far as the part of it goes.
pub fn owned_fields(kind: &str, part: &str, object: &Value) -> Set {
    let mut set = Set::new();
    collect(kind, object, &mut Vec::new(), &mut Vec::new(), &mut set);
    // A status is written through its own part, and through no other.
    set.retain(|path| (path[0] == "f:status") == (part == "status"));
    set
}

fn collect<'v>(kind: &str, value: &'v Value, names: &mut Vec<&'v str>, path: &mut Path, out: &mut Set) {
    match value {
        Value::Null => {}
        Value::Object(fields) if !fields.is_empty() && !is_atomic_object(names) => {
            for (name, value) in fields {
                names.push(name);
                if !is_system(names) {
                    path.push(format!("f:{name}"));
                    collect(kind, value, names, path, out);
                    path.pop();
                }
                names.pop();
            }
        }
        Value::Array(entries) if !entries.is_empty() => match list_shape(kind, names) {
            ListShape::Map(keys) => {
                for entry in entries {
                    path.push(key_of(entry, keys));
                    out.insert(path.clone());
                    if let Value::Object(fields) = entry {
                        for (name, value) in fields {
                            names.push(name);
                            path.push(format!("f:{name}"));
                            collect(kind, value, names, path, out);
                            path.pop();
                            names.pop();
                        }
                    }
                    path.pop();
                }
            }
            ListShape::Set => {
                for entry in entries {
                    path.push(format!("v:{entry}"));
                    out.insert(path.clone());
                    path.pop();
                }
            }
            ListShape::Atomic => drop(out.insert(path.clone())),
        },
        Value::Object(_) | Value::Array(_) | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.insert(path.clone());
        }
    }
}

/// `k:{"name":"app"}`. A port without a protocol is TCP's.
pub fn key_of(entry: &Value, keys: &[&str]) -> String {
    let mut fields = Map::new();
    for key in keys {
        let value = match (&entry[*key], *key) {
            (Value::Null, "protocol") => json!("TCP"),
            (value, _) => value.clone(),
        };
        if !value.is_null() {
            fields.insert((*key).to_owned(), value);
        }
    }
    format!("k:{}", Value::Object(fields))
}

/// The place of an entry among others.
pub fn position(entries: &[Value], element: &str) -> Option<usize> {
    if let Some(member) = element.strip_prefix("v:") {
        let member: Value = serde_json::from_str(member).ok()?;
        return entries.iter().position(|entry| *entry == member);
    }
    let keys: Map<String, Value> = serde_json::from_str(element.strip_prefix("k:")?).ok()?;
    let names: Vec<&str> = keys.keys().map(String::as_str).collect();
    entries.iter().position(|entry| key_of(entry, &names) == element)
}

/// What an object has at a path; an entry of a list-map is only there or not.
pub fn leaf_value<'v>(object: &'v Value, path: &Path) -> Option<&'v Value> {
    static THERE: Value = Value::Bool(true);
    let mut value = object;
    for element in path {
        value = match element.strip_prefix("f:") {
            Some(name) => value.get(name)?,
            None => {
                let entries = value.as_array()?;
                &entries[position(entries, element)?]
            }
        };
    }
    match path.last() {
        Some(last) if !last.starts_with("f:") => Some(&THERE),
        Some(_) | None => Some(value),
    }
}

/// As `fieldsV1` writes a set.
pub fn to_json(set: &Set) -> Value {
    let mut root = Map::new();
    for path in set {
        put(&mut root, path);
    }
    Value::Object(root)
}

fn put(into: &mut Map<String, Value>, path: &[String]) {
    let Some((first, rest)) = path.split_first() else { return };
    let below = into.entry(first.clone()).or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(below) = below else { return };
    if rest.is_empty() && first.starts_with("k:") {
        // What has parts of its own says that it is itself a member.
        below.insert(".".to_owned(), json!({}));
    }
    put(below, rest);
}

/// Reads it. What is no such set is empty.
pub fn from_json(fields: &Value) -> Set {
    fn walk(fields: &Map<String, Value>, path: &mut Path, out: &mut Set) {
        for (element, below) in fields {
            if element == "." {
                out.insert(path.clone());
                continue;
            }
            path.push(element.clone());
            match below.as_object() {
                Some(below) if !below.is_empty() => walk(below, path, out),
                Some(_) | None => drop(out.insert(path.clone())),
            }
            path.pop();
        }
    }
    let mut set = Set::new();
    if let Value::Object(fields) = fields {
        walk(fields, &mut Vec::new(), &mut set);
    }
    // `.` of a field that has parts says nothing here: only entries are members by themselves.
    set.retain(|path| !path.is_empty());
    set
}

/// As conflicts name it: `.spec.containers[name="app"].image`.
pub fn spelled(path: &Path) -> String {
    path.iter().fold(String::new(), |text, element| {
        if let Some(name) = element.strip_prefix("f:") {
            return format!("{text}.{name}");
        }
        let keys: Option<Map<String, Value>> =
            element.strip_prefix("k:").and_then(|keys| serde_json::from_str(keys).ok());
        match keys {
            Some(keys) => {
                let pairs: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
                format!("{text}[{}]", pairs.join(","))
            }
            None => format!("{text}[={}]", element.trim_start_matches("v:")),
        }
    })
}
