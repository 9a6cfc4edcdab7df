//! Users: what they ask of the API and of the node's manifest files, made up from what is stored at that moment, so that
//! most of it is allowed and some of it is not.

use super::chance::{Chance, Xoshiro};
use super::kind::Kind;
use super::manifest::{self, MAINS, OBJECTS, VOLUMES};
use super::profile::{About, Profile};
use crate::scenario::{DeleteTarget, PodRef, Verb};
use crate::world::Server;
use nodefold_core::time::Nanos;
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
        Kind::Dynamic => with_running_pod(chance, server, |chance, pod, name| {
            let patch = dynamic(chance, profile, pod);
            let swapped = swapped(chance, profile, pod, &patch);
            [patch].into_iter().chain(swapped).map(|patch| Verb::Dynamic(name.clone(), patch)).collect()
        }),
        Kind::Resize => with_running_pod(chance, server, |chance, pod, name| {
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
        Kind::Delete => delete(chance, server),
        Kind::ForceDelete => with_pod(chance, server, |_, _, name| {
            vec![Verb::Delete(DeleteTarget { force: true, ..target("Pod", &name) })]
        }),
        Kind::Invalid => with_pod(chance, server, invalid),
        // Faults and processes are the world's.
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
        | Kind::ExitAgain
        | Kind::Finish
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

/// Whether a request may have a container stopped.
pub fn may_stop(verb: &Verb, of: &PodRef, container: &str) -> bool {
    if let Verb::Dynamic(pod, patch) | Verb::Resize(pod, patch) = verb {
        let changed = patch["spec"]["containers"].as_array();
        return pod == of && changed.is_some_and(|all| all.iter().any(|c| c["name"] == container));
    }
    let Verb::Delete(DeleteTarget { kind, namespace, name, .. }) = verb else { return false };
    kind == "Pod" && *namespace == of.namespace && *name == of.name
}

fn in_default(name: &str) -> PodRef {
    PodRef { namespace: "default".into(), name: name.to_owned() }
}

/// A pod is to go; or one that goes already is to go sooner: who deletes again is in a hurry.
fn delete(chance: &mut dyn Chance, server: &Server) -> Vec<Verb> {
    let left = |pod: &Value| pod["metadata"]["deletionGracePeriodSeconds"].as_u64();
    let goes: Vec<&Value> = server.pods().filter(|pod| left(pod).is_some_and(|left| left > 0)).collect();
    if let Some(pod) = chance.pick(&goes).copied().filter(|_| chance.once_in(1, 2)) {
        // Mostly so much sooner that what takes its time still runs then.
        let soon = if chance.once_in(2, 3) { 4 } else { u64::MAX };
        let grace_seconds = left(pod).map(|left| chance.below(left.min(soon)));
        return vec![Verb::Delete(DeleteTarget { grace_seconds, ..target("Pod", &name_of(pod)) })];
    }
    with_pod(chance, server, |chance, _, name| {
        let grace_seconds = chance.once_in(1, 3).then(|| chance.below(12));
        let mirror = server.is_file(&name) && chance.once_in(2, 3);
        let first = Verb::Delete(DeleteTarget { grace_seconds, mirror, ..target("Pod", &name) });
        let again = chance.once_in(1, 6).then(|| {
            let grace_seconds = Some(chance.below(4));
            let sooner = DeleteTarget { grace_seconds, ..target("Pod", &name) };
            [Verb::Advance(Nanos::millis(chance.between(1, 2000))), Verb::Delete(sooner)]
        });
        [first].into_iter().chain(again.into_iter().flatten()).collect()
    })
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
    // One of a few, so that some come back as they were.
    let mut drawn = Xoshiro::new(profile.files + chance.below(3));
    let pod = manifest::pod(&mut drawn, &features, STATIC, true);
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
    then(chance, pod, name_of(pod))
}

fn name_of(pod: &Value) -> PodRef {
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default().to_owned();
    PodRef { namespace: text("namespace"), name: text("name") }
}

/// With one that may be changed as it runs, if there is any; who does not look first is refused.
fn with_running_pod(
    chance: &mut dyn Chance,
    server: &Server,
    then: impl FnOnce(&mut dyn Chance, &Value, PodRef) -> Vec<Verb>,
) -> Vec<Verb> {
    let runs = |pod: &&Value| {
        pod["status"]["phase"] == "Running"
            && pod["metadata"]["deletionTimestamp"].is_null()
            && !server.is_file(&name_of(pod))
    };
    let running: Vec<&Value> = server.pods().filter(runs).collect();
    match chance.pick(&running).copied().filter(|_| !chance.once_in(1, 8)) {
        Some(pod) => then(chance, pod, name_of(pod)),
        None if chance.once_in(1, 8) => with_pod(chance, server, then),
        None => Vec::new(),
    }
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

/// Its mounts may change while it runs, for it is restarted.
fn may_restart(container: &Value) -> bool {
    container["dynamicVolumePolicy"]["restartPolicy"] == "RestartContainer"
}

/// A container whose mounts may change, if there is one.
fn one_to_restart(chance: &mut dyn Chance, pod: &Value) -> Option<String> {
    let restarted = pod["spec"]["containers"].as_array().into_iter().flatten().filter(|c| may_restart(c));
    let restarted: Vec<String> = restarted.filter_map(|c| c["name"].as_str()).map(str::to_owned).collect();
    chance.pick(&restarted).cloned().or_else(|| one_container(chance, pod))
}

fn one_container(chance: &mut dyn Chance, pod: &Value) -> Option<String> {
    chance.pick(&names(&pod["spec"]["containers"])).cloned()
}

/// A patch for `/dynamic`: one to three changes of containers, volumes and mounts.
pub fn dynamic(chance: &mut dyn Chance, profile: &Profile, pod: &Value) -> Value {
    let mut patch = Patch::default();
    let has = names(&pod["spec"]["volumes"]);
    for _ in 0..chance.between(1, 3) {
        // Where room is what it is about, more often one takes another's place.
        let place = profile.about == Some(About::Room) && chance.once_in(1, 2);
        match if place { 8 } else { chance.below(10) } {
            0..=2 => add_volume(chance, profile, pod, &has, &mut patch),
            3..=5 => remove_volume(chance, pod, &has, &mut patch),
            6 => add_container(chance, profile, pod, &has, &mut patch),
            7 => remove_container(chance, pod, &mut patch),
            8 => {
                // One takes the place of another, and its room.
                remove_container(chance, pod, &mut patch);
                add_container(chance, profile, pod, &has, &mut patch);
            }
            _ => {
                if let (Some(name), Some(volume)) = (one_to_restart(chance, pod), chance.pick(&has).cloned())
                {
                    patch.mount(&name, manifest::mount(&volume));
                }
            }
        }
    }
    patch.into_value()
}

fn add_container(chance: &mut dyn Chance, profile: &Profile, pod: &Value, has: &[String], patch: &mut Patch) {
    let present = names(&pod["spec"]["containers"]);
    let free = MAINS.iter().filter(|name| !present.iter().any(|p| p == *name));
    if let Some(name) = chance.pick(&free.copied().collect::<Vec<_>>()).copied() {
        let volumes: Vec<&str> = has.iter().map(String::as_str).collect();
        let mut added = manifest::container(chance, &profile.features, name, &volumes);
        added.as_object_mut().map(|fields| fields.remove("resizePolicy"));
        patch.containers.insert(name.to_owned(), added);
    }
}

fn remove_container(chance: &mut dyn Chance, pod: &Value, patch: &mut Patch) {
    // The last one can't go; that is refused, and not asked often.
    let last = names(&pod["spec"]["containers"]).len() < 2;
    if let Some(name) = one_container(chance, pod).filter(|_| !last || chance.once_in(1, 8)) {
        patch.containers.insert(name.clone(), json!({"name": name, "$patch": "delete"}));
    }
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
    let names = VOLUMES.into_iter().take(profile.features.volume_names as usize);
    let free: Vec<&str> = names.filter(|name| !has.iter().any(|h| h == name)).collect();
    let Some(name) = chance.pick(&free).copied() else { return };
    if patch.volumes.iter().any(|volume| volume["name"] == name) {
        return;
    }
    add_this(chance, profile, pod, name, patch);
}

fn add_this(chance: &mut dyn Chance, profile: &Profile, pod: &Value, name: &str, patch: &mut Patch) {
    patch.volumes.push(manifest::volume(chance, &profile.features, name));
    // A volume that nobody mounts waits; most are mounted by somebody who may be restarted for it.
    if chance.once_in(5, 6)
        && let Some(container) = one_to_restart(chance, pod)
    {
        patch.mount(&container, manifest::mount(name));
    }
}

/// A second patch, right behind one that removes a volume: another volume takes its name.
fn swapped(chance: &mut dyn Chance, profile: &Profile, pod: &Value, patch: &Value) -> Option<Value> {
    let volumes = patch["spec"]["volumes"].as_array().into_iter().flatten();
    let removed: Vec<&str> =
        volumes.filter(|v| v["$patch"] == "delete").filter_map(|v| v["name"].as_str()).collect();
    let name = chance.pick(&removed).copied().filter(|_| chance.once_in(1, 3))?;
    let mut second = Patch::default();
    add_this(chance, profile, pod, name, &mut second);
    Some(second.into_value())
}

fn remove_volume(chance: &mut dyn Chance, pod: &Value, has: &[String], patch: &mut Patch) {
    let keeps = |container: &Value, volume: &str| {
        let mounts = container["volumeMounts"].as_array().into_iter().flatten();
        mounts.into_iter().any(|mount| mount["name"] == volume) && !may_restart(container)
    };
    let kept = |volume: &&String| {
        let containers = ["containers", "initContainers"].map(|list| pod["spec"][list].as_array());
        containers.into_iter().flatten().flatten().any(|container| keeps(container, volume))
    };
    let free: Vec<String> = has.iter().filter(|volume| !kept(volume)).cloned().collect();
    // What somebody keeps can't go; that is refused, and not asked often.
    let from = if free.is_empty() || chance.once_in(1, 8) { has } else { &free };
    let Some(name) = chance.pick(from).cloned() else { return };
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
