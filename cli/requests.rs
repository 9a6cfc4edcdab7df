//! Requests to the API in words.

use nodefold_agent::server::AUDIT_STREAM;
use nodefold_agent::server::history::{Entry, HISTORY_STREAM};
use nodefold_api::{ApiEvent, Body, Request};
use serde_json::{Value, json};

/// A request as people read it.
pub struct Asked {
    /// The object's namespace and name, if it is about one by name.
    pub object: Option<(String, String)>,
    /// What was asked, in a line.
    pub what: String,
}

/// The request in words.
pub fn asked(event: &ApiEvent) -> Asked {
    match &event.request {
        Request::Create { object, .. } => of_object("create", object),
        Request::Update { object } => of_object("update", object),
        Request::Dynamic { namespace, name, body } => of_pod("dynamic", namespace, name, how(body)),
        Request::Resize { namespace, name, body } => of_pod("resize", namespace, name, how(body)),
        Request::Ephemeral { namespace, name, body } => {
            of_pod("ephemeralcontainers", namespace, name, how(body))
        }
        Request::Delete { kind, namespace, name, grace_seconds, force } => {
            let grace = grace_seconds.map(|seconds| format!(", grace {seconds} s")).unwrap_or_default();
            let force = if *force { ", at once" } else { "" };
            let what = format!("delete {kind} {namespace}/{name}{grace}{force}");
            Asked { object: Some((namespace.to_string(), name.to_string())), what }
        }
        Request::Status { namespace, name, status, .. } => {
            let phase = status["phase"].as_str().unwrap_or("");
            Asked {
                object: Some((namespace.to_string(), name.to_string())),
                what: format!("status of {namespace}/{name}: {phase}"),
            }
        }
        Request::PatchStatus { namespace, name, body } => of_pod("status", namespace, name, how(body)),
        Request::Release { uid } => Asked { object: None, what: format!("release pod {uid}") },
        Request::NodeGates(gates) => Asked {
            object: None,
            what: format!(
                "gates: DynamicContainers={}, DynamicNodeLocalEphemeralVolumes={}",
                gates.dynamic_containers, gates.dynamic_volumes
            ),
        },
    }
}

/// The audit record of a served request, if these are its bytes.
pub fn audited(stream: &str, bytes: &[u8]) -> Option<Value> {
    if stream == AUDIT_STREAM { serde_json::from_slice(bytes).ok() } else { None }
}

/// The record of the history, if these are its bytes.
pub fn happened(stream: &str, bytes: &[u8]) -> Option<Entry> {
    if stream == HISTORY_STREAM { Entry::from_bytes(bytes).ok() } else { None }
}

/// An audit record in words: who, what, whether it was allowed and why, and the answer's code.
pub fn audit_line(record: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let object = &record["object"];
    let what = if object.is_object() {
        let part = match text(&object["subresource"]).as_str() {
            "" => String::new(),
            part => format!("/{part}"),
        };
        let place = [text(&object["namespace"]), text(&object["name"])];
        let place: Vec<&str> = place.iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
        format!("{}{part} {}", text(&object["resource"]), place.join("/"))
    } else {
        text(&record["path"])
    };
    let by = match text(&record["reason"]).as_str() {
        "" => String::new(),
        by => format!(" ({by})"),
    };
    let (user, verb, decision) = (text(&record["user"]), text(&record["verb"]), text(&record["decision"]));
    format!("{user}: {verb} {}: {decision}{by}, {}", what.trim_end(), record["code"])
}

fn of_object(verb: &str, object: &Value) -> Asked {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or("");
    let (kind, namespace, name) = (text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
    let what = format!("{verb} {kind} {namespace}/{name}");
    Asked { object: Some((namespace.to_owned(), name.to_owned())), what }
}

fn of_pod(subresource: &str, namespace: &str, name: &str, how: &str) -> Asked {
    let what = format!("{how} {namespace}/{name} through /{subresource}");
    Asked { object: Some((namespace.to_owned(), name.to_owned())), what }
}

const fn how(body: &Body) -> &'static str {
    match body {
        Body::StrategicMerge(_) | Body::Merge(_) | Body::JsonPatch(_) => "patch",
        Body::Full(_) => "replace",
    }
}

/// What was asked, whole, as JSON.
pub fn to_json(request: &Request) -> Value {
    let pod = |verb: &str, namespace: &str, name: &str, body: &Body| {
        let (form, body) = match body {
            Body::StrategicMerge(patch) => ("strategicMerge", patch),
            Body::Merge(patch) => ("merge", patch),
            Body::JsonPatch(patch) => ("json", patch),
            Body::Full(whole) => ("full", whole),
        };
        json!({"verb": verb, "namespace": namespace, "name": name, "form": form, "body": body})
    };
    match request {
        Request::Create { object, uid } => {
            json!({"verb": "create", "object": object, "uid": uid.to_string()})
        }
        Request::Update { object } => json!({"verb": "update", "object": object}),
        Request::Dynamic { namespace, name, body } => pod("dynamic", namespace, name, body),
        Request::Resize { namespace, name, body } => pod("resize", namespace, name, body),
        Request::Ephemeral { namespace, name, body } => pod("ephemeral", namespace, name, body),
        Request::Delete { kind, namespace, name, grace_seconds, force } => json!({
            "verb": "delete", "kind": &**kind, "namespace": &**namespace, "name": &**name,
            "gracePeriodSeconds": grace_seconds, "force": force,
        }),
        Request::Status { namespace, name, uid, status } => json!({
            "verb": "status", "namespace": &**namespace, "name": &**name, "uid": uid.to_string(), "status": status,
        }),
        Request::PatchStatus { namespace, name, body } => pod("patchStatus", namespace, name, body),
        Request::Release { uid } => json!({"verb": "release", "uid": uid.to_string()}),
        Request::NodeGates(gates) => json!({
            "verb": "gates", "DynamicContainers": gates.dynamic_containers,
            "DynamicNodeLocalEphemeralVolumes": gates.dynamic_volumes,
        }),
    }
}
