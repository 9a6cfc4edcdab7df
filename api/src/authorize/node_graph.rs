//! The node authorizer's graph (api-side §3): which secrets and configMaps a node may read, because a pod bound to it refers
//! to them.
//!
//! Edges are there from the commit of a request, since the node resolves references while it admits. What a request
//! removes is kept as a tombstone until the node has verifiably let go: the spec alone would take the edge at commit, long
//! before the unmount (KEP-6395 step 6). Tombstones are in no API object, since status has names but no sources: a
//! server that starts again has the graph from the log, or kept beside it.
//!
//! Verifiably, for a volume: its name is neither in the spec nor in `status.volumeStatuses`, the removal's generation is
//! observed, and no container status that isn't terminated mounts it. For a container's variables: its removal is
//! observed and its status is terminated or gone. While `PodResizePending` stands the removal isn't carried out.

use crate::store::{Change, ChangeType};
use crate::view::{
    CONTAINER_LISTS, STATUS_LISTS, at, condition_is_true, generation, is_mirror, list, name, named,
    observed_generation, spec_list, status_list, text,
};
use nodefold_core::ids::Name;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Something that a pod refers to, in its namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Reference {
    /// What.
    pub kind: ReferenceKind,
    /// The pod's namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
}

/// Kinds of things that a node reads for a pod.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ReferenceKind {
    /// A Secret.
    Secret,
    /// A ConfigMap.
    ConfigMap,
    /// The ServiceAccount whose tokens it asks for.
    ServiceAccount,
    /// A PersistentVolumeClaim.
    PersistentVolumeClaim,
}

/// Whose reference it is: a part of the pod that can be removed by itself, or the pod as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Holder {
    Pod,
    Volume(Name),
    Container(Name),
}

/// A map whose keys are no strings, in a document of JSON: a list of pairs.
mod pairs {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::collections::BTreeMap;

    pub fn serialize<K: Serialize, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(map)
    }

    pub fn deserialize<'de, K, V, D>(from: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Vec::<(K, V)>::deserialize(from).map(|pairs| pairs.into_iter().collect())
    }
}

/// What a removed part still holds, and since which generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Tombstone {
    removed_at: u64,
    references: BTreeSet<Reference>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PodVertex {
    uid: Name,
    node: Name,
    #[serde(with = "pairs")]
    held: BTreeMap<Holder, BTreeSet<Reference>>,
    #[serde(with = "pairs")]
    tombstones: BTreeMap<Holder, Vec<Tombstone>>,
}

/// The graph. Equal for equal histories.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeGraph {
    #[serde(with = "pairs")]
    pods: BTreeMap<(Name, Name), PodVertex>,
}

impl NodeGraph {
    /// One without edges.
    pub fn new() -> NodeGraph {
        NodeGraph::default()
    }

    /// A change of the store, as a watch tells it. Other kinds than pods change nothing.
    pub fn changed(&mut self, change: &Change) {
        if &*change.kind != "Pod" {
            return;
        }
        match change.change {
            ChangeType::Added | ChangeType::Modified => self.committed(&change.object),
            ChangeType::Deleted => {
                let metadata = at(&change.object, "metadata");
                self.deleted(text(metadata, "namespace"), name(metadata));
            }
        }
    }

    /// A pod was committed: created, bound, changed, or its status was written. What is told again changes
    /// nothing. Edges are added before any is dropped.
    pub fn committed(&mut self, pod: &Value) {
        let metadata = at(pod, "metadata");
        let key = (Name::from(text(metadata, "namespace")), Name::from(name(metadata)));
        let (uid, node) = (text(metadata, "uid"), text(at(pod, "spec"), "nodeName"));
        if node.is_empty() {
            self.pods.remove(&key);
            return;
        }
        let held = references(pod);
        let vertex = match self.pods.get_mut(&key) {
            Some(vertex) if &*vertex.uid == uid && &*vertex.node == node => vertex,
            // Another pod under that name, or another node: built anew.
            Some(_) | None => {
                let fresh =
                    PodVertex { uid: uid.into(), node: node.into(), held, tombstones: BTreeMap::new() };
                self.pods.insert(key, fresh);
                return;
            }
        };
        let before = std::mem::replace(&mut vertex.held, held);
        for (holder, references) in before {
            // A part that stays may refer to something else (a container's image pull secret can't, its variables
            // can't; a volume's source can't): only what is gone is kept.
            let gone: BTreeSet<Reference> = match vertex.held.get(&holder) {
                None => references,
                Some(now) => references.difference(now).cloned().collect(),
            };
            if !gone.is_empty() {
                let tombstone = Tombstone { removed_at: generation(pod), references: gone };
                vertex.tombstones.entry(holder).or_default().push(tombstone);
            }
        }
        let status = at(pod, "status");
        vertex.tombstones.retain(|holder, stones| {
            stones.retain(|stone| !is_let_go(holder, stone.removed_at, pod, status));
            !stones.is_empty()
        });
    }

    /// A pod was removed from the store: all that only it held is dropped.
    pub fn deleted(&mut self, namespace: &str, name: &str) {
        self.pods.remove(&(namespace.into(), name.into()));
    }

    /// Whether the node may read it.
    pub fn may_read(&self, node: &str, wanted: &Reference) -> bool {
        self.pods.values().any(|pod| &*pod.node == node && pod.refers_to(wanted))
    }

    /// Everything that the node may read.
    pub fn readable(&self, node: &str) -> BTreeSet<Reference> {
        let of_node = self.pods.values().filter(|pod| &*pod.node == node);
        of_node.flat_map(PodVertex::references).cloned().collect()
    }

    /// What the node may read only because a removal isn't carried out yet.
    pub fn tombstoned(&self, node: &str) -> BTreeSet<Reference> {
        let of_node = || self.pods.values().filter(|pod| &*pod.node == node);
        let held: BTreeSet<&Reference> = of_node().flat_map(|p| p.held.values().flatten()).collect();
        let removed = of_node().flat_map(|pod| pod.tombstones.values().flatten());
        removed.flat_map(|stone| &stone.references).filter(|r| !held.contains(r)).cloned().collect()
    }
}

impl PodVertex {
    fn references(&self) -> impl Iterator<Item = &Reference> {
        let removed = self.tombstones.values().flatten().flat_map(|stone| &stone.references);
        self.held.values().flatten().chain(removed)
    }

    fn refers_to(&self, wanted: &Reference) -> bool {
        self.references().any(|reference| reference == wanted)
    }
}

/// The node has let go of a removed part.
fn is_let_go(holder: &Holder, removed_at: u64, pod: &Value, status: &Value) -> bool {
    let carried_out =
        observed_generation(status) >= removed_at && !condition_is_true(status, "PodResizePending");
    let statuses = || STATUS_LISTS.into_iter().flat_map(|l| status_list(pod, l));
    let runs = |status: &Value| at(at(status, "state"), "terminated").is_null();
    carried_out
        && match holder {
            Holder::Pod => true,
            Holder::Volume(volume) => {
                // A name that is in the spec again is another life of it: the first is gone when the status was.
                let in_spec = named(spec_list(pod, "volumes"), volume).is_some();
                let shown = named(status_list(pod, "volumeStatuses"), volume).is_some();
                let mounted = statuses().any(|s| runs(s) && named(list(s, "volumeMounts"), volume).is_some());
                in_spec || (!shown && !mounted)
            }
            Holder::Container(container) => {
                let in_spec = named(spec_list(pod, "containers"), container).is_some();
                in_spec || statuses().all(|s| name(s) != &**container || !runs(s))
            }
        }
}

/// Some part of the pod refers to a secret.
pub(crate) fn names_a_secret(pod: &Value) -> bool {
    all_references(pod).values().flatten().any(|reference| reference.kind == ReferenceKind::Secret)
}

/// What each part of a pod refers to. A mirror pod's node needs nothing of the API for it.
fn references(pod: &Value) -> BTreeMap<Holder, BTreeSet<Reference>> {
    if is_mirror(pod) { BTreeMap::new() } else { all_references(pod) }
}

fn all_references(pod: &Value) -> BTreeMap<Holder, BTreeSet<Reference>> {
    let mut found = Found { namespace: text(at(pod, "metadata"), "namespace").into(), held: BTreeMap::new() };
    let account = match text(at(pod, "spec"), "serviceAccountName") {
        "" => text(at(pod, "spec"), "serviceAccount"),
        given => given,
    };
    found.add(Holder::Pod, ReferenceKind::ServiceAccount, account);
    for secret in spec_list(pod, "imagePullSecrets") {
        found.add(Holder::Pod, ReferenceKind::Secret, name(secret));
    }
    for (list_name, _) in CONTAINER_LISTS {
        for container in spec_list(pod, list_name) {
            // Init containers and ephemeral ones are never removed: they hold as the pod does.
            let holder = match list_name {
                "containers" => Holder::Container(name(container).into()),
                _ => Holder::Pod,
            };
            for variable in list(container, "env") {
                let from = at(variable, "valueFrom");
                found.add(holder.clone(), ReferenceKind::Secret, name(at(from, "secretKeyRef")));
                found.add(holder.clone(), ReferenceKind::ConfigMap, name(at(from, "configMapKeyRef")));
            }
            for source in list(container, "envFrom") {
                found.add(holder.clone(), ReferenceKind::Secret, name(at(source, "secretRef")));
                found.add(holder.clone(), ReferenceKind::ConfigMap, name(at(source, "configMapRef")));
            }
        }
    }
    for volume in spec_list(pod, "volumes") {
        found.volume(volume);
    }
    found.held
}

struct Found {
    namespace: Name,
    held: BTreeMap<Holder, BTreeSet<Reference>>,
}

impl Found {
    fn add(&mut self, holder: Holder, kind: ReferenceKind, name: &str) {
        if !name.is_empty() {
            let reference = Reference { kind, namespace: self.namespace.clone(), name: name.into() };
            self.held.entry(holder).or_default().insert(reference);
        }
    }

    fn volume(&mut self, volume: &Value) {
        let holder = Holder::Volume(name(volume).into());
        let secret = text(at(volume, "secret"), "secretName");
        self.add(holder.clone(), ReferenceKind::Secret, secret);
        self.add(holder.clone(), ReferenceKind::ConfigMap, name(at(volume, "configMap")));
        for source in list(at(volume, "projected"), "sources") {
            self.add(holder.clone(), ReferenceKind::Secret, name(at(source, "secret")));
            self.add(holder.clone(), ReferenceKind::ConfigMap, name(at(source, "configMap")));
        }
        let claim = text(at(volume, "persistentVolumeClaim"), "claimName");
        self.add(holder.clone(), ReferenceKind::PersistentVolumeClaim, claim);
        // Storage drivers' own credentials.
        for (source, field) in [
            ("csi", "nodePublishSecretRef"),
            ("flexVolume", "secretRef"),
            ("cephfs", "secretRef"),
            ("rbd", "secretRef"),
            ("iscsi", "secretRef"),
            ("scaleIO", "secretRef"),
            ("storageos", "secretRef"),
        ] {
            self.add(holder.clone(), ReferenceKind::Secret, name(at(at(volume, source), field)));
        }
        self.add(holder, ReferenceKind::Secret, text(at(volume, "azureFile"), "secretName"));
    }
}
