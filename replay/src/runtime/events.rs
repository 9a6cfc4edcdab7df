//! The runtime's own events, as `ctr events` prints them: when tasks really started and exited.

use crate::evidence::{Draft, Payload, Sink, Skipped, Witness};
use crate::pod_json;
use crate::scan::{self, name};
use crate::stamp::Stamp;
use crate::verb::Verb;
use serde_json::Value;

/// `2026-11-30 18:49:56.374519322 +0000 UTC k8s.io /tasks/start {json}`. False: it isn't one.
pub fn read(text: &[u8], line: u64, sink: &mut Sink) -> bool {
    let Some((stamp, len)) = Stamp::rfc3339(text) else { return false };
    let rest = scan::trim_start(&text[len..]);
    let rest = rest.strip_prefix(b"UTC ").unwrap_or(rest);
    let (_, rest) = scan::word(rest);
    let (topic, json) = scan::word(rest);
    if !topic.starts_with(b"/") || !json.starts_with(b"{") {
        return false;
    }
    sink.recognised += 1;
    match serde_json::from_slice::<Value>(json) {
        Ok(value) => topic_event(topic, &value, Some(stamp), line, sink),
        Err(_) => sink.skip(Skipped::BadJson),
    }
    true
}

/// The same as JSON objects: `{"Timestamp":…,"Topic":…,"Event":…}`.
pub fn from_json(object: &serde_json::Map<String, Value>, line: u64, sink: &mut Sink) -> bool {
    let get = |keys: [&str; 2]| keys.iter().find_map(|k| object.get(*k));
    let Some(topic) = get(["Topic", "topic"]).and_then(Value::as_str) else { return false };
    let Some(event) = get(["Event", "event"]) else { return false };
    let stamp =
        get(["Timestamp", "timestamp"]).and_then(Value::as_str).and_then(|t| Stamp::rfc3339(t.as_bytes()));
    sink.recognised += 1;
    topic_event(topic.as_bytes(), event, stamp.map(|(s, _)| s), line, sink);
    true
}

fn topic_event(topic: &[u8], event: &Value, stamp: Option<Stamp>, line: u64, sink: &mut Sink) {
    let text = |key: &str| event.get(key).and_then(Value::as_str);
    let verb = match topic {
        b"/tasks/start" => Verb::ContainerStarted,
        b"/tasks/exit" => Verb::ContainerExited,
        b"/containers/create" | b"/containers/update" => Verb::ContainerCreated,
        b"/containers/delete" => Verb::ContainerRemoved,
        _ => return sink.skip(Skipped::NothingSaid),
    };
    let mut draft = Draft::new(verb, Witness::RuntimeEvents, line);
    draft.when = stamp;
    let id = text("container_id").or_else(|| text("id"));
    // An exec's exit names the container too; its own id differs.
    if verb == Verb::ContainerExited && text("id") != text("container_id") {
        return sink.skip(Skipped::NothingSaid);
    }
    draft.container.id = id.filter(|i| scan::is_runtime_id(i.as_bytes())).map(|i| name(i.as_bytes()));
    if verb == Verb::ContainerExited {
        let code = event.get("exit_status").and_then(Value::as_i64).unwrap_or(0);
        let at = pod_json::stamp(event, "exited_at");
        // The event may be told late; the exit itself has a time.
        draft.when = at.or(draft.when);
        draft.payload = Payload::Exit(Some(code), at);
    }
    if let Some(labels) = event.get("labels") {
        let label = |key: &str| labels.get(key).and_then(Value::as_str).map(|t| name(t.as_bytes()));
        draft.pod.uid = label("io.kubernetes.pod.uid");
        draft.pod.namespace = label("io.kubernetes.pod.namespace");
        draft.pod.name = label("io.kubernetes.pod.name");
        draft.container.name = label("io.kubernetes.container.name");
        if let Some(kind) = label("io.cri-containerd.kind") {
            draft.container.sandbox = Some(&*kind == "sandbox");
        }
    }
    if topic == b"/containers/update" {
        // Told for what its labels join; nothing happened.
        draft.verb = Verb::RuntimeRequest;
    }
    if draft.container.id.is_some() {
        sink.push(draft);
    } else {
        sink.skip(Skipped::NothingSaid);
    }
}
