//! What can be asked of a node at any moment: its state in the words of DESIGN §1. Reading changes nothing.

use crate::anomaly::Anomalies;
use crate::config::Config;
use crate::ids::{ContainerId, EventSeq, PodUid, VolumeId};
use crate::node::Node;
use crate::spec::{Pod, PodSpec, Volume};
use crate::state::PodState;
use crate::status::PodStatus;
use crate::time::Time;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// What `/allocated` serves (DESIGN §4 rule 3).
#[derive(Clone, Debug)]
pub struct Allocated {
    /// The pod as last applied: its metadata.
    pub pod: Arc<Pod>,
    /// The allocated spec, with what bypasses allocation as it is desired.
    pub spec: Arc<PodSpec>,
    /// `metadata.generation` of the desired version that was allocated.
    pub generation: u64,
    /// Volumes removed from the allocation, not yet verifiably gone.
    pub retained: Vec<Retained>,
}

/// A retained volume.
#[derive(Clone, Debug)]
pub struct Retained {
    /// Which life of the name.
    pub volume: VolumeId,
    /// What it was made from; unknown for one found on the host.
    pub spec: Option<Arc<Volume>>,
    /// When its removal was allocated.
    pub since: Time,
}

impl Node {
    /// How many events were folded in.
    pub fn event_count(&self) -> EventSeq {
        self.state.events
    }
    /// The time of the latest event.
    pub fn now(&self) -> Time {
        self.state.now
    }
    /// The configuration, with the node's facts as they are now.
    pub fn config(&self) -> &Config {
        &self.state.config
    }
    /// What should not have happened.
    pub fn anomalies(&self) -> &Anomalies {
        &self.state.anomalies
    }
    /// What is charged of the node's allocatable in sum.
    pub fn charged(&self) -> &crate::resources::ResourceList {
        &self.state.charged
    }
    /// The boot that the agent started in last.
    pub fn boot_id(&self) -> Option<u128> {
        self.state.boot_id
    }
    /// Every source has delivered its list in this epoch.
    pub fn has_seen_sources(&self) -> bool {
        self.state.sources_ready()
    }
    /// The mount table was seen in this epoch.
    pub fn has_seen_mounts(&self) -> bool {
        self.state.recovery.mounts.seen
    }
    /// All that the runtime has was seen in this epoch.
    pub fn has_seen_runtime(&self) -> bool {
        self.state.recovery.runtime.seen
    }
    /// Desired state, mount table and runtime list of this epoch are all in.
    pub fn is_recovered(&self) -> bool {
        self.state.may_undo()
    }
    /// All pods this node knows, by UID.
    pub fn pods(&self) -> Vec<PodUid> {
        self.state.pods.keys().copied().collect()
    }
    /// The newest pod of that name.
    pub fn find_pod(&self, namespace: &str, name: &str) -> Option<PodUid> {
        self.state.names.get(&(namespace.into(), name.into()))?.last().copied()
    }
    /// Everything remembered of a pod.
    pub fn pod(&self, pod: PodUid) -> Option<&PodState> {
        self.state.pods.get(&pod).map(|p| &**p)
    }
    /// The status that the pod has now (it may not have been published yet); `None` before admission was decided.
    pub fn status(&self, pod: PodUid) -> Option<PodStatus> {
        let pod = self.state.pods.get(&pod)?;
        pod.publication.current.as_ref()?;
        Some(crate::publish::derive(pod, &self.state.config, self.state.now))
    }
    /// The pod as its source asked for it last.
    pub fn desired(&self, pod: PodUid) -> Option<Arc<Pod>> {
        self.state.pods.get(&pod).map(|p| p.pod.arc().clone())
    }
    /// What `/allocated` serves; `None` before admission.
    pub fn allocated(&self, pod: PodUid) -> Option<Allocated> {
        let pod = self.state.pods.get(&pod)?;
        let allocation = pod.allocated.as_ref()?;
        let retained = pod.volumes.iter().filter_map(|v| {
            let since = v.removed?;
            Some(Retained { volume: v.id.clone(), spec: v.spec.as_ref().map(|s| s.arc().clone()), since })
        });
        Some(Allocated {
            pod: pod.pod.arc().clone(),
            spec: with_what_bypasses(pod, allocation.spec.arc()),
            generation: allocation.generation,
            retained: retained.collect(),
        })
    }
    /// The instances of a pod's containers that may run, with what is known of each.
    pub fn instances(&self, pod: PodUid) -> Vec<(ContainerId, &'static str)> {
        let Some(pod) = self.state.pods.get(&pod) else { return Vec::new() };
        pod.containers.iter().filter_map(|c| c.instance_id().map(|id| (id, c.label()))).collect()
    }
}

/// What the node acts on of a pod: its allocated spec, and beside it what never waits for an allocation (SEMANTICS "What
/// bypasses it?"): ephemeral containers that the node took up, the deadline, the grace, and fields that no decision reads.
fn with_what_bypasses(pod: &PodState, allocated: &Arc<PodSpec>) -> Arc<PodSpec> {
    let desired = &pod.pod.spec;
    if Arc::ptr_eq(allocated, desired) {
        return allocated.clone();
    }
    let taken_up = desired.ephemeral_containers.iter().filter(|c| pod.container(&c.name).is_some());
    Arc::new(PodSpec {
        ephemeral_containers: taken_up.cloned().collect(),
        active_deadline: desired.active_deadline,
        termination_grace: desired.termination_grace,
        rest: desired.rest.clone(),
        ..PodSpec::clone(allocated)
    })
}
