//! Manifests that a seed's users write: pods, containers, volumes and the objects that these refer to.

use super::chance::Chance;
use super::profile::Features;
use serde_json::{Map, Value, json};

/// Names of main containers, of init containers, of ephemeral ones.
pub const MAINS: [&str; 4] = ["app", "log", "tool", "aux"];
const PREPARE: &str = "prepare";
const PROXY: &str = "proxy";
/// Init containers and sidecars in any order, by how many there are.
const INITS: [&[&[&str]]; 3] = [&[&[]], &[&[PREPARE], &[PROXY]], &[&[PREPARE, PROXY], &[PROXY, PREPARE]]];
/// Names of volumes.
pub const VOLUMES: [&str; 6] = ["va", "vb", "vc", "vd", "ve", "vf"];
/// Names of secrets and of configMaps.
pub const OBJECTS: [&str; 3] = ["x", "y", "z"];
/// Seconds that a hook sleeps at most.
const LONGEST_SLEEP: u64 = 5;
const IMAGES: [&str; 3] = ["registry.local/busybox:1", "registry.local/busybox:2", "registry.local/tool:1"];

/// An image.
pub fn image(chance: &mut dyn Chance) -> &'static str {
    chance.pick(&IMAGES).copied().unwrap_or(IMAGES[0])
}

/// All images that a run may name.
pub fn images() -> Vec<String> {
    IMAGES.iter().map(|image| (*image).to_owned()).collect()
}

/// A pod.
pub fn pod(chance: &mut dyn Chance, features: &Features, name: &str, from_file: bool) -> Value {
    let count = chance.below(features.volumes.min(features.volume_names) + 1) as usize;
    let volumes: Vec<Value> = VOLUMES[..count].iter().map(|name| volume(chance, features, name)).collect();
    let names = &VOLUMES[..count];
    let mut spec = Map::new();
    let inits = INITS.get(chance.below(features.inits + 1) as usize).copied().unwrap_or_default();
    let inits = chance.pick(inits).copied().unwrap_or_default();
    if !inits.is_empty() {
        let inits: Vec<Value> = inits.iter().map(|name| init(chance, features, name, names)).collect();
        spec.insert("initContainers".into(), json!(inits));
    }
    let mains = chance.between(1, features.containers) as usize;
    let mains: Vec<Value> =
        MAINS[..mains].iter().map(|name| container(chance, features, name, names)).collect();
    spec.insert("containers".into(), json!(mains));
    if count > 0 {
        spec.insert("volumes".into(), json!(volumes));
    }
    // A hook's sleep must be shorter.
    let least = if features.hooks { LONGEST_SLEEP + 1 } else { 0 };
    let grace_seconds = chance.between(least, features.grace_seconds.max(least));
    spec.insert("terminationGracePeriodSeconds".into(), json!(grace_seconds));
    if features.policies
        && let Some(policy) = chance.pick(&["Never", "OnFailure", "Always"])
    {
        spec.insert("restartPolicy".into(), json!(policy));
    }
    if features.deadlines && chance.once_in(1, 3) {
        spec.insert("activeDeadlineSeconds".into(), json!(chance.between(5, 120)));
    }
    let mut metadata = json!({"name": name});
    if from_file {
        metadata["annotations"] = json!({"kubernetes.io/config.source": "file"});
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

fn init(chance: &mut dyn Chance, features: &Features, name: &str, volumes: &[&str]) -> Value {
    let mut init = container(chance, features, name, volumes);
    for field in ["dynamicVolumePolicy", "restartPolicy", "restartPolicyRules"] {
        init.as_object_mut().map(|fields| fields.remove(field));
    }
    if name == PROXY {
        init["restartPolicy"] = json!("Always");
    } else {
        for field in ["readinessProbe", "livenessProbe", "startupProbe", "lifecycle"] {
            init.as_object_mut().map(|fields| fields.remove(field));
        }
    }
    init
}

/// A container that mounts some of the volumes.
pub fn container(chance: &mut dyn Chance, features: &Features, name: &str, volumes: &[&str]) -> Value {
    let mut container = json!({"name": name, "image": image(chance)});
    let mounts: Vec<Value> =
        volumes.iter().filter(|_| chance.once_in(1, 2)).map(|volume| mount(volume)).collect();
    if !mounts.is_empty() {
        container["volumeMounts"] = json!(mounts);
    }
    if chance.once_in(5, 6) {
        container["dynamicVolumePolicy"] = json!({"restartPolicy": "RestartContainer"});
    }
    if features.resources && chance.once_in(2, 3) {
        container["resources"] = resources(chance);
        if chance.once_in(1, 3) {
            container["resizePolicy"] =
                json!([{"resourceName": "memory", "restartPolicy": "RestartContainer"}]);
        }
    }
    if features.probes {
        for probe in ["readinessProbe", "livenessProbe", "startupProbe"] {
            if chance.once_in(1, 3) {
                container[probe] = json!({"tcpSocket": {"port": 80}, "periodSeconds": 1, "initialDelaySeconds": chance.below(4)});
            }
        }
    }
    if features.hooks && chance.once_in(1, 3) {
        let mut hook = || json!({"sleep": {"seconds": chance.between(1, LONGEST_SLEEP)}});
        container["lifecycle"] = json!({"postStart": hook(), "preStop": hook()});
    }
    if features.policies && chance.once_in(1, 4) {
        container["restartPolicy"] = json!("Never");
        container.as_object_mut().map(|fields| fields.remove("dynamicVolumePolicy"));
        let values = json!([chance.between(1, 3)]);
        let action = if chance.once_in(1, 6) { "RestartAllContainers" } else { "Restart" };
        container["restartPolicyRules"] =
            json!([{"action": action, "exitCodes": {"operator": "In", "values": values}}]);
    }
    container
}

/// Requests, and limits not below them.
pub fn resources(chance: &mut dyn Chance) -> Value {
    let cpu = 100 * chance.between(1, 20);
    let memory = 64 * chance.between(1, 12);
    let mut resources = json!({"requests": {"cpu": format!("{cpu}m"), "memory": format!("{memory}Mi")}});
    if chance.once_in(1, 2) {
        let more = chance.below(2);
        resources["limits"] =
            json!({"cpu": format!("{}m", cpu * (1 + more)), "memory": format!("{}Mi", memory * (1 + more))});
    }
    resources
}

/// Where a volume is mounted: its name says it.
pub fn mount(volume: &str) -> Value {
    json!({"name": volume, "mountPath": format!("/{volume}")})
}

/// A volume of any source that KEP-6395 knows.
pub fn volume(chance: &mut dyn Chance, features: &Features, name: &str) -> Value {
    let mut volume = json!({"name": name});
    let object = chance.pick(&OBJECTS).copied().unwrap_or(OBJECTS[0]);
    let optional = chance.once_in(1, 6);
    let drawn = if features.sources { chance.below(7) } else { 0 };
    let (field, source) = match drawn {
        0 => ("emptyDir", json!({})),
        1 => ("emptyDir", json!({"medium": "Memory", "sizeLimit": "64Mi"})),
        2 => ("secret", json!({"secretName": object})),
        3 => ("configMap", json!({"name": object})),
        4 => ("projected", projected(chance, object)),
        5 => ("secret", json!({"secretName": object, "optional": optional})),
        _ => ("image", json!({"reference": image(chance), "pullPolicy": "IfNotPresent"})),
    };
    volume[field] = source;
    volume
}

fn projected(chance: &mut dyn Chance, object: &str) -> Value {
    let mut sources = vec![json!({"serviceAccountToken": {"path": "token", "expirationSeconds": 600}})];
    if chance.once_in(1, 2) {
        sources.push(json!({"secret": {"name": object}}));
    }
    if chance.once_in(1, 2) {
        sources.push(json!({"configMap": {"name": object}}));
    }
    if chance.once_in(1, 3) {
        let labels = json!({"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}});
        sources.push(json!({"downwardAPI": {"items": [labels]}}));
    }
    json!({"sources": sources})
}

/// A secret or a configMap with this content.
pub fn object(kind: &str, name: &str, content: &str) -> Value {
    let data = if kind == "Secret" { "stringData" } else { "data" };
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, data: {"k": content}})
}

/// Kind and name of all secrets and configMaps that a pod's volumes refer to.
pub fn objects_of(pod: &Value) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    for volume in pod["spec"]["volumes"].as_array().into_iter().flatten() {
        let projected = volume["projected"]["sources"].as_array().into_iter().flatten();
        for source in projected.chain([volume]) {
            let secret = source["secret"]["secretName"].as_str().or(source["secret"]["name"].as_str());
            found.extend(secret.map(|name| ("Secret", name.to_owned())));
            found.extend(source["configMap"]["name"].as_str().map(|name| ("ConfigMap", name.to_owned())));
        }
    }
    found.sort();
    found.dedup();
    found
}
