//! Server-side apply: a manager says what it wants of an object; what it wanted before and wants no more goes, unless somebody
//! else wants it too.

use super::super::ask::Manager;
use super::super::failure::Failure;
use super::fields::{Path, leaf_value, owned_fields, position, spelled};
use super::{Owner, add, owner, read, write};
use nodefold_core::time::Time;
use nodefold_k8s::apply::merge;
use serde_json::Value;

/// The object that a first apply makes.
pub fn applied_new(kind: &str, config: &mut Value, manager: &Manager, now: Time) {
    without_nulls(config);
    let set = owned_fields(kind, "", config);
    let made = owner(manager, "Apply", "", config, now, set);
    write(config, vec![made]);
}

/// The stored object with what the manager wants.
pub fn applied(
    kind: &str,
    part: &str,
    old: &Value,
    mut config: Value,
    manager: &Manager,
    force: bool,
    now: Time,
) -> Result<Value, Failure> {
    if !config["metadata"]["managedFields"].is_null() {
        return Err(Failure::bad_request("metadata.managedFields must be nil"));
    }
    without_nulls(&mut config);
    let wanted = owned_fields(kind, part, &config);
    let mut owners = read(old);
    let mine = |owner: &Owner| owner.is(&manager.0, "Apply", part);

    let mut conflicts = Vec::new();
    for path in &wanted {
        if leaf_value(old, path) == leaf_value(&config, path) {
            continue;
        }
        for other in owners.iter().filter(|owner| !mine(owner) && owner.owns(path)) {
            conflicts.push((told(other), spelled(path)));
        }
    }
    if !conflicts.is_empty() && !force {
        return Err(Failure::apply_conflict(conflicts));
    }

    let mut new = old.clone();
    for field in ["apiVersion", "kind"] {
        if let Some(config) = config.as_object_mut() {
            config.shift_remove(field);
        }
    }
    merge(kind, &mut new, &config);
    let before = owners.iter().find(|owner| mine(owner)).map(|owner| owner.set.clone()).unwrap_or_default();
    let given_up: Vec<&Path> = before.difference(&wanted).collect();
    // An entry goes before its fields: without its key it would not be found.
    for path in given_up.into_iter().filter(|path| !is_key(path)) {
        let within = |other: &&Path| other.len() >= path.len() && other[..path.len()] == path[..];
        let others = owners.iter().filter(|owner| !mine(owner));
        let is_owned = others.clone().any(|owner| owner.set.iter().any(|other| within(&other)));
        if !is_owned && !wanted.iter().any(|other| within(&other)) {
            remove(&mut new, path);
        }
    }

    for other in owners.iter_mut().filter(|owner| !mine(owner)) {
        let taken = |path: &Path| wanted.contains(path) && leaf_value(old, path) != leaf_value(&new, path);
        other.set.retain(|path| !taken(path) && leaf_value(&new, path).is_some());
    }
    let time = owners.iter().find(|owner| mine(owner) && owner.set == wanted).map(|owner| owner.time.clone());
    owners.retain(|owner| !mine(owner));
    let mut made = owner(manager, "Apply", part, &new, now, wanted);
    // Nothing new is wanted: since when stays.
    made.time = time.unwrap_or(made.time);
    add(&mut owners, made);
    write(&mut new, owners);
    Ok(new)
}

/// The field by which an entry is found stays for as long as the entry does.
fn is_key(path: &Path) -> bool {
    let [.., entry, field] = path.as_slice() else { return false };
    let (Some(keys), Some(field)) = (entry.strip_prefix("k:"), field.strip_prefix("f:")) else {
        return false;
    };
    serde_json::from_str::<Value>(keys).is_ok_and(|keys| keys.get(field).is_some())
}

/// As Kubernetes says it.
fn told(other: &Owner) -> String {
    let part = match other.part.as_str() {
        "" => String::new(),
        part => format!(" with subresource {part:?}"),
    };
    match other.operation.as_str() {
        "Update" => format!("conflict with {:?}{part} using {}", other.manager, other.api_version),
        _ => format!("conflict with {:?}{part}", other.manager),
    }
}

fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Value::Array(entries) => entries.iter_mut().for_each(without_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Takes away what is at a path, and objects that are empty then.
fn remove(from: &mut Value, path: &[String]) {
    let Some((first, rest)) = path.split_first() else { return };
    if let Some(name) = first.strip_prefix("f:") {
        let Some(fields) = from.as_object_mut() else { return };
        if rest.is_empty() {
            fields.shift_remove(name);
            return;
        }
        let Some(below) = fields.get_mut(name) else { return };
        remove(below, rest);
        let empty = match below {
            Value::Object(below) => below.is_empty(),
            Value::Array(below) => below.is_empty(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        };
        if empty {
            fields.shift_remove(name);
        }
        return;
    }
    let Some(entries) = from.as_array_mut() else { return };
    let Some(at) = position(entries, first) else { return };
    if rest.is_empty() {
        entries.remove(at);
    } else {
        remove(&mut entries[at], rest);
    }
}
