//! What of the world is not as it should be once faults have stopped: objects that pods wait for, and what pods left
//! behind.

use super::World;
use nodefold_core::ids::{ObjectKind, ObjectRef, PodUid};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

impl World {
    /// What of pods that neither the API nor a file has is still on the host: an end that leaves something behind (L2, L3).
    pub fn leftovers(&self) -> Vec<String> {
        let mut left = Vec::new();
        for uid in self.on_host() {
            let is_stored = self.server.name(uid).is_some_and(|name| {
                let stored =
                    self.server.pod(name).is_some_and(|pod| pod["metadata"]["uid"] == uid.to_string());
                stored || self.server.files().any(|(_, pod)| pod.uid == uid)
            });
            if !is_stored {
                left.extend(
                    self.left_of(uid).into_iter().map(|what| format!("{what} of {}", self.server.label(uid))),
                );
            }
        }
        left
    }

    /// What the node has not done though nothing is in its way any more: removed things that are still there (L2), deleted
    /// pods that are (L3), and wishes that are neither allocated nor refused with a reason (L1).
    pub fn unfinished(&self) -> Vec<String> {
        let mut left = Vec::new();
        let Some(node) = self.agent.brain().node() else { return left };
        for uid in node.pods() {
            let Some(pod) = node.pod(uid) else { continue };
            let name = self.server.label(uid);
            let volumes = pod.volumes.iter().filter(|v| v.removed.is_some());
            left.extend(volumes.map(|v| format!("removed volume {} of {name}", v.id)));
            let containers = pod.containers.iter().filter(|c| c.removed.is_some() && c.instance.is_some());
            left.extend(containers.map(|c| format!("removed container {} of {name}", c.name)));
            if pod.pod.deletion.is_some() || pod.object_gone {
                left.push(format!("deleted pod {name}"));
            }
            if pod.is_active() && pod.pending.is_none() && !pod.publication.is_current() {
                left.push(format!("the status of {name}"));
            }
        }
        left
    }

    /// Pods of which anything is on the host.
    fn on_host(&self) -> BTreeSet<PodUid> {
        let containers = self.runtime.containers.keys().map(|(pod, _)| *pod);
        let sandboxes = self.runtime.sandboxes.keys().map(|(pod, _)| *pod);
        containers.chain(sandboxes).chain(self.mounts.pods()).collect()
    }

    /// Objects, as manifests, that stored pods refer to and that do not exist; with every key that any of them names.
    pub fn missing_objects(&self) -> Vec<Value> {
        let mut wanted: BTreeMap<(String, String, String), Map<String, Value>> = BTreeMap::new();
        for pod in self.server.pods() {
            let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
            let mut sources: Vec<&Value> = Vec::new();
            for volume in pod["spec"]["volumes"].as_array().into_iter().flatten() {
                sources.push(volume);
                sources.extend(volume["projected"]["sources"].as_array().into_iter().flatten());
            }
            for source in sources {
                for (field, kind, named) in [
                    ("secret", "Secret", "secretName"),
                    ("secret", "Secret", "name"),
                    ("configMap", "ConfigMap", "name"),
                ] {
                    let Some(name) = source[field][named].as_str() else { continue };
                    let keys = source[field]["items"].as_array().into_iter().flatten();
                    let keys = keys.filter_map(|item| item["key"].as_str());
                    let entry =
                        wanted.entry((kind.to_owned(), namespace.to_owned(), name.to_owned())).or_default();
                    entry.extend(keys.map(|key| (key.to_owned(), json!("healed"))));
                }
            }
        }
        let missing = wanted.into_iter().filter(|((kind, namespace, name), _)| {
            let kind = if kind == "Secret" { ObjectKind::Secret } else { ObjectKind::ConfigMap };
            let object = ObjectRef { kind, namespace: namespace.as_str().into(), name: name.as_str().into() };
            self.server.referenced(&object).is_none()
        });
        missing
            .map(|((kind, namespace, name), keys)| {
                let data = if kind == "Secret" { "stringData" } else { "data" };
                json!({
                    "apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, data: keys
                })
            })
            .collect()
    }
}
