//! Who owns which field: `metadata.managedFields`, and server-side apply on top of it.
//!
//! What it does: sets in Kubernetes' own encoding (FieldsV1); list-maps by their keys, sets and atomic values as v1.Pod declares
//! them (`fields.rs`); conflicts, `force`, fields that are given up. What it does not: the node's status writes own nothing;
//! times of defaults; kinds besides Pod have only their metadata's lists declared, all others are atomic.

mod apply;
mod fields;

pub use apply::{applied, applied_new};

use super::ask::Manager;
use fields::{Path, Set, leaf_value, owned_fields, to_json};
use nodefold_core::time::Time;
use nodefold_k8s::time;
use serde_json::{Value, json};

/// An entry of `managedFields`.
#[derive(Clone, Debug)]
struct Owner {
    manager: String,
    operation: String,
    api_version: String,
    part: String,
    time: Value,
    set: Set,
}

impl Owner {
    fn is(&self, manager: &str, operation: &str, part: &str) -> bool {
        self.manager == manager && self.operation == operation && self.part == part
    }

    fn owns(&self, path: &Path) -> bool {
        self.set.contains(path)
    }
}

/// A new object's fields are its maker's, defaults too.
pub fn created(kind: &str, object: &mut Value, manager: &Manager, now: Time) {
    let mut whole = object.clone();
    nodefold_k8s::default_object(&mut whole);
    let set = owned_fields(kind, "", &whole);
    write(object, vec![owner(manager, "Update", "", &whole, now, set)]);
}

/// What a change touches is the changer's from now on.
pub fn updated(kind: &str, part: &str, old: &Value, new: &mut Value, manager: &Manager, now: Time) {
    let mut whole = new.clone();
    nodefold_k8s::default_object(&mut whole);
    let mut owners = read(new);
    let (before, after) = (owned_fields(kind, part, old), owned_fields(kind, part, &whole));
    let touched: Set = after
        .iter()
        .filter(|path| !before.contains(*path) || leaf_value(old, path) != leaf_value(&whole, path))
        .cloned()
        .collect();
    let gone: Set = before.difference(&after).cloned().collect();
    if touched.is_empty() && gone.is_empty() {
        return;
    }
    for owner in &mut owners {
        if !owner.is(&manager.0, "Update", part) {
            owner.set.retain(|path| !touched.contains(path));
        }
        owner.set.retain(|path| !gone.contains(path));
    }
    add(&mut owners, owner(manager, "Update", part, &whole, now, touched));
    write(new, owners);
}

fn owner(manager: &Manager, operation: &str, part: &str, object: &Value, now: Time, set: Set) -> Owner {
    Owner {
        manager: manager.0.clone(),
        operation: operation.to_owned(),
        api_version: object["apiVersion"].as_str().unwrap_or("v1").to_owned(),
        part: part.to_owned(),
        time: json!(time::format(now)),
        set,
    }
}

/// Adds to the entry of the same manager, or makes one.
fn add(owners: &mut Vec<Owner>, new: Owner) {
    if new.set.is_empty() {
        return;
    }
    match owners.iter_mut().find(|owner| owner.is(&new.manager, &new.operation, &new.part)) {
        Some(known) => {
            if !new.set.is_subset(&known.set) {
                known.time = new.time;
            }
            known.set.extend(new.set);
        }
        None => owners.push(new),
    }
}

fn read(object: &Value) -> Vec<Owner> {
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries
        .map(|entry| Owner {
            manager: text(entry, "manager"),
            operation: text(entry, "operation"),
            api_version: text(entry, "apiVersion"),
            part: text(entry, "subresource"),
            time: entry["time"].clone(),
            set: fields::from_json(&entry["fieldsV1"]),
        })
        .collect()
}

fn write(object: &mut Value, owners: Vec<Owner>) {
    let entries: Vec<Value> = owners
        .into_iter()
        .filter(|owner| !owner.set.is_empty())
        .map(|owner| {
            let mut entry = json!({
                "manager": owner.manager, "operation": owner.operation, "apiVersion": owner.api_version,
            });
            if !owner.time.is_null() {
                entry["time"] = owner.time;
            }
            entry["fieldsType"] = json!("FieldsV1");
            entry["fieldsV1"] = to_json(&owner.set);
            if !owner.part.is_empty() {
                entry["subresource"] = json!(owner.part);
            }
            entry
        })
        .collect();
    if object["metadata"].is_object() {
        object["metadata"]["managedFields"] = Value::Array(entries);
    }
}

#[cfg(test)]
mod tests;
