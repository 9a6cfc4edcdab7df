//! Records as JSON objects, one a line: for programs. Times are absolute and since the beginning, pods are
//! `namespace/name` with their UID, numbers of 128 bits are text.

use crate::commands;
use crate::facts;
use crate::names::Names;
use nodefold_core::Command;
use nodefold_core::command::{Action, Subject};
use nodefold_core::event::{Event, Fact};
use nodefold_core::ids::{PodUid, Source};
use nodefold_core::time::Time;
use nodefold_harness::Record;
use serde_json::{Map, Value, json};

/// A record as a JSON object.
pub fn record(record: &Record, names: &Names, beginning: Time) -> Value {
    let begun = |kind: &str, at: Time| object(kind, Some(at), beginning);
    match record {
        Record::ScenarioBegan { name, about, at } => {
            with(begun("scenarioBegan", *at), json!({"scenario": name, "about": about}))
        }
        Record::StepBegan { index, line, verb, title, at } => {
            with(begun("stepBegan", *at), json!({"step": index, "line": line, "verb": verb, "title": title}))
        }
        Record::StepEnded { index, at } => with(begun("stepEnded", *at), json!({"step": index})),
        Record::PodNamed { pod, namespace, name } => with(
            object("podNamed", None, beginning),
            json!({"pod": format!("{namespace}/{name}"), "uid": pod.to_string()}),
        ),
        Record::Requested { at, user, what, accepted, message, causes, object } => with(
            begun("requested", *at),
            json!({"user": user, "what": what, "accepted": accepted, "message": message, "causes": causes,
                   "object": without_secrets(object)}),
        ),
        Record::Fact { seq, event } => with(begun("fact", event.at), fact(*seq, event, names)),
        Record::Command { at, command } => with(begun("command", *at), command_json(command, names)),
        Record::Transition { at, transition } => {
            let (kind, subject) = match &transition.subject {
                Subject::Pod => ("pod", String::new()),
                Subject::Sandbox(attempt) => ("sandbox", attempt.to_string()),
                Subject::Container(id) => ("container", id.to_string()),
                Subject::Volume(id) => ("volume", id.to_string()),
            };
            let mut value = with(begun("transition", *at), pod(Some(transition.pod), names));
            value = with(value, json!({"kind": kind, "subject": subject}));
            with(value, json!({"from": &*transition.from, "to": &*transition.to}))
        }
        Record::ProcessEnded { at, pod: uid, container, exit } => with(
            with(begun("processEnded", *at), pod(Some(*uid), names)),
            json!({"subject": container.to_string(), "exitCode": exit.code, "signal": exit.signal,
                   "reason": &*exit.reason}),
        ),
        Record::Crashed { at, host } => with(begun("crashed", *at), json!({"host": host})),
        Record::Held { at, operation } => with(begun("held", *at), json!({"operation": operation})),
        Record::Marked { at, name } => with(begun("marked", *at), json!({"name": &**name})),
        Record::Expectation { index, line, at, held, expected, actual, explanation } => with(
            begun("expectation", *at),
            json!({"step": index, "line": line, "held": held, "expected": expected, "actual": actual,
                   "explanation": explanation}),
        ),
        Record::InvariantBroken { at, violation } => {
            with(begun("invariantBroken", *at), json!({"violation": violation}))
        }
    }
}

/// `{record, time, seconds}`.
pub fn object(kind: &str, at: Option<Time>, beginning: Time) -> Value {
    let mut object = Map::new();
    object.insert("record".into(), json!(kind));
    if let Some(at) = at {
        object.insert("time".into(), json!(nodefold_k8s::time::format_micro(at)));
        object.insert("seconds".into(), json!(at.since(beginning).0 as f64 / 1e9));
    }
    Value::Object(object)
}

/// An object with the fields of another.
pub fn with(mut object: Value, more: Value) -> Value {
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
    object
}

/// `{pod, uid}`, or nothing for what is the node's.
pub fn pod(uid: Option<PodUid>, names: &Names) -> Value {
    match uid {
        Some(uid) if uid != PodUid(0) => json!({"pod": names.full(uid), "uid": uid.to_string()}),
        Some(_) | None => json!({}),
    }
}

/// A fact: its name, what it is about and what it says; a pod that was applied as Kubernetes writes it.
pub fn fact(seq: u64, event: &Event, names: &Names) -> Value {
    let told = facts::told(&event.fact);
    let mut value = with(json!({"seq": seq, "fact": event.fact.name()}), pod(event.fact.pod(), names));
    value = with(value, json!({"subject": told.subject, "op": told.op.map(|op| op.0), "text": told.text}));
    if let Fact::ContainerExited { exit, .. } = &event.fact {
        value = with(value, json!({"exitCode": exit.code, "signal": exit.signal, "reason": &*exit.reason}));
    }
    if let Fact::PodApplied(applied) = &event.fact {
        let source = match applied.source {
            Source::Api => "api",
            Source::File => "file",
        };
        value = with(
            value,
            json!({"source": source, "object": nodefold_k8s::pod_to_json(applied, &applied.spec)}),
        );
    }
    value
}

/// A command: its verb, what it is about, and why it was given.
fn command_json(command: &Command, names: &Names) -> Value {
    let action = &command.action;
    let mut value =
        with(json!({"op": command.op.0, "command": action.verb()}), pod(Some(command.pod), names));
    value = with(
        value,
        json!({"subject": commands::subject(action), "text": commands::detail(action),
               "cause": {"fact": command.cause.event.0, "rule": format!("{:?}", command.cause.rule)}}),
    );
    if let Action::PublishStatus { status, .. } = action {
        value = with(value, json!({"status": nodefold_k8s::status_to_json(status, command.pod)}));
    }
    if let Action::RecordEvent(event) = action {
        let kind = if event.warning { "Warning" } else { "Normal" };
        value = with(value, json!({"type": kind, "reason": &*event.reason, "message": &*event.message}));
        value = with(value, json!({"container": event.container.as_deref()}));
    }
    value
}

/// A Secret's values are nobody's business (S13): their names are told, not their bytes; nor are its annotations, one
/// of which may hold the manifest as it was applied.
fn without_secrets(object: &Value) -> Value {
    let mut object = object.clone();
    if object["kind"] == "Secret" {
        for field in ["data", "stringData"] {
            for value in object[field].as_object_mut().into_iter().flat_map(|map| map.values_mut()) {
                *value = json!("(not shown)");
            }
        }
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("annotations");
        }
    }
    object
}
