//! Users: what they ask of the API and of the node's manifest files, made up from what is stored at that moment, so that
//! most of it is allowed and some of it is not.

use super::chance::Chance;
use super::kind::Kind;
use super::manifest::{self, MAINS, OBJECTS, VOLUMES};
use super::profile::Profile;
use crate::scenario::{DeleteTarget, PodRef, Verb};
use crate::world::Server;
use serde_json::{Map, Value, json};

const PODS: [&str; 4] = ["web", "job", "db", "worker"];
const STATIC: &str = "static";

/// What they ask now, if there is anything to ask for.
pub fn ask(kind: Kind, chance: &mut dyn Chance, profile: &Profile, server: &Server) -> Vec<Verb> {
    match kind {
        Kind::Create => create(chance, profile, server),
        Kind::StaticPod => static_pod(chance, profile, server),
        Kind::ObjectChanged => object_changed(chance),
        Kind::ObjectDeleted => object_deleted(chance, server),
        Kind::Dynamic => with_pod(chance, server, |chance, pod, name| {
            vec![Verb::Dynamic(name, dynamic(chance, profile, pod))]
        }),
        Kind::Resize => with_pod(chance, server, |chance, pod, name| {
            let resized = one_container(chance, pod)
                .map(|container| json!({"name": container, "resources": manifest::resources(chance)}));
            let patch = json!({"spec": {"containers": [resized]}});
            vec![Verb::Resize(name, patch)]
        }),
        Kind::Ephemeral => with_pod(chance, server, |chance, pod, name| {
            let volumes = names(&pod["spec"]["volumes"]);
            let mounts: Vec<Value> =
                volumes.iter().filter(|_| chance.once_in(1, 2)).map(|v| manifest::mount(v)).collect();
            let debugger = format!("debug{}", chance.below(3));
            let debugger =
                json!({"name": debugger, "image": manifest::image(chance), "volumeMounts": mounts});
            vec![Verb::Ephemeral(name, json!({"spec": {"ephemeralContainers": [debugger]}}))]
        }),
        Kind::Update => with_pod(chance, server, |chance, pod, _| vec![Verb::Update(updated(chance, pod))]),
        Kind::Delete => with_pod(chance, server, |chance, _, name| {
            let grace_seconds = chance.once_in(1, 3).then(|| chance.below(12));
            let mirror = server.is_file(&name) && chance.once_in(2, 3);
            vec![Verb::Delete(DeleteTarget { grace_seconds, mirror, ..target("Pod", &name) })]
        }),
        Kind::ForceDelete => with_pod(chance, server, |_, _, name| {
            vec![Verb::Delete(DeleteTarget { force: true, ..target("Pod", &name) })]
        }),
        Kind::Invalid => with_pod(chance, server, invalid),
        // Faults are the world's.
        Kind::FailFinal
        | Kind::FailTransient
        | Kind::FailUncertain
        | Kind::TimeoutDone
        | Kind::Slow
        | Kind::LateAnswer
        | Kind::AnswerTwice
        | Kind::AnswerAfterCrash
        | Kind::StopSlow
        | Kind::StopIgnored
        | Kind::Exit
        | Kind::Probe
        | Kind::Usage
        | Kind::WatchDelayed
        | Kind::WatchCoalesced
        | Kind::WatchDisconnected
        | Kind::StatusLost
        | Kind::StatusUncertain
        | Kind::StatusConflict
        | Kind::Forbidden
        | Kind::ObjectMissing
        | Kind::ImageMissing
        | Kind::ListPartial
        | Kind::ListFailed
        | Kind::SandboxDies
        | Kind::Crash
        | Kind::CrashInside
        | Kind::CrashLoop
        | Kind::Reboot
        | Kind::Capacity
        | Kind::Labels
        | Kind::Gates
        | Kind::ClockForward
        | Kind::ClockBack
        | Kind::DiskFull
        | Kind::Reorder => Vec::new(),
    }
}

fn target(kind: &str, name: &PodRef) -> DeleteTarget {
    DeleteTarget {
        kind: kind.to_owned(),
        namespace: name.namespace.clone(),
        name: name.name.clone(),
        grace_seconds: None,
        force: false,
        mirror: false,
    }
}

fn in_default(name: &str) -> PodRef {
    PodRef { namespace: "default".into(), name: name.to_owned() }
}

/// A new pod under one of the run's names, and what its volumes need, unless that comes later.
fn create(chance: &mut dyn Chance, profile: &Profile, server: &Server) -> Vec<Verb> {
    let name = PODS[chance.below(profile.pods) as usize];
    // The name may be taken: that is refused, which is a story too, but not one to tell often.
    if server.pod(&in_default(name)).is_some() && !chance.once_in(1, 8) {
        return Vec::new();
    }
    let pod = manifest::pod(chance, &profile.features, name, false);
    let mut verbs = Vec::new();
    for (kind, object) in manifest::objects_of(&pod) {
        let later = profile.weight(Kind::ObjectMissing);
        if !chance.once_in(later, 24) && !exists(server, kind, &object) {
            verbs.push(Verb::Create(manifest::object(kind, &object, "first")));
        }
    }
    verbs.push(Verb::Create(pod));
    verbs
}

fn exists(server: &Server, kind: &str, name: &str) -> bool {
    server.object(kind, "default", name).is_some()
}

fn static_pod(chance: &mut dyn Chance, profile: &Profile, server: &Server) -> Vec<Verb> {
    let name = in_default(STATIC);
    if server.is_file(&name) && chance.once_in(1, 2) {
        return vec![Verb::Delete(target("Pod", &name))];
    }
    // A static pod may not refer to the API's objects.
    let mut features = profile.features.clone();
    features.sources = false;
    features.policies = false;
    let pod = manifest::pod(chance, &features, STATIC, true);
    vec![if server.is_file(&name) { Verb::Update(pod) } else { Verb::Create(pod) }]
}

fn object_changed(chance: &mut dyn Chance) -> Vec<Verb> {
    let kind = if chance.once_in(1, 2) { "Secret" } else { "ConfigMap" };
    let name = OBJECTS[chance.below(3) as usize];
    let object = manifest::object(kind, name, &format!("version-{}", chance.below(5)));
    vec![if chance.once_in(1, 3) { Verb::Create(object) } else { Verb::Update(object) }]
}

fn object_deleted(chance: &mut dyn Chance, server: &Server) -> Vec<Verb> {
    let kind = if chance.once_in(1, 2) { "Secret" } else { "ConfigMap" };
    let name = OBJECTS[chance.below(3) as usize];
    if !exists(server, kind, name) {
        return Vec::new();
    }
    vec![Verb::Delete(target(kind, &in_default(name)))]
}

/// With one of the stored pods, if there is any.
fn with_pod(
    chance: &mut dyn Chance,
    server: &Server,
    then: impl FnOnce(&mut dyn Chance, &Value, PodRef) -> Vec<Verb>,
) -> Vec<Verb> {
    let pods: Vec<&Value> = server.pods().collect();
    let Some(pod) = chance.pick(&pods).copied() else { return Vec::new() };
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default().to_owned();
    let name = PodRef { namespace: text("namespace"), name: text("name") };
    then(chance, pod, name)
}

/// The names in a list of a pod's.
fn names(list: &Value) -> Vec<String> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item["name"].as_str())
        .map(str::to_owned)
        .collect()
}

fn one_container(chance: &mut dyn Chance, pod: &Value) -> Option<String> {
    chance.pick(&names(&pod["spec"]["containers"])).cloned()
}

/// A patch for `/dynamic`: one to three changes of containers, volumes and mounts.
pub fn dynamic(chance: &mut dyn Chance, profile: &Profile, pod: &Value) -> Value {
    let mut patch = Patch::default();
    let has = names(&pod["spec"]["volumes"]);
    for _ in 0..chance.between(1, 3) {
        match chance.below(6) {
            0 | 1 => add_volume(chance, profile, pod, &has, &mut patch),
            2 => remove_volume(chance, pod, &has, &mut patch),
            3 => {
                let present = names(&pod["spec"]["containers"]);
                let free = MAINS.iter().filter(|name| !present.iter().any(|p| p == *name));
                if let Some(name) = chance.pick(&free.copied().collect::<Vec<_>>()).copied() {
                    let volumes: Vec<&str> = has.iter().map(String::as_str).collect();
                    let mut added = manifest::container(chance, &profile.features, name, &volumes);
                    added.as_object_mut().map(|fields| fields.remove("resizePolicy"));
                    patch.containers.insert(name.to_owned(), added);
                }
            }
            4 => {
                if let Some(name) = one_container(chance, pod) {
                    patch.containers.insert(name.clone(), json!({"name": name, "$patch": "delete"}));
                }
            }
            _ => {
                if let (Some(name), Some(volume)) = (one_container(chance, pod), chance.pick(&has).cloned()) {
                    patch.mount(&name, manifest::mount(&volume));
                }
            }
        }
    }
    patch.into_value()
}

#[derive(Default)]
struct Patch {
    containers: Map<String, Value>,
    volumes: Vec<Value>,
}

impl Patch {
    fn mount(&mut self, container: &str, mount: Value) {
        let entry = self
            .containers
            .entry(container.to_owned())
            .or_insert_with(|| json!({"name": container, "volumeMounts": []}));
        // A container that goes mounts nothing any more.
        if entry["$patch"] == "delete" {
            return;
        }
        match entry["volumeMounts"].as_array_mut() {
            Some(mounts) => mounts.push(mount),
            None => entry["volumeMounts"] = json!([mount]),
        }
    }

    fn into_value(self) -> Value {
        let containers: Vec<Value> = self.containers.into_iter().map(|(_, container)| container).collect();
        let mut spec = Map::new();
        if !containers.is_empty() {
            spec.insert("containers".into(), json!(containers));
        }
        if !self.volumes.is_empty() {
            spec.insert("volumes".into(), json!(self.volumes));
        }
        json!({"spec": spec})
    }
}

fn add_volume(chance: &mut dyn Chance, profile: &Profile, pod: &Value, has: &[String], patch: &mut Patch) {
    let free: Vec<&str> = VOLUMES.into_iter().filter(|name| !has.iter().any(|h| h == name)).collect();
    let Some(name) = chance.pick(&free).copied() else { return };
    if patch.volumes.iter().any(|volume| volume["name"] == name) {
        return;
    }
    patch.volumes.push(manifest::volume(chance, &profile.features, name));
    // A volume that nobody mounts waits; most are mounted by somebody who may be restarted for it.
    if chance.once_in(5, 6) {
        let restarted = pod["spec"]["containers"].as_array().into_iter().flatten();
        let restarted = restarted.filter(|c| c["dynamicVolumePolicy"]["restartPolicy"] == "RestartContainer");
        let restarted: Vec<String> =
            restarted.filter_map(|c| c["name"].as_str()).map(str::to_owned).collect();
        let container = chance.pick(&restarted).cloned().or_else(|| one_container(chance, pod));
        if let Some(container) = container {
            patch.mount(&container, manifest::mount(name));
        }
    }
}

fn remove_volume(chance: &mut dyn Chance, pod: &Value, has: &[String], patch: &mut Patch) {
    let Some(name) = chance.pick(has).cloned() else { return };
    if patch.volumes.iter().any(|volume| volume["name"] == name.as_str()) {
        return;
    }
    patch.volumes.push(json!({"name": name, "$patch": "delete"}));
    for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
        let Some(container_name) = container["name"].as_str() else { continue };
        for mount in container["volumeMounts"].as_array().into_iter().flatten() {
            if mount["name"] == name.as_str() {
                patch.mount(container_name, json!({"mountPath": mount["mountPath"], "$patch": "delete"}));
            }
        }
    }
}

/// The stored pod with another image, other labels, or a deadline.
fn updated(chance: &mut dyn Chance, pod: &Value) -> Value {
    let mut pod = pod.clone();
    if let Some(metadata) = pod["metadata"].as_object_mut() {
        metadata.retain(|field, _| matches!(field.as_str(), "name" | "namespace" | "labels" | "annotations"));
    }
    pod.as_object_mut().map(|fields| fields.remove("status"));
    match chance.below(4) {
        0 => pod["metadata"]["labels"] = json!({"version": format!("v{}", chance.below(4))}),
        1 => pod["spec"]["activeDeadlineSeconds"] = json!(chance.between(1, 60)),
        _ => {
            if let Some(containers) = pod["spec"]["containers"].as_array_mut() {
                let index = chance.below(containers.len() as u64) as usize;
                if let Some(container) = containers.get_mut(index) {
                    container["image"] = json!(manifest::image(chance));
                }
            }
        }
    }
    pod
}

/// What no API allows.
fn invalid(chance: &mut dyn Chance, pod: &Value, name: PodRef) -> Vec<Verb> {
    let container = one_container(chance, pod).unwrap_or_default();
    let volume = names(&pod["spec"]["volumes"]).into_iter().next().unwrap_or_else(|| "va".to_owned());
    vec![match chance.below(6) {
        0 => Verb::Dynamic(
            name,
            json!({"spec": {"containers": [{"name": container, "volumeMounts": [{"name": "none", "mountPath": "/none"}]}]}}),
        ),
        1 => Verb::Dynamic(name, json!({"spec": {"volumes": [{"name": volume, "$patch": "delete"}]}})),
        2 => Verb::Dynamic(
            name,
            json!({"spec": {"volumes": [{"name": "far", "nfs": {"server": "a", "path": "/"}}]}}),
        ),
        3 => Verb::Dynamic(
            in_default("nobody"),
            json!({"spec": {"containers": [{"name": "a", "image": "a"}]}}),
        ),
        4 => {
            let all = names(&pod["spec"]["containers"]).into_iter();
            let all: Vec<Value> = all.map(|name| json!({"name": name, "$patch": "delete"})).collect();
            Verb::Dynamic(name, json!({"spec": {"containers": all}}))
        }
        _ => Verb::Resize(
            name,
            json!({"spec": {"containers": [{"name": container, "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}]}}),
        ),
    }]
}
