//! The core's [`PodStatus`] as Kubernetes writes v1.PodStatus: the same fields present and absent as a
//! kubelet's (compared with recorded ones in the tests), and KEP-6395's `volumeStatuses`. Messages are the
//! core's.
//!
//! `hostIP` is left out: the node isn't told its own address.

use crate::time;
use crate::write_pod::{mount_to_json, resource_list_to_json, resources_to_json};
use nodefold_core::ids::{ContainerId, Name, PodUid};
use nodefold_core::spec::VolumeMount;
use nodefold_core::status::{
    Condition, ConditionKind, ContainerState, ContainerStatus, PodStatus, Terminated, VolumeStatus,
};
use nodefold_core::time::Time;
use serde_json::{Map, Value, json};

/// `status` of the pod with this UID (container IDs name it).
pub fn status_to_json(status: &PodStatus, pod: PodUid) -> Value {
    let mut object = Map::new();
    if status.observed_generation != 0 {
        object.insert("observedGeneration".into(), json!(status.observed_generation));
    }
    object.insert("phase".into(), json!(status.phase.as_str()));
    put_text(&mut object, "reason", &status.reason);
    put_text(&mut object, "message", &status.message);
    if let Some(start_time) = status.start_time {
        object.insert("startTime".into(), json!(time::format(start_time)));
    }
    if let Some(ip) = &status.pod_ip {
        object.insert("podIP".into(), json!(&**ip));
        object.insert("podIPs".into(), json!([{"ip": &**ip}]));
    }
    object.insert("qosClass".into(), json!(status.qos.as_str()));
    put_list(&mut object, "conditions", &status.conditions, condition);
    let container = |c: &ContainerStatus| container_status(c, pod);
    put_list(&mut object, "initContainerStatuses", &status.init_containers, container);
    put_list(&mut object, "containerStatuses", &status.containers, container);
    put_list(&mut object, "ephemeralContainerStatuses", &status.ephemeral_containers, container);
    put_list(&mut object, "volumeStatuses", &status.volumes, volume_status);
    if !status.allocated_resources.is_empty() {
        object.insert("allocatedResources".into(), resource_list_to_json(&status.allocated_resources));
    }
    object.insert("resources".into(), resources_to_json(&status.resources));
    Value::Object(object)
}

/// Keeps the conditions of a stored status that somebody else owns: a node writes its own, and takes none of others'
/// away (kubelet-pods §4.4).
pub fn keep_foreign_conditions(stored: &Value, status: &mut Value) {
    let owned = |kind: &Value| ConditionKind::ALL.iter().any(|own| kind == own.as_str());
    let foreign = stored["conditions"].as_array().into_iter().flatten().filter(|c| !owned(&c["type"]));
    let foreign: Vec<Value> = foreign.cloned().collect();
    if foreign.is_empty() {
        return;
    }
    match status["conditions"].as_array_mut() {
        Some(own) => own.extend(foreign),
        None => status["conditions"] = Value::Array(foreign),
    }
}

/// The condition types that the pod's readiness gates name, and whether each is True.
pub fn readiness_gates(pod: &Value) -> Vec<(Name, bool)> {
    let gates = pod["spec"]["readinessGates"].as_array().into_iter().flatten();
    let conditions = || pod["status"]["conditions"].as_array().into_iter().flatten();
    gates
        .filter_map(|gate| gate["conditionType"].as_str())
        .map(|kind| (kind.into(), conditions().any(|c| c["type"] == kind && c["status"] == "True")))
        .collect()
}

/// The ID by which a container instance is known outside: `nodefold://<pod
/// uid>/<name>/<incarnation>/<attempt>`.
pub fn container_id(pod: PodUid, id: &ContainerId) -> String {
    format!("nodefold://{pod}/{}/{}/{}", id.name, id.incarnation, id.attempt)
}

fn condition(condition: &Condition) -> Value {
    let mut object = Map::new();
    object.insert("type".into(), json!(condition.kind.as_str()));
    object.insert("status".into(), json!(if condition.status { "True" } else { "False" }));
    object.insert("lastProbeTime".into(), Value::Null);
    object.insert("lastTransitionTime".into(), json!(time::format(condition.last_transition)));
    if condition.observed_generation != 0 {
        object.insert("observedGeneration".into(), json!(condition.observed_generation));
    }
    put_text(&mut object, "reason", &condition.reason);
    put_text(&mut object, "message", &condition.message);
    Value::Object(object)
}

fn container_status(status: &ContainerStatus, pod: PodUid) -> Value {
    let mut object = Map::new();
    object.insert("name".into(), json!(&*status.name));
    object.insert("state".into(), state(&status.state, pod));
    let last_state = match &status.last_state {
        Some(ended) => json!({"terminated": terminated(ended, pod)}),
        None => json!({}),
    };
    object.insert("lastState".into(), last_state);
    object.insert("ready".into(), json!(status.ready));
    object.insert("started".into(), json!(status.started));
    object.insert("restartCount".into(), json!(status.restart_count));
    object.insert("image".into(), json!(&*status.image));
    object.insert("imageID".into(), json!(&*status.image_id));
    if let Some(id) = &status.id {
        object.insert("containerID".into(), json!(container_id(pod, id)));
        object.insert("resources".into(), resources_to_json(&status.resources));
    }
    if !status.allocated_resources.is_empty() {
        object.insert("allocatedResources".into(), resource_list_to_json(&status.allocated_resources));
    }
    put_list(&mut object, "volumeMounts", &status.mounts, mount_status);
    Value::Object(object)
}

fn state(state: &ContainerState, pod: PodUid) -> Value {
    match state {
        ContainerState::Waiting { reason, message } => {
            let mut waiting = Map::new();
            put_text(&mut waiting, "reason", reason);
            put_text(&mut waiting, "message", message);
            json!({"waiting": waiting})
        }
        ContainerState::Running { started_at } => {
            json!({"running": {"startedAt": time::format(*started_at)}})
        }
        ContainerState::Terminated(ended) => json!({"terminated": terminated(ended, pod)}),
    }
}

fn terminated(ended: &Terminated, pod: PodUid) -> Value {
    let mut object = Map::new();
    object.insert("exitCode".into(), json!(ended.exit_code));
    if ended.signal != 0 {
        object.insert("signal".into(), json!(ended.signal));
    }
    put_text(&mut object, "reason", &ended.reason);
    put_text(&mut object, "message", &ended.message);
    object.insert("startedAt".into(), or_null(ended.started_at));
    object.insert("finishedAt".into(), or_null(ended.finished_at));
    // Of an end that nobody saw, Kubernetes names no container.
    if let Some(id) = &ended.id {
        object.insert("containerID".into(), json!(container_id(pod, id)));
    }
    Value::Object(object)
}

fn or_null(time: Option<Time>) -> Value {
    time.map_or(Value::Null, |t| json!(time::format(t)))
}

/// `VolumeMountStatus`: what a mount says that can be seen from outside; sub-paths and propagation can't.
fn mount_status(mount: &VolumeMount) -> Value {
    let mut object = mount_to_json(mount);
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|name, _| {
            matches!(name.as_str(), "name" | "mountPath" | "readOnly" | "recursiveReadOnly")
        });
        // Kubernetes says of every read-only mount whether what is mounted below it is read-only too.
        // `IfPossible` is a wish, and not known to be met.
        let recursive = fields.shift_remove("recursiveReadOnly");
        if mount.read_only {
            let enabled = recursive.as_ref().and_then(Value::as_str) == Some("Enabled");
            fields.insert("recursiveReadOnly".into(), json!(if enabled { "Enabled" } else { "Disabled" }));
        }
    }
    object
}

fn volume_status(volume: &VolumeStatus) -> Value {
    let mut object = Map::new();
    object.insert("name".into(), json!(&*volume.name));
    object.insert("hostPhase".into(), json!(volume.phase.as_str()));
    put_text(&mut object, "errorMessage", &volume.error_message);
    Value::Object(object)
}

fn put_text(object: &mut Map<String, Value>, name: &str, text: &str) {
    if !text.is_empty() {
        object.insert(name.to_owned(), json!(text));
    }
}

fn put_list<T>(object: &mut Map<String, Value>, name: &str, items: &[T], write: impl Fn(&T) -> Value) {
    if !items.is_empty() {
        object.insert(name.to_owned(), items.iter().map(write).collect());
    }
}
