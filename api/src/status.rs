//! The node's write on `pods/status`: the status as a whole, except what the API server keeps.

use crate::admission::attributes::Operation;
use crate::call::{Admission, Call};
use crate::response::{Response, Status};
use crate::store::Key;
use crate::validate::Errors;
use crate::view::{
    at, condition_is_true, is_terminal, list, name, named, observed_generation, spec_list, text,
};
use crate::{Api, Body};
use nodefold_core::ids::PodUid;
use serde_json::{Map, Value, json};

pub(crate) fn write(
    api: &mut Api,
    call: &mut Call<'_>,
    key: &Key,
    uid: PodUid,
    status: &Value,
) -> Result<Response, Status> {
    let Some(entry) = api.store.get(key) else { return Err(Status::not_found("Pod", &key.name)) };
    let (uid, stored_uid) = (uid.to_string(), text(at(&entry.object, "metadata"), "uid"));
    if uid != stored_uid {
        let why =
            format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {stored_uid}");
        return Err(Status::conflict("Pod", &key.name, &why));
    }
    if !status.is_object() {
        return Err(Status::bad_request("the status is not an object"));
    }
    let old = entry.object.clone();
    let mut holds = entry.holds.clone();
    let mut status = status.clone();
    keep_fields(at(&old, "status"), &mut status);
    if !api.config.gates.dynamic_volumes && at(at(&old, "status"), "volumeStatuses").is_null() {
        remove(&mut status, "volumeStatuses");
    }

    let mut errors = Errors::default();
    immutable(at(&old, "status"), &status, &mut errors);
    let removal_seen = |container: &str| {
        let known =
            holds.container(container).is_none_or(|removed_at| observed_generation(&status) >= removed_at);
        known && !condition_is_true(&status, "PodResizePending")
    };
    // A server without rules about names in flight can't know of which definition a status speaks while one is pending.
    let may_be_former = !api.config.refuses_names_in_flight && condition_is_true(&status, "PodResizePending");
    if !may_be_former {
        terminated_stay(&old, &status, removal_seen, &mut errors);
    }
    match errors.into_causes() {
        causes if causes.is_empty() => {}
        causes => return Err(Status::invalid("Pod", &key.name, causes)),
    }

    holds.observed(observed_generation(&status));
    if *at(&old, "status") == status {
        return Ok(Response::Ok { object: old, created: false });
    }
    let object = with_status(&old, status);
    let admission = Admission::new(api, key, Operation::Update, "status");
    admission.validate(api, call, key, &old, &object)?;
    Ok(Response::Ok { object: api.store.put(key.clone(), object, holds), created: false })
}

/// The pod with another status. The former one is not copied first: a node writes often.
fn with_status(pod: &Value, status: Value) -> Value {
    let mut fields = Map::new();
    for (name, field) in pod.as_object().into_iter().flatten().filter(|(name, _)| *name != "status") {
        fields.insert(name.clone(), field.clone());
    }
    fields.insert("status".to_owned(), status);
    Value::Object(fields)
}

/// A client's change of a pod's status: of the stored one whatever the change does not name stays, as on any other
/// subresource, and the rest of the pod is not its business.
pub(crate) fn change(api: &mut Api, call: &mut Call<'_>, key: &Key, body: &Body) -> Result<Response, Status> {
    let Some(entry) = api.store.get(key) else { return Err(Status::not_found("Pod", &key.name)) };
    let old = &entry.object;
    let Some(uid) = PodUid::parse_uuid(text(at(old, "metadata"), "uid")) else {
        return Err(Status::bad_request("the stored pod has no UID"));
    };
    let new = crate::update::changed(old, body, call)?;
    let status = at(&new, "status").clone();
    write(api, call, key, uid, &status)
}

/// What a write that doesn't state it leaves as it is: the QoS class, and which generation was observed.
fn keep_fields(old: &Value, new: &mut Value) {
    if text(new, "qosClass").is_empty() {
        take(new, old, "qosClass");
    }
    if observed_generation(new) == 0 {
        take(new, old, "observedGeneration");
    }
    for condition in new.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        let of_its_type = |c: &&Value| text(c, "type") == text(condition, "type");
        let stored = list(old, "conditions").iter().find(of_its_type);
        if let Some(stored) = stored.filter(|_| observed_generation(condition) == 0) {
            take(condition, stored, "observedGeneration");
        }
    }
}

/// S42, and that a terminal phase is never left.
fn immutable(old: &Value, new: &Value, errors: &mut Errors) {
    let (before, after) = (text(old, "qosClass"), text(new, "qosClass"));
    if !before.is_empty() && before != after {
        errors.of("S42").invalid("status.qosClass", &json!(after), "field is immutable");
    }
    let (before, after) = (text(old, "phase"), text(new, "phase"));
    if is_terminal(before) && before != after {
        errors.invalid("status.phase", &json!(after), &format!("{before} is never left"));
    }
}

/// S41: a main container that has ended doesn't come back, unless its restart policy or another definition
/// brings it.
///
/// A removed one never does, once the node has carried the removal out. Until then (not seen yet, or
/// Deferred) it is still allocated and restarts like any other.
fn terminated_stay(old: &Value, status: &Value, removal_seen: impl Fn(&str) -> bool, errors: &mut Errors) {
    let spec = at(old, "spec");
    // The index told is the stored list's, as upstream.
    for (i, before) in list(at(old, "status"), "containerStatuses").iter().enumerate() {
        let ended = |status: &Value| at(at(status, "state"), "terminated").is_object();
        let Some(new) = named(list(status, "containerStatuses"), name(before)) else { continue };
        if !ended(before) || ended(new) {
            continue;
        }
        let container = named(spec_list(old, "containers"), name(new));
        let exit_code = at(at(at(before, "state"), "terminated"), "exitCode").as_i64().unwrap_or(0);
        let may = match container {
            Some(container) => restarts(spec, container, exit_code) || is_redefined(before, new),
            None => !removal_seen(name(new)) && restarts(spec, &Value::Null, exit_code),
        };
        if !may {
            let detail = "may not be transitioned to non-terminated state";
            errors.of("S41").forbidden(format!("status.containerStatuses[{i}].state"), detail);
        }
    }
}

/// The container's restart rules and policy, else the pod's, restart it after this exit.
fn restarts(spec: &Value, container: &Value, exit_code: i64) -> bool {
    let rule = list(container, "restartPolicyRules").iter().any(|rule| {
        let codes = at(rule, "exitCodes");
        let listed = list(codes, "values").iter().any(|c| c.as_i64() == Some(exit_code));
        matches!(text(rule, "action"), "Restart" | "RestartAllContainers")
            && match text(codes, "operator") {
                "In" => listed,
                "NotIn" => !listed,
                _ => false,
            }
    });
    let policy = match text(container, "restartPolicy") {
        "" => text(spec, "restartPolicy"),
        own => own,
    };
    rule || match policy {
        "Never" => false,
        "OnFailure" => exit_code != 0,
        _ => true,
    }
}

/// The status tells of an instance of another definition: what replaces an image, a mount or an amount is a
/// restart that the change asked for, whatever the policy.
fn is_redefined(before: &Value, after: &Value) -> bool {
    ["image", "volumeMounts", "resources", "allocatedResources"].iter().any(|f| at(before, f) != at(after, f))
}

fn take(to: &mut Value, from: &Value, field: &str) {
    match from.get(field) {
        Some(value) => to[field] = value.clone(),
        None => remove(to, field),
    }
}

fn remove(from: &mut Value, field: &str) {
    if let Some(from) = from.as_object_mut() {
        from.shift_remove(field);
    }
}
