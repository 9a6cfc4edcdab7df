//! A pod of a folded node, stage by stage, as YAML.

use crate::pods;
use crate::yaml;
use nodefold_core::Node;
use nodefold_core::ids::PodUid;
use nodefold_core::resources::{ResourceList, Resources};
use nodefold_core::state::{ContainerState, InstancePhase, PodState, SandboxPhase, VolumePhase, VolumeState};
use serde_json::{Map, Value, json};

/// A stage of a pod's state.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// What its source asks for.
    Desired,
    /// What the node has accepted.
    Allocated,
    /// What the node has asked the host for.
    Actuated,
    /// What is known of the host.
    Actual,
    /// What the API is told.
    Published,
}

impl Stage {
    /// All of them, in order.
    pub const ALL: [Stage; 5] =
        [Stage::Desired, Stage::Allocated, Stage::Actuated, Stage::Actual, Stage::Published];

    /// As people call it.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Desired => "desired",
            Stage::Allocated => "allocated",
            Stage::Actuated => "actuated",
            Stage::Actual => "actual",
            Stage::Published => "published",
        }
    }
}

/// The pods that a node knows: names, each once, and their UIDs.
pub fn pods(node: &Node) -> Vec<(String, PodUid)> {
    let named = |uid: PodUid| Some((node.desired(uid)?, uid));
    let mut all: Vec<(String, PodUid)> = node
        .pods()
        .into_iter()
        .filter_map(named)
        .map(|(pod, uid)| (format!("{}/{}", pod.namespace, pod.name), uid))
        .collect();
    // Two lives of a static pod's name: the second is told by its UID too.
    for i in 1..all.len() {
        if all[..i].iter().any(|(name, _)| *name == all[i].0) {
            all[i].0 = format!("{} {}", all[i].0, all[i].1);
        }
    }
    all
}

/// A stage of a pod; empty if there is nothing.
pub fn document(node: &Node, pod: &str, stage: Stage) -> String {
    let Some((_, uid)) = pods(node).into_iter().find(|(name, _)| name == pod) else { return String::new() };
    let of_kubernetes = |part: &str| pods::state(node, uid).map_or(Value::Null, |state| state[part].clone());
    let value = match stage {
        Stage::Desired => of_kubernetes("desired"),
        Stage::Allocated => of_kubernetes("allocated"),
        Stage::Published => of_kubernetes("status")["status"].clone(),
        Stage::Actuated => node.pod(uid).map_or(Value::Null, actuated),
        Stage::Actual => node.pod(uid).map_or(Value::Null, actual),
    };
    if value.is_null() { String::new() } else { yaml::text(&value) }
}

/// What the node has asked for, and what of it is in flight.
fn actuated(pod: &PodState) -> Value {
    let containers: Vec<Value> = pod.containers.iter().map(actuated_container).collect();
    let volumes: Vec<Value> = pod.volumes.iter().map(actuated_volume).collect();
    let sandbox =
        pod.sandbox.as_ref().map(|s| json!({"attempt": s.attempt, "asked": sandbox_asked(&s.phase)}));
    json!({"sandbox": sandbox, "containers": containers, "volumes": volumes})
}

fn sandbox_asked(phase: &SandboxPhase) -> Option<&'static str> {
    match phase {
        SandboxPhase::Creating { .. } => Some("create"),
        SandboxPhase::Stopping { .. } => Some("stop"),
        SandboxPhase::Removing { .. } => Some("remove"),
        SandboxPhase::Ready | SandboxPhase::Dead | SandboxPhase::Unknown | SandboxPhase::Stopped => None,
    }
}

fn actuated_container(container: &ContainerState) -> Value {
    let mut out = named(&container.name, container.incarnation);
    if container.removed.is_some() {
        out.insert("removed".into(), json!(true));
    }
    if let Some(pulling) = &container.pulling {
        out.insert("asked".into(), json!(format!("pull {}", pulling.1)));
    }
    let Some(instance) = &container.instance else { return Value::Object(out) };
    out.insert("attempt".into(), json!(instance.attempt));
    let asked = match instance.phase {
        InstancePhase::Creating { .. } => Some("create"),
        InstancePhase::Starting { .. } => Some("start"),
        InstancePhase::Discarding { .. } => Some("remove"),
        InstancePhase::Created | InstancePhase::Running | InstancePhase::Unknown | InstancePhase::Lost => {
            None
        }
    };
    if let Some(asked) = asked {
        out.insert("asked".into(), json!(asked));
    }
    out.insert("image".into(), json!(&*instance.spec.image));
    out.insert("sandbox".into(), json!(instance.sandbox));
    let mounts: Vec<String> = instance.leases.iter().map(ToString::to_string).collect();
    out.insert("mounts".into(), json!(mounts));
    out.insert("resources".into(), resources(&instance.resources));
    if let Some(resizing) = &instance.resizing {
        out.insert("resizingTo".into(), resources(&resizing.1));
    }
    if let Some(stop) = &instance.stop {
        let sent = stop.kill.map_or(if stop.sent.is_some() { "stop" } else { "due" }, |_| "kill");
        let until = nodefold_k8s::time::format_micro(stop.deadline);
        out.insert("stop".into(), json!({"why": format!("{:?}", stop.why), "sent": sent, "deadline": until}));
    }
    Value::Object(out)
}

fn actuated_volume(volume: &VolumeState) -> Value {
    let mut out = named(&volume.id.name, volume.id.generation);
    if volume.removed.is_some() {
        out.insert("removed".into(), json!(true));
    }
    let asked = match volume.phase {
        VolumePhase::Mounting { .. } => Some("mount"),
        VolumePhase::Unmounting { .. } => Some("unmount"),
        VolumePhase::Mounted if volume.upkeep.refreshing.is_some() => Some("refresh"),
        VolumePhase::Pending | VolumePhase::Mounted | VolumePhase::Failed | VolumePhase::Uncertain => None,
    };
    if let Some(asked) = asked {
        out.insert("asked".into(), json!(asked));
    }
    Value::Object(out)
}

/// What is known of the host.
fn actual(pod: &PodState) -> Value {
    let containers = pod.containers.iter().map(|c| {
        let mut out = named(&c.name, c.incarnation);
        out.insert("state".into(), json!(c.label()));
        if let Some(instance) = &c.instance {
            out.insert("attempt".into(), json!(instance.attempt));
            let started = instance.started_at.map(nodefold_k8s::time::format_micro);
            out.insert("startedAt".into(), json!(started));
        }
        if let Some(last) = &c.last {
            out.insert(
                "last".into(),
                json!({"attempt": last.attempt, "exit": crate::facts::exit(&last.exit)}),
            );
        }
        if c.restarts > 0 {
            out.insert("restarts".into(), json!(c.restarts));
        }
        Value::Object(out)
    });
    let volumes = pod.volumes.iter().map(|v| {
        let mut out = named(&v.id.name, v.id.generation);
        out.insert("state".into(), json!(v.phase.label()));
        if let Some(error) = &v.upkeep.error {
            out.insert("error".into(), json!(&**error));
        }
        if v.stale {
            out.insert("stale".into(), json!(true));
        }
        Value::Object(out)
    });
    let sandbox = pod
        .sandbox
        .as_ref()
        .map(|s| json!({"attempt": s.attempt, "state": s.phase.label(), "ip": s.ip.as_deref()}));
    json!({"pod": pod.label(), "sandbox": sandbox, "containers": containers.collect::<Vec<_>>(),
           "volumes": volumes.collect::<Vec<_>>()})
}

fn named(name: &str, life: u32) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("name".into(), json!(name));
    if life > 0 {
        out.insert("life".into(), json!(life));
    }
    out
}

fn resources(of: &Resources) -> Value {
    let list = |list: &ResourceList| -> Value {
        list.iter().map(|(name, amount)| (name.to_string(), json!(amount))).collect::<Map<_, _>>().into()
    };
    json!({"requests": list(&of.requests), "limits": list(&of.limits)})
}
