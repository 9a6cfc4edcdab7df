//! Pods and their statuses as JSON: what a watch, a list, an audit record or a status patch shows.
//!
//! The spec goes through the boundary (`nodefold_k8s`); the status is read by hand, since the core never reads one.

use crate::evidence::{Name, ObjectSeen, Sink, Skipped, StatusOfContainer, StatusSeen};
use crate::klog::runtime_id;
use crate::scan::name;
use crate::stamp::Stamp;
use nodefold_core::ids::Source;
use nodefold_k8s::{default_pod, pod_from_json};
use serde_json::Value;
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

/// A status, of an object or a patch that has `status` or is one.
pub fn status(value: &Value, sink: &mut Sink) -> StatusSeen {
    let status = value.get("status").unwrap_or(value);
    let mut seen = StatusSeen {
        phase: text(status, "phase"),
        reason: text(status, "reason"),
        containers: Vec::new(),
        ready: None,
    };
    if let Some(conditions) = status.get("conditions").and_then(Value::as_array) {
        let ready = conditions.iter().find(|c| c.get("type").and_then(Value::as_str) == Some("Ready"));
        seen.ready = ready.and_then(|c| c.get("status")).and_then(Value::as_str).map(|s| s == "True");
    }
    for (key, init) in
        [("initContainerStatuses", true), ("containerStatuses", false), ("ephemeralContainerStatuses", false)]
    {
        for one in status.get(key).and_then(Value::as_array).into_iter().flatten() {
            seen.containers.push(container(one, init));
        }
    }
    for container in &seen.containers {
        if let Some(at) = container.finished_at.or(container.started_at)
            && let Some(year) = at.year
        {
            sink.years.push((year, at.month));
        }
    }
    seen
}

fn container(value: &Value, init: bool) -> StatusOfContainer {
    let state = value.get("state").and_then(Value::as_object);
    let (kind, inner) = match state.and_then(|s| s.iter().find(|(_, v)| v.is_object())) {
        Some((k, v)) if k == "running" => (Some("running"), Some(v)),
        Some((k, v)) if k == "terminated" => (Some("terminated"), Some(v)),
        Some((k, v)) if k == "waiting" => (Some("waiting"), Some(v)),
        Some(_) | None => (None, None),
    };
    let id_of = |v: &Value| {
        let id = v.get("containerID")?.as_str()?;
        (!id.is_empty()).then(|| name(runtime_id(id.as_bytes())))
    };
    let last = value.get("lastState").and_then(|l| l.get("terminated")).and_then(|t| {
        Some((id_of(t)?, t.get("exitCode").and_then(Value::as_i64).unwrap_or(0), stamp(t, "finishedAt")))
    });
    StatusOfContainer {
        name: text(value, "name"),
        // Of a terminated state its own id counts: `containerID` may already be the next instance's.
        id: inner.and_then(id_of).or_else(|| id_of(value)),
        state: kind,
        reason: inner.and_then(|v| text(v, "reason")),
        exit_code: inner.and_then(|v| v.get("exitCode")).and_then(Value::as_i64),
        started_at: inner.and_then(|v| stamp(v, "startedAt")),
        finished_at: inner.and_then(|v| stamp(v, "finishedAt")),
        last,
        restarts: value.get("restartCount").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok()),
        init,
        mounts: value
            .get("volumeMounts")
            .and_then(Value::as_array)
            .map(|list| list.iter().filter_map(|m| text(m, "name")).collect()),
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
        status: status(value, sink),
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
