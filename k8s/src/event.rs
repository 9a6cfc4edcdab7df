//! v1.Event, as a kubelet records them.

use crate::canonical::open;
use crate::time;
use nodefold_core::command::KubernetesEvent;
use nodefold_core::ids::Name;
use nodefold_core::spec::{Container, Pod};
use nodefold_core::time::Time;
use serde_json::{Value, json};
use std::sync::Arc;

/// How often an event was recorded, and when.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// `count`.
    pub count: u32,
    /// `firstTimestamp`; also names the event.
    pub first: Time,
    /// `lastTimestamp`.
    pub last: Time,
}

/// The v1.Event about a pod that this node records.
pub fn event_to_json(event: &KubernetesEvent, pod: &Pod, node_name: &str, recorded: Recorded) -> Value {
    let uid = open(&pod.metadata).shift_remove("uid").unwrap_or_else(|| json!(pod.uid.to_string()));
    let mut involved = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "name": &*pod.name,
        "namespace": &*pod.namespace,
        "uid": uid,
    });
    if let Some(container) = &event.container {
        involved["fieldPath"] = json!(field_path(pod, container));
    }
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": format!("{}.{:x}", pod.name, recorded.first.0),
            "namespace": &*pod.namespace,
            "creationTimestamp": time::format(recorded.first),
        },
        "involvedObject": involved,
        "reason": &*event.reason,
        "message": &*event.message,
        "type": if event.warning { "Warning" } else { "Normal" },
        "source": {"component": "nodefold", "host": node_name},
        "reportingComponent": "nodefold",
        "reportingInstance": node_name,
        "count": recorded.count,
        "firstTimestamp": time::format(recorded.first),
        "lastTimestamp": time::format(recorded.last),
        "eventTime": null,
    })
}

/// Kubernetes' own form of it: `spec.containers{app}`.
fn field_path(pod: &Pod, container: &Name) -> String {
    let among = |list: &[Arc<Container>]| list.iter().any(|c| c.name == *container);
    let list = if among(&pod.spec.init_containers) {
        "initContainers"
    } else if among(&pod.spec.ephemeral_containers) {
        "ephemeralContainers"
    } else {
        "containers"
    };
    format!("spec.{list}{{{container}}}")
}
