//! POST: a new object, with what the API server gives it.

use crate::admission::attributes::Operation;
use crate::call::{Admission, Call};
use crate::response::{Response, Status};
use crate::update::{decoded, defaulted_pod, drop_gated_fields};
use crate::validate::{self, Errors};
use crate::view::{at, spec_list, text};
use crate::{Api, is_cluster_scoped, key};
use nodefold_core::ids::PodUid;
use nodefold_core::time::Time;
use nodefold_k8s::{default_object, qos_class, time};
use serde_json::{Value, json};

pub(crate) fn create(
    api: &mut Api,
    call: &mut Call<'_>,
    now: Time,
    object: &Value,
    uid: PodUid,
) -> Result<Response, Status> {
    let kind = text(object, "kind").to_owned();
    if kind.is_empty() || !object.is_object() {
        return Err(Status::bad_request("the object has no kind: give apiVersion and kind"));
    }
    let mut object = decoded(object.clone(), &kind, call.field_validation, &mut call.warnings)?;
    identify(&mut object, &kind, now, uid)?;
    let metadata = at(&object, "metadata");
    let (namespace, name) = (text(metadata, "namespace").to_owned(), text(metadata, "name").to_owned());
    let key = key(&kind, &namespace, &name);
    if api.store.get(&key).is_some() {
        return Err(Status::already_exists(&kind, &name));
    }

    let admission = Admission::new(api, &key, Operation::Create, "");
    if kind == "Pod" {
        object = defaulted_pod(object)?;
    }
    let mut object = admission.mutate(api, call, &key, &Value::Null, object)?;
    let mut errors = Errors::default();
    if kind == "Pod" {
        if !api.config.gates.dynamic_volumes {
            drop_gated_fields(&mut object, &Value::Null);
        }
        object = defaulted_pod(object)?;
        begin_pod(&mut object, &api.config.node_name);
        validate::create(&object, &api.config, &mut errors);
    } else {
        default_object(&mut object);
        validate::other(&object, &mut errors);
    }
    match errors.into_causes() {
        causes if causes.is_empty() => {}
        causes => return Err(Status::invalid(&kind, &name, causes)),
    }
    admission.validate(api, call, &key, &Value::Null, &object)?;
    let object = api.store.put(key, object, Default::default());
    Ok(Response::Ok { object, created: true })
}

/// Name, namespace, UID and creation time. What only the server sets is dropped from the manifest.
fn identify(object: &mut Value, kind: &str, now: Time, uid: PodUid) -> Result<(), Status> {
    if at(object, "metadata").is_null() {
        object["metadata"] = json!({});
    }
    let Some(metadata) = object["metadata"].as_object_mut() else {
        return Err(Status::bad_request("metadata is not an object"));
    };
    for field in ["resourceVersion", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        metadata.shift_remove(field);
    }
    if is_cluster_scoped(kind) {
        metadata.shift_remove("namespace");
    } else if metadata.get("namespace").and_then(Value::as_str).unwrap_or_default().is_empty() {
        metadata.insert("namespace".to_owned(), json!("default"));
    }
    let given = |field: &str| metadata.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (name, prefix) = (given("name"), given("generateName"));
    if name.is_empty() && !prefix.is_empty() {
        // The server's five random letters, without randomness: the UID's last five digits.
        let digits = uid.to_string();
        metadata.insert("name".to_owned(), json!(format!("{prefix}{}", &digits[digits.len() - 5..])));
    }
    metadata.insert("uid".to_owned(), json!(uid.to_string()));
    metadata.insert("creationTimestamp".to_owned(), json!(time::format(now)));
    Ok(())
}

fn begin_pod(pod: &mut Value, node_name: &str) {
    pod["metadata"]["generation"] = json!(1);
    let unbound =
        text(at(pod, "spec"), "nodeName").is_empty() && spec_list(pod, "schedulingGates").is_empty();
    if unbound && !node_name.is_empty() && at(pod, "spec").is_object() {
        pod["spec"]["nodeName"] = json!(node_name);
    }
    pod["status"] = json!({"phase": "Pending", "qosClass": qos_class(pod).as_str()});
}
