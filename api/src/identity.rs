//! Whose object a body is (stages 3, 4 and 7 of api-side §0), and what of it only the server writes (stage 8).

use crate::response::Status;
use crate::store::Key;
use crate::view::{at, text};
use serde_json::Value;

/// Stages 3 and 4: the body names the stored object.
pub(crate) fn same_object(key: &Key, old: &Value, new: &Value) -> Result<(), Status> {
    let metadata = at(new, "metadata");
    if text(metadata, "name") != &*key.name {
        let (body, url) = (text(metadata, "name"), &key.name);
        let message = format!("the name of the object ({body}) does not match the name on the URL ({url})");
        return Err(Status::bad_request(message));
    }
    let namespace = text(metadata, "namespace");
    if !namespace.is_empty() && namespace != &*key.namespace {
        let url = &key.namespace;
        let message =
            format!("the namespace of the object ({namespace}) does not match the namespace ({url})");
        return Err(Status::bad_request(message));
    }
    if !text(new, "kind").is_empty() && text(new, "kind") != &*key.kind {
        let message = format!("the object is a {}, not a {}", text(new, "kind"), key.kind);
        return Err(Status::bad_request(message));
    }
    let (uid, stored) = (text(metadata, "uid"), text(at(old, "metadata"), "uid"));
    if !uid.is_empty() && uid != stored {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {stored}");
        return Err(Status::conflict(&key.kind, &key.name, &why));
    }
    Ok(())
}

/// Stage 7: its version, if it names any, is the stored one.
pub(crate) fn same_version(key: &Key, old: &Value, new: &Value) -> Result<(), Status> {
    let version = text(at(new, "metadata"), "resourceVersion");
    if !version.is_empty() && version != text(at(old, "metadata"), "resourceVersion") {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        return Err(Status::conflict(&key.kind, &key.name, why));
    }
    Ok(())
}

/// Stage 8: what only the server writes is the stored object's. Times that the body states are left for M14
/// to judge.
pub(crate) fn keep(old: &Value, new: &mut Value) {
    for field in ["apiVersion", "kind"] {
        new[field] = at(old, field).clone();
    }
    let stored = at(old, "metadata");
    let stated = ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];
    for field in ["namespace", "uid", "resourceVersion", "generation"].into_iter().chain(stated) {
        if stated.contains(&field) && !at(at(new, "metadata"), field).is_null() {
            continue;
        }
        if let Some(value) = stored.get(field) {
            new["metadata"][field] = value.clone();
        } else if let Some(metadata) = new["metadata"].as_object_mut() {
            metadata.shift_remove(field);
        }
    }
}
