//! What is new in the node's state since the history was told last: compared, not read off single facts, so that what a
//! restarted agent finds out by looking is told like what it heard.

use super::{History, What};
use nodefold_core::Node;
use nodefold_core::command::Subject;
use nodefold_core::event::{Event, Exit, Fact};
use nodefold_core::ids::{ContainerId, Name, PodUid};
use nodefold_core::spec::{PodSpec, VolumeSource};
use nodefold_core::state::{ContainerState, InstancePhase, PodState, VolumePhase};
use nodefold_core::time::Time;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// How containers ended, as facts said: the node's state may have let go of it by the time it is compared.
pub type Exits = BTreeMap<(PodUid, ContainerId), Exit>;

/// The exits that facts tell.
pub fn exit_of(event: &Event, exits: &mut Exits) {
    if let Fact::ContainerExited { pod, container, exit } = &event.fact {
        exits.insert((*pod, container.clone()), exit.clone());
    }
}

/// What these pods' states tell that the history does not know. `at`: when the node knew.
pub fn news(history: &History, node: &Node, pods: &BTreeSet<PodUid>, exits: &Exits, at: Time) -> Vec<What> {
    let mut news = Vec::new();
    for uid in pods {
        match node.pod(*uid) {
            Some(pod) => {
                ended(history, *uid, Some(pod), exits, at, &mut news);
                begun(history, *uid, pod, node.event_count().0, at, &mut news);
            }
            None => {
                ended(history, *uid, None, exits, at, &mut news);
                if history.knows(*uid) {
                    news.push(What::Left { pod: *uid });
                }
            }
        }
    }
    news
}

fn ended(
    history: &History,
    uid: PodUid,
    pod: Option<&PodState>,
    exits: &Exits,
    at: Time,
    news: &mut Vec<What>,
) {
    for subject in history.open(uid) {
        match subject {
            Subject::Container(id) => {
                let state = pod.and_then(|pod| {
                    pod.containers.iter().find(|c| c.name == id.name && c.incarnation == id.incarnation)
                });
                if state.is_some_and(|state| lives(state, id)) {
                    continue;
                }
                let known = exits.get(&(uid, id.clone())).or_else(|| state.and_then(|s| exit_in(s, id)));
                let lost = || Exit {
                    code: 137,
                    signal: None,
                    reason: "ContainerStatusUnknown".into(),
                    started_at: None,
                    finished_at: at,
                };
                let exit = known.cloned().unwrap_or_else(lost);
                news.push(What::Ended { pod: uid, container: id.clone(), exit });
            }
            Subject::Volume(id) => {
                let state = pod.and_then(|pod| pod.volumes.iter().find(|v| v.id == *id));
                if state.is_none_or(|state| matches!(state.phase, VolumePhase::Pending)) {
                    news.push(What::Unmounted { pod: uid, volume: id.clone() });
                }
            }
            Subject::Pod | Subject::Sandbox(_) => {}
        }
    }
}

/// The instance is there still, as far as is known.
fn lives(state: &ContainerState, id: &ContainerId) -> bool {
    state.instance.as_ref().is_some_and(|instance| instance.attempt == id.attempt)
}

fn exit_in<'s>(state: &'s ContainerState, id: &ContainerId) -> Option<&'s Exit> {
    let ends = [&state.last, &state.previous];
    ends.into_iter().flatten().find(|end| end.attempt == id.attempt).map(|end| &end.exit)
}

fn begun(history: &History, uid: PodUid, pod: &PodState, revision: u64, at: Time, news: &mut Vec<What>) {
    let is_open = |subject: &Subject| history.is_open(uid, subject);
    if let Some(allocation) = &pod.allocated
        && history.allocated(uid) != Some(allocation.generation)
    {
        let (generation, spec) = (allocation.generation, told(&allocation.spec));
        news.push(What::Allocated { pod: uid, generation, revision, spec });
    }
    for volume in &pod.volumes {
        if matches!(volume.phase, VolumePhase::Mounted) && !is_open(&Subject::Volume(volume.id.clone())) {
            let source = volume.spec.as_ref().map_or("unknown".into(), |spec| source(&spec.source));
            news.push(What::Mounted { pod: uid, volume: volume.id.clone(), source });
        }
    }
    for container in &pod.containers {
        let running = container.instance.as_ref().filter(|i| matches!(i.phase, InstancePhase::Running));
        if let Some(instance) = running {
            let id = container.id(instance.attempt);
            if !is_open(&Subject::Container(id.clone())) {
                let since = instance.started_at.unwrap_or(at);
                let image = instance.spec.image.clone();
                news.push(What::Started { pod: uid, container: id, image, since });
            }
        }
        // One that began and ended between two looks.
        if let Some(end) = &container.last
            && let Some(since) = end.exit.started_at
            && history.missed(uid, &container.name, container.incarnation, end.attempt)
            && !is_open(&Subject::Container(container.id(end.attempt)))
        {
            let id = container.id(end.attempt);
            let image = end.spec.image.clone();
            news.push(What::Started { pod: uid, container: id.clone(), image, since });
            news.push(What::Ended { pod: uid, container: id, exit: end.exit.clone() });
        }
    }
}

/// An allocated spec in short: what runs, with what, and what it may use.
fn told(spec: &PodSpec) -> Value {
    let lists = [&spec.init_containers, &spec.containers, &spec.ephemeral_containers];
    let containers = lists.into_iter().flatten().map(|container| {
        let mut told = json!({"name": &*container.name, "image": &*container.image});
        let mut amounts = json!({});
        for (field, list) in
            [("requests", &container.resources.requests), ("limits", &container.resources.limits)]
        {
            if !list.is_empty() {
                amounts[field] = nodefold_k8s::resource_list_to_json(list);
            }
        }
        if amounts != json!({}) {
            told["resources"] = amounts;
        }
        let mounts: Vec<&str> = container.mounts.iter().map(|mount| &*mount.name).collect();
        if !mounts.is_empty() {
            told["mounts"] = json!(mounts);
        }
        told
    });
    let containers: Vec<Value> = containers.collect();
    let volumes = spec.volumes.iter().map(|v| json!({"name": &*v.name, "source": &*source(&v.source)}));
    json!({"containers": containers, "volumes": volumes.collect::<Vec<Value>>()})
}

/// As a pod's spec names it.
fn source(source: &VolumeSource) -> Name {
    match source {
        VolumeSource::EmptyDir { .. } => "emptyDir".into(),
        VolumeSource::ConfigMap(_) => "configMap".into(),
        VolumeSource::Secret(_) => "secret".into(),
        VolumeSource::DownwardApi => "downwardAPI".into(),
        VolumeSource::Projected(_) => "projected".into(),
        VolumeSource::Image { .. } => "image".into(),
        VolumeSource::HostPath => "hostPath".into(),
        VolumeSource::Unsupported { kind } => kind.clone(),
    }
}
