//! What the API server tells: watch streams, single objects and lists, audit records, Kubernetes Events (node-logs §4).

use crate::evidence::{Draft, Name, Payload, PodHint, Sink, Skipped, Witness};
use crate::klog::{event as kube_event, field_path_container};
use crate::pod_json;
use crate::stamp::Stamp;
use crate::verb::Verb;
use serde_json::{Map, Value};

fn text(value: &Value, key: &str) -> Option<Name> {
    value.get(key).and_then(Value::as_str).filter(|t| !t.is_empty()).map(Name::from)
}

fn kind(value: &Value) -> &str {
    value.get("kind").and_then(Value::as_str).unwrap_or_default()
}

/// Reads an object if it is one of the API's: a watch event, a pod, an Event, an audit record, a list of these.
pub fn from_json(object: &Map<String, Value>, line: u64, sink: &mut Sink) -> bool {
    if let (Some(change), Some(inner)) = (object.get("type").and_then(Value::as_str), object.get("object")) {
        if !matches!(change, "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR" | "SYNC") {
            return false;
        }
        sink.recognised += 1;
        if matches!(change, "BOOKMARK" | "ERROR") {
            sink.skip(Skipped::NothingSaid);
            return true;
        }
        one(inner, Some(change), line, sink);
        return true;
    }
    let value = Value::Object(object.clone());
    if kind(&value) == "Event" && value.get("auditID").is_some() {
        sink.recognised += 1;
        audit(&value, line, sink);
        return true;
    }
    if let Some(items) = object.get("items").and_then(Value::as_array) {
        let list_kind = kind(&value).to_owned();
        if !list_kind.ends_with("List") && !list_kind.is_empty() {
            return false;
        }
        sink.recognised += 1;
        for item in items {
            let mut item = item.clone();
            // Items of a typed list have no kind of their own.
            if kind(&item).is_empty()
                && let Some(map) = item.as_object_mut()
            {
                let of = list_kind.strip_suffix("List").filter(|k| !k.is_empty()).unwrap_or("Pod");
                map.insert("kind".to_owned(), Value::from(of));
            }
            if item.get("auditID").is_some() {
                audit(&item, line, sink);
            } else {
                one(&item, None, line, sink);
            }
        }
        return true;
    }
    match kind(&value) {
        "Pod" | "Event" => {
            sink.recognised += 1;
            one(&value, None, line, sink);
            true
        }
        "" => false,
        _ if value.get("apiVersion").is_some() && value.get("metadata").is_some() => {
            sink.recognised += 1;
            sink.skip(Skipped::OtherObject);
            true
        }
        _ => false,
    }
}

fn one(value: &Value, change: Option<&str>, line: u64, sink: &mut Sink) {
    match kind(value) {
        "Pod" => pod(value, change, line, sink),
        "Event" => {
            if change != Some("DELETED") {
                event(value, line, sink);
            }
        }
        _ => sink.skip(Skipped::OtherObject),
    }
}

fn hint(metadata: &Value) -> PodHint {
    PodHint {
        uid: text(metadata, "uid"),
        namespace: text(metadata, "namespace"),
        name: text(metadata, "name"),
        cut: false,
    }
}

/// A pod object. A watch has no times of its own: the latest one in the object is not before what it shows.
fn pod(value: &Value, change: Option<&str>, line: u64, sink: &mut Sink) {
    let metadata = value.get("metadata").unwrap_or(&Value::Null);
    let verb = if change == Some("DELETED") { Verb::PodDeleted } else { Verb::PodApplied };
    let mut draft = Draft::new(verb, Witness::Api, line);
    draft.pod = hint(metadata);
    let object = pod_json::object(value, sink);
    draft.when = latest(value, change);
    draft.payload = Payload::Object(Box::new(object));
    sink.push(draft);
}

/// The latest time that an object itself bears. A deletion stamp is a deadline: the request was before it.
fn latest(value: &Value, change: Option<&str>) -> Option<Stamp> {
    let metadata = value.get("metadata")?;
    let mut best = pod_json::stamp(metadata, "creationTimestamp");
    let mut take = |stamp: Option<Stamp>| {
        if let Some(s) = stamp
            && best.is_none_or(|b| b.moment(0, 0) < s.moment(0, 0))
        {
            best = Some(s);
        }
    };
    if change != Some("ADDED") || value.get("status").is_some() {
        for managed in metadata.get("managedFields").and_then(Value::as_array).into_iter().flatten() {
            take(pod_json::stamp(managed, "time"));
        }
        let status = value.get("status").unwrap_or(&Value::Null);
        for condition in status.get("conditions").and_then(Value::as_array).into_iter().flatten() {
            take(pod_json::stamp(condition, "lastTransitionTime"));
        }
        for key in ["initContainerStatuses", "containerStatuses"] {
            for container in status.get(key).and_then(Value::as_array).into_iter().flatten() {
                let state = container.get("state").and_then(Value::as_object);
                for inner in state.into_iter().flat_map(Map::values) {
                    take(pod_json::stamp(inner, "startedAt"));
                    take(pod_json::stamp(inner, "finishedAt"));
                }
            }
        }
        if let Some(deadline) = pod_json::stamp(metadata, "deletionTimestamp") {
            let grace = metadata.get("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
            let asked = deadline.moment(1970, 0).plus(-grace.saturating_mul(crate::stamp::SECOND));
            take(Some(Stamp::at(asked, 0)));
        }
    }
    best
}

/// A Kubernetes Event. Of a compressed one only the first and the last time are known.
fn event(value: &Value, line: u64, sink: &mut Sink) {
    let regarding = value.get("involvedObject").or_else(|| value.get("regarding")).unwrap_or(&Value::Null);
    if !matches!(kind(regarding), "Pod" | "") {
        sink.skip(Skipped::NothingSaid);
        return;
    }
    let reason = text(value, "reason").unwrap_or_else(|| "".into());
    let message = text(value, "message").or_else(|| text(value, "note")).unwrap_or_else(|| "".into());
    let Some(verb) = kube_event(reason.as_bytes(), message.as_bytes()) else {
        sink.skip(Skipped::NothingSaid);
        return;
    };
    let first = ["eventTime", "firstTimestamp", "deprecatedFirstTimestamp"];
    let last = ["lastTimestamp", "deprecatedLastTimestamp"];
    let time = |keys: &[&str]| keys.iter().find_map(|k| pod_json::stamp(value, k));
    let mut draft = Draft::new(verb, Witness::Events, line);
    draft.when = time(&first).or_else(|| time(&last));
    draft.pod = hint(regarding);
    draft.container.name =
        text(regarding, "fieldPath").and_then(|p| field_path_container(p.as_bytes()).map(crate::scan::name));
    draft.container.sandbox = draft.container.name.is_some().then_some(false);
    crate::events_table::detail(&mut draft, message.as_bytes());
    let count = value.get("count").and_then(Value::as_i64).unwrap_or(1);
    let again = time(&last).filter(|l| count > 1 && Some(*l) != draft.when);
    sink.push(draft.clone());
    if let Some(last) = again {
        draft.when = Some(last);
        sink.push(draft);
        if count > 2 {
            sink.remark(
                "Events are compressed: of their repetitions only the first and the last time are known",
            );
        }
    }
}

/// An audit record: who asked what about a pod, and what the API then had (node-logs §4).
fn audit(value: &Value, line: u64, sink: &mut Sink) {
    if value.get("stage").and_then(Value::as_str).is_some_and(|s| s != "ResponseComplete") {
        sink.skip(Skipped::NothingSaid);
        return;
    }
    let target = value.get("objectRef").unwrap_or(&Value::Null);
    let code = value.get("responseStatus").and_then(|s| s.get("code")).and_then(Value::as_i64).unwrap_or(200);
    if target.get("resource").and_then(Value::as_str) != Some("pods") || !(200..300).contains(&code) {
        sink.skip(Skipped::NothingSaid);
        return;
    }
    let when = pod_json::stamp(value, "stageTimestamp")
        .or_else(|| pod_json::stamp(value, "requestReceivedTimestamp"));
    let response = value.get("responseObject");
    let mut draft = Draft::new(Verb::ApiRequest, Witness::Audit, line);
    draft.when = when;
    draft.pod = hint(target);
    // A pod created with generateName has its name only in the answer.
    if let Some(metadata) = response.filter(|r| kind(r) == "Pod").and_then(|r| r.get("metadata")) {
        let named = hint(metadata);
        draft.pod.uid = draft.pod.uid.or(named.uid);
        draft.pod.name = draft.pod.name.or(named.name);
    }
    let verb = value.get("verb").and_then(Value::as_str).unwrap_or_default();
    let subresource = target.get("subresource").and_then(Value::as_str).unwrap_or_default();
    let request = value.get("requestObject").unwrap_or(&Value::Null);
    match (verb, subresource) {
        ("patch" | "update", "status") => {
            draft.verb = Verb::StatusPatched;
            if draft.pod.uid.is_none() {
                draft.pod.uid = request.get("metadata").and_then(|m| text(m, "uid"));
            }
            draft.payload =
                pod_json::status(request, sink).map_or(Payload::Nothing, |s| Payload::Status(Box::new(s)));
        }
        ("create" | "update" | "patch", "" | "resize" | "dynamic" | "ephemeralcontainers" | "binding") => {
            draft.payload = match response.filter(|r| kind(r) == "Pod") {
                Some(pod) => Payload::Object(Box::new(pod_json::object(pod, sink))),
                None => Payload::Text(format!("{verb} {subresource}").trim().into()),
            };
        }
        ("delete", _) | ("create", "eviction") => {
            let options = request.get("deleteOptions").unwrap_or(request);
            let grace = options.get("gracePeriodSeconds").and_then(Value::as_i64);
            draft.payload = match response.filter(|r| kind(r) == "Pod" && r.get("spec").is_some()) {
                Some(pod) => Payload::Object(Box::new(pod_json::object(pod, sink))),
                None => grace.map_or_else(|| Payload::Text(verb.into()), Payload::Grace),
            };
            if grace == Some(0) {
                draft.verb = Verb::PodDeleted;
            }
        }
        _ => {
            sink.skip(Skipped::NothingSaid);
            return;
        }
    }
    sink.push(draft);
}
