//! Pods and their statuses as JSON: what a watch, a list, an audit record or a status patch shows.
//!
//! The spec goes through the boundary (`nodefold_k8s`); the status is read by hand, since the core never reads one.

use crate::evidence::{Name, ObjectSeen, Sink, Skipped, StatusOfContainer, StatusSeen};
use crate::klog::runtime_id;
use crate::scan::name;
use crate::stamp::Stamp;
use nodefold_core::ids::Source;
use nodefold_k8s::{default_pod, pod_from_json};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

fn text(value: &Value, key: &str) -> Option<Name> {
    value.get(key).and_then(Value::as_str).filter(|t| !t.is_empty()).map(Name::from)
}

/// A timestamp field.
pub fn stamp(value: &Value, key: &str) -> Option<Stamp> {
    let text = value.get(key)?.as_str()?;
    Stamp::rfc3339(text.as_bytes()).map(|(s, _)| s)
}

/// A status as JSON has it: of an object or a patch that has `status`, or the status itself. Only what is of use is kept: a busy
/// node's log is full of them, and most of each is conditions.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Written<'a> {
    status: Option<Box<Written<'a>>>,
    #[serde(borrow)]
    phase: Option<Cow<'a, str>>,
    #[serde(borrow)]
    reason: Option<Cow<'a, str>>,
    conditions: Option<Vec<Condition<'a>>>,
    init_container_statuses: Option<Vec<Container<'a>>>,
    container_statuses: Option<Vec<Container<'a>>>,
    ephemeral_container_statuses: Option<Vec<Container<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    status: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Container<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "containerID")]
    container_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    state: Option<States<'a>>,
    #[serde(borrow)]
    last_state: Option<States<'a>>,
    restart_count: Option<u64>,
    volume_mounts: Option<Vec<Mount<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct States<'a> {
    #[serde(borrow)]
    running: Option<State<'a>>,
    #[serde(borrow)]
    waiting: Option<State<'a>>,
    #[serde(borrow)]
    terminated: Option<State<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct State<'a> {
    #[serde(borrow, rename = "containerID")]
    container_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    reason: Option<Cow<'a, str>>,
    exit_code: Option<i64>,
    #[serde(borrow)]
    started_at: Option<Cow<'a, str>>,
    #[serde(borrow)]
    finished_at: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Mount<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
}

fn kept(text: Option<Cow<'_, str>>) -> Option<Name> {
    text.filter(|t| !t.is_empty()).map(|t| Name::from(&*t))
}

fn at(text: Option<&Cow<'_, str>>) -> Option<Stamp> {
    Stamp::rfc3339(text?.as_bytes()).map(|(s, _)| s)
}

fn id_of(text: Option<&Cow<'_, str>>) -> Option<Name> {
    text.filter(|t| !t.is_empty()).map(|t| name(runtime_id(t.as_bytes())))
}

/// Reads a status, of an object or a patch that has `status` or is one.
pub fn status<'de, D: Deserializer<'de>>(from: D, sink: &mut Sink) -> Result<StatusSeen, D::Error> {
    let outer = Written::deserialize(from)?;
    let status = match outer.status {
        Some(inner) => *inner,
        None => outer,
    };
    let ready = status.conditions.iter().flatten().find(|c| c.kind.as_deref() == Some("Ready"));
    let mut seen = StatusSeen {
        ready: ready.and_then(|c| c.status.as_deref()).map(|s| s == "True"),
        phase: kept(status.phase),
        reason: kept(status.reason),
        containers: Vec::new(),
    };
    for (list, init) in [
        (status.init_container_statuses, true),
        (status.container_statuses, false),
        (status.ephemeral_container_statuses, false),
    ] {
        seen.containers.extend(list.into_iter().flatten().map(|one| container(one, init)));
    }
    for container in &seen.containers {
        if let Some(at) = container.finished_at.or(container.started_at)
            && let Some(year) = at.year
        {
            sink.years.push((year, at.month));
        }
    }
    Ok(seen)
}

/// Reads a status from its text. Where a field is not what it should be (somebody's hand, another writer), the rest counts.
pub fn status_text(json: &[u8], sink: &mut Sink) -> Result<StatusSeen, serde_json::Error> {
    // Whether all is text is cheaper asked once than of each string in it.
    let typed = match str::from_utf8(json) {
        Ok(text) => status(&mut serde_json::Deserializer::from_str(text), sink),
        Err(_) => status(&mut serde_json::Deserializer::from_slice(json), sink),
    };
    typed.or_else(|_| status(&tidied(serde_json::from_slice(json)?, false), sink))
}

/// The value without what the types above could not hold.
fn tidied(value: Value, condition: bool) -> Value {
    let fits = |key: &str, value: &Value| match key {
        "phase" | "reason" | "name" | "type" | "containerID" | "startedAt" | "finishedAt" => {
            value.is_string()
        }
        "status" if condition => value.is_string(),
        "status" | "state" | "lastState" | "running" | "waiting" | "terminated" => value.is_object(),
        "restartCount" => value.is_u64(),
        "exitCode" => value.is_i64(),
        "conditions"
        | "volumeMounts"
        | "containerStatuses"
        | "initContainerStatuses"
        | "ephemeralContainerStatuses" => value.is_array(),
        _ => true,
    };
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(key, value)| fits(key, value));
            Value::Object(
                kept.map(|(key, value)| {
                    let of = key == "conditions";
                    (key, tidied(value, of))
                })
                .collect(),
            )
        }
        Value::Array(list) => {
            list.into_iter().filter(Value::is_object).map(|one| tidied(one, condition)).collect()
        }
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => plain,
    }
}

fn container(one: Container<'_>, init: bool) -> StatusOfContainer {
    let states = one.state.unwrap_or_default();
    let (kind, inner) = match (states.running, states.terminated, states.waiting) {
        (Some(state), _, _) => (Some("running"), Some(state)),
        (None, Some(state), _) => (Some("terminated"), Some(state)),
        (None, None, Some(state)) => (Some("waiting"), Some(state)),
        (None, None, None) => (None, None),
    };
    let inner = inner.unwrap_or_default();
    let last = one.last_state.and_then(|l| l.terminated).and_then(|t| {
        Some((id_of(t.container_id.as_ref())?, t.exit_code.unwrap_or(0), at(t.finished_at.as_ref())))
    });
    StatusOfContainer {
        name: kept(one.name),
        // Of a terminated state its own id counts: `containerID` may already be the next instance's.
        id: id_of(inner.container_id.as_ref()).or_else(|| id_of(one.container_id.as_ref())),
        state: kind,
        exit_code: inner.exit_code,
        started_at: at(inner.started_at.as_ref()),
        finished_at: at(inner.finished_at.as_ref()),
        reason: kept(inner.reason),
        last,
        restarts: one.restart_count.and_then(|n| u32::try_from(n).ok()),
        init,
        mounts: one.volume_mounts.map(|list| list.into_iter().filter_map(|m| kept(m.name)).collect()),
    }
}

/// The list that "Post-termination container state" prints.
pub fn post_termination(value: &Value) -> StatusSeen {
    let mut seen = StatusSeen::default();
    for one in value.as_array().into_iter().flatten() {
        let exited = one.get("State").and_then(Value::as_str) == Some("exited");
        seen.containers.push(StatusOfContainer {
            name: text(one, "Name"),
            state: exited.then_some("terminated"),
            exit_code: one.get("ExitCode").and_then(Value::as_i64),
            finished_at: stamp(one, "FinishedAt"),
            ..StatusOfContainer::default()
        });
    }
    seen
}

/// A pod object.
pub fn object(value: &Value, sink: &mut Sink) -> ObjectSeen {
    let metadata = value.get("metadata").unwrap_or(&Value::Null);
    let spec = value.get("spec").unwrap_or(&Value::Null);
    let annotation = |key: &str| metadata.get("annotations").and_then(|a| text(a, key));
    let mirror_of =
        annotation("kubernetes.io/config.mirror").or_else(|| annotation("kubernetes.io/config.hash"));
    let mut mounts = BTreeMap::new();
    for key in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.get(key).and_then(Value::as_array).into_iter().flatten() {
            if let Some(of) = text(container, "name") {
                let named = |field: &str| {
                    let list = container.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
                    list.iter().filter_map(|m| text(m, "name")).collect::<Vec<_>>()
                };
                let mut all = named("volumeMounts");
                all.extend(named("volumeDevices"));
                mounts.insert(of, all);
            }
        }
    }
    let deletion = stamp(metadata, "deletionTimestamp")
        .map(|at| (at, metadata.get("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0)));
    if let Some(created) = stamp(metadata, "creationTimestamp")
        && let Some(year) = created.year
    {
        sink.years.push((year, created.month));
    }
    ObjectSeen {
        pod: typed(value, sink),
        resource_version: text(metadata, "resourceVersion"),
        deletion,
        finalizers: metadata.get("finalizers").and_then(Value::as_array).is_some_and(|f| !f.is_empty()),
        // What is no status in it is counted with the object, which the boundary refuses then.
        status: status(value, sink)
            .or_else(|_| status(&tidied(value.clone(), false), sink))
            .unwrap_or_default(),
        mounts,
        mirror_of,
        grace: spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64),
        restart_policy: text(spec, "restartPolicy"),
    }
}

/// The core's pod, for what folds it.
fn typed(value: &Value, sink: &mut Sink) -> Option<Arc<nodefold_core::spec::Pod>> {
    value.get("spec")?;
    let mut value = value.clone();
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        // Bookkeeping of field managers is most of an object and nothing to a node.
        metadata.remove("managedFields");
    }
    default_pod(&mut value);
    match pod_from_json(&value, Source::Api) {
        Ok(pod) => Some(Arc::new(pod)),
        Err(_) => {
            sink.skip(Skipped::BadObject);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_a_wrong_type_costs_that_field_only() {
        let whole = r#"{"metadata":{"uid":"u"},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[{"name":"c","containerID":"containerd://a1","restartCount":2,"state":{"terminated":{"exitCode":137,"finishedAt":"2026-01-02T03:04:05Z"}},"volumeMounts":[{"name":"v"}]}]}}"#;
        let read = |json: &str| status_text(json.as_bytes(), &mut Sink::default()).expect("a status");
        assert_eq!(read(whole).containers[0].exit_code, Some(137));
        for (from, to) in [
            (r#""Running""#, "7"),
            (r#""True""#, "true"),
            ("137", r#""137""#),
            (r#""restartCount":2"#, r#""restartCount":-2"#),
            (r#"[{"name":"v"}]"#, r#"["v"]"#),
            (r#""containerd://a1""#, "{}"),
            (r#""2026-01-02T03:04:05Z""#, "5"),
            (r#"[{"type":"Ready","status":"True"}]"#, r#"{"Ready":true}"#),
        ] {
            let seen = read(&whole.replacen(from, to, 1));
            assert_eq!(seen.containers.len(), 1, "{to}");
            assert_eq!(seen.containers[0].name.as_deref(), Some("c"), "{to}");
            assert_eq!(seen.containers[0].state, Some("terminated"), "{to}");
            assert_eq!(seen.phase.is_some(), to != "7", "{to}");
        }
    }
}
