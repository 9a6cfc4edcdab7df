//! The core's pods back to v1.Pod objects. Typed fields win over what the blobs say.

use crate::canonical::open;
use crate::quantity::Quantity;
use crate::time;
use nodefold_core::resources::{ResourceList, ResourceName, Resources};
use nodefold_core::spec::{
    Blob, Container, Pod, PodSpec, PullPolicy, RestartAction, RestartPolicy, RestartRule, TerminalPhase,
    Volume, VolumeMount,
};
use nodefold_core::time::{Nanos, Time};
use nodefold_core::views::Allocated;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The annotation of a pod served as allocated that lists what is retained: a JSON list of
/// `{name, generation, since, source}`, where `source` is the volume as the manifest had it, absent if nobody knows.
pub const RETAINED_ANNOTATION: &str = "nodefold.dev/retained";

/// A v1.Pod with this pod's metadata and that spec: the inverse of [`crate::pod_from_json`], up to key order,
/// the form of quantities, and what that leaves out.
pub fn pod_to_json(pod: &Pod, spec: &PodSpec) -> Value {
    let mut object = Map::new();
    object.insert("apiVersion".into(), json!("v1"));
    object.insert("kind".into(), json!("Pod"));
    object.insert("metadata".into(), Value::Object(metadata(pod)));
    object.insert("spec".into(), spec_to_json(spec));
    if let Some(phase) = pod.api_terminal {
        let phase = match phase {
            TerminalPhase::Succeeded => "Succeeded",
            TerminalPhase::Failed => "Failed",
        };
        object.insert("status".into(), json!({"phase": phase}));
    }
    Value::Object(object)
}

/// What `/allocated` serves: the whole pod as the node admitted it, with an empty status, the generation that
/// was allocated, and what is retained told in [`RETAINED_ANNOTATION`] (absent if nothing is; DESIGN §4 rule
/// 3).
pub fn allocated_to_json(allocated: &Allocated) -> Value {
    let mut object = pod_to_json(&allocated.pod, &allocated.spec);
    object["status"] = json!({});
    object["metadata"]["generation"] = json!(allocated.generation);
    if !allocated.retained.is_empty() {
        let retained: Vec<Value> = allocated
            .retained
            .iter()
            .map(|volume| {
                let mut entry = json!({
                    "name": &*volume.volume.name,
                    "generation": volume.volume.generation,
                    "since": time::format(volume.since),
                });
                if let Some(spec) = &volume.spec {
                    entry["source"] = Value::Object(open(&spec.rest));
                }
                entry
            })
            .collect();
        if !object["metadata"]["annotations"].is_object() {
            object["metadata"]["annotations"] = json!({});
        }
        object["metadata"]["annotations"][RETAINED_ANNOTATION] = json!(Value::Array(retained).to_string());
    }
    object
}

fn metadata(pod: &Pod) -> Map<String, Value> {
    let mut metadata = open(&pod.metadata);
    metadata.insert("name".into(), json!(&*pod.name));
    metadata.insert("namespace".into(), json!(&*pod.namespace));
    // A UID that is no UUID is told as it was: the core's is its hash.
    metadata.entry("uid").or_insert_with(|| json!(pod.uid.to_string()));
    if pod.generation != 0 {
        metadata.insert("generation".into(), json!(pod.generation));
    }
    if pod.created_at != Time(0) {
        metadata.insert("creationTimestamp".into(), json!(time::format(pod.created_at)));
    }
    if let Some(deletion) = &pod.deletion {
        let deleted_at = deletion.requested_at.after(deletion.grace);
        metadata.insert("deletionTimestamp".into(), json!(time::format(deleted_at)));
        metadata.insert("deletionGracePeriodSeconds".into(), json!(deletion.grace.as_secs()));
    }
    metadata
}

fn spec_to_json(spec: &PodSpec) -> Value {
    let mut object = open(&spec.rest);
    object.insert("restartPolicy".into(), json!(restart_policy(spec.restart_policy)));
    put_list(&mut object, "initContainers", &spec.init_containers, container_to_json);
    put_list(&mut object, "containers", &spec.containers, container_to_json);
    put_list(&mut object, "ephemeralContainers", &spec.ephemeral_containers, container_to_json);
    put_list(&mut object, "volumes", &spec.volumes, volume_to_json);
    if let Some(resources) = &spec.resources {
        put_resources(&mut object, resources);
    }
    if !spec.overhead.is_empty() {
        object.insert("overhead".into(), resource_list_to_json(&spec.overhead));
    }
    if spec.priority != 0 {
        object.insert("priority".into(), json!(spec.priority));
    }
    object.insert("terminationGracePeriodSeconds".into(), seconds(spec.termination_grace));
    if let Some(deadline) = spec.active_deadline {
        object.insert("activeDeadlineSeconds".into(), seconds(deadline));
    }
    if spec.host_network {
        object.insert("hostNetwork".into(), json!(true));
    }
    if !spec.readiness_gates.is_empty() {
        let gates = spec.readiness_gates.iter().map(|gate| json!({"conditionType": &**gate}));
        object.insert("readinessGates".into(), gates.collect());
    }
    Value::Object(object)
}

/// A container as the manifest writes it.
pub fn container_to_json(container: &Container) -> Value {
    let mut object = open(&container.rest);
    object.insert("name".into(), json!(&*container.name));
    object.insert("image".into(), json!(&*container.image));
    object.insert("imagePullPolicy".into(), json!(pull_policy(container.pull_policy)));
    if let Some(policy) = container.restart_policy {
        object.insert("restartPolicy".into(), json!(restart_policy(policy)));
    }
    if !container.restart_rules.is_empty() {
        object
            .insert("restartPolicyRules".into(), container.restart_rules.iter().map(restart_rule).collect());
    }
    put_resources(&mut object, &container.resources);
    if !container.mounts.is_empty() {
        object.insert("volumeMounts".into(), container.mounts.iter().map(mount_to_json).collect());
    }
    if container.restart_on_mount_change {
        object.insert("dynamicVolumePolicy".into(), json!({"restartPolicy": "RestartContainer"}));
    }
    Value::Object(object)
}

/// A mount as the manifest writes it.
pub fn mount_to_json(mount: &VolumeMount) -> Value {
    let mut object = open(&mount.rest);
    object.insert("name".into(), json!(&*mount.name));
    object.insert("mountPath".into(), json!(&*mount.mount_path));
    if mount.read_only {
        object.insert("readOnly".into(), json!(true));
    }
    Value::Object(object)
}

/// A volume as the manifest writes it.
pub fn volume_to_json(volume: &Volume) -> Value {
    let mut object = open(&volume.rest);
    object.insert("name".into(), json!(&*volume.name));
    Value::Object(object)
}

/// The fields that a blob holds, for backends.
pub fn blob_to_json(blob: &Blob) -> Value {
    Value::Object(open(blob))
}

/// Requests and limits as Kubernetes writes them, each only if anything is in it.
pub(crate) fn resources_to_json(resources: &Resources) -> Value {
    let mut object = Map::new();
    insert_resources(&mut object, resources);
    Value::Object(object)
}

/// Amounts by resource, each in canonical form.
pub fn resource_list_to_json(list: &ResourceList) -> Value {
    let pairs = list.iter().map(|(name, amount)| {
        let quantity = match name {
            ResourceName::Cpu => Quantity::from_milli(*amount),
            ResourceName::Memory | ResourceName::EphemeralStorage => Quantity::from_bytes(*amount),
            ResourceName::Pods => Quantity::from_units(*amount),
            ResourceName::Other(name) if name.starts_with("hugepages-") => Quantity::from_bytes(*amount),
            ResourceName::Other(_) => Quantity::from_units(*amount),
        };
        (name.as_str().to_owned(), json!(quantity.to_string()))
    });
    Value::Object(pairs.collect())
}

/// `resources` is always written, and keeps what the blob has of it (`claims`).
fn put_resources(object: &mut Map<String, Value>, resources: &Resources) {
    let entry = object.entry("resources").or_insert_with(|| json!({}));
    if let Some(fields) = entry.as_object_mut() {
        insert_resources(fields, resources);
    }
}

fn insert_resources(object: &mut Map<String, Value>, resources: &Resources) {
    for (name, list) in [("limits", &resources.limits), ("requests", &resources.requests)] {
        if !list.is_empty() {
            object.insert(name.to_owned(), resource_list_to_json(list));
        }
    }
}

fn put_list<T>(object: &mut Map<String, Value>, name: &str, items: &[Arc<T>], write: fn(&T) -> Value) {
    if !items.is_empty() {
        object.insert(name.to_owned(), items.iter().map(|item| write(item)).collect());
    }
}

fn seconds(length: Nanos) -> Value {
    json!(length.as_secs())
}

const fn restart_policy(policy: RestartPolicy) -> &'static str {
    match policy {
        RestartPolicy::Always => "Always",
        RestartPolicy::OnFailure => "OnFailure",
        RestartPolicy::Never => "Never",
    }
}

const fn pull_policy(policy: PullPolicy) -> &'static str {
    match policy {
        PullPolicy::Always => "Always",
        PullPolicy::IfNotPresent => "IfNotPresent",
        PullPolicy::Never => "Never",
    }
}

fn restart_rule(rule: &RestartRule) -> Value {
    let action = match rule.action {
        RestartAction::Restart => "Restart",
        RestartAction::RestartAllContainers => "RestartAllContainers",
    };
    let operator = if rule.negated { "NotIn" } else { "In" };
    json!({"action": action, "exitCodes": {"operator": operator, "values": rule.codes}})
}
