//! All that is remembered of one pod.

use super::container::{ContainerKind, ContainerState};
use super::retry::Retry;
use super::sandbox::Sandbox;
use super::shared::Shared;
use super::volume::VolumeState;
use crate::few::Few;
use crate::ids::{ContainerId, Epoch, EventSeq, Name, ObjectRef, OpId, PodUid, VolumeId};
use crate::node::Digest;
use crate::resources::{ResourceList, Resources};
use crate::spec::{Pod, PodSpec, TerminalPhase, Volume};
use crate::status::ConditionKind;
use crate::time::{Nanos, Time};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// See the file's head.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct PodState {
    /// Desired: the pod as its source gave it last.
    pub pod: Shared<Pod>,
    /// When it was first seen, for the order among static pods of one name.
    pub arrived: EventSeq,
    /// The epoch in which the record was made.
    pub born: Epoch,
    /// The epoch in which its source last named it.
    pub applied_in: Epoch,
    /// Its object is gone from its source.
    pub object_gone: bool,
    /// The same UID was asked for again while this life was ending (B6, case 85).
    pub again: Option<Box<Shared<Pod>>>,
    /// Admitted: what the node has promised.
    pub allocated: Option<Allocation>,
    /// Where it is in its life.
    pub lifecycle: Lifecycle,
    /// The phase it ends with, once known. Never changes (B10).
    pub terminal: Option<TerminalPhase>,
    /// `status.reason` and `.message` of an end that the node decided.
    pub end_reason: Option<Box<(Name, Name)>>,
    /// `status.startTime`.
    pub start_time: Option<Time>,
    /// It was Running once: it never shows Pending again (DESIGN §4 rule 8).
    pub ever_ran: bool,
    /// The first initialization is done: deferral is per container from now on (DESIGN §4 rule 5).
    pub initialized: bool,
    /// The sandbox attempt in which initialization was done.
    pub initialized_in: Option<u32>,
    /// The newest sandbox.
    pub sandbox: Option<Sandbox>,
    /// Older ones not yet removed.
    pub old_sandboxes: Few<Sandbox>,
    /// Number of the next sandbox attempt.
    pub next_sandbox: u32,
    /// Back-off of failed sandbox operations.
    pub sandbox_retry: Retry,
    /// Containers: init, main and ephemeral in the order of their specs as added; removed ones stay until forgotten.
    pub containers: Vec<ContainerState>,
    /// A name that is added gets an incarnation not below this, so that no id comes twice.
    pub incarnation_floor: u32,
    /// Live instances that no record owns: killed, and held to hold everything (DESIGN §4 rule 3).
    pub surplus: Few<Surplus>,
    /// Volumes: allocated ones and retained ones.
    pub volumes: Vec<VolumeState>,
    /// See `incarnation_floor`.
    pub generation_floor: u32,
    /// An object or the metadata that volumes show may have changed: what each shows is compared anew.
    pub content_changed: bool,
    /// Objects of volumes that went, to be given up unless something else of the pod shows them. Empty between events.
    pub let_go: Few<ObjectRef>,
    /// Desired differs from allocated, and why.
    pub pending: Option<Box<Pending>>,
    /// Allocated resources differ from actuated ones.
    pub in_progress: Option<Box<InProgress>>,
    /// What the pod's cgroup has (actuated).
    pub cgroup: Resources,
    /// A change of it in flight, and to what.
    pub cgroup_resizing: Option<Box<(OpId, Resources)>>,
    /// Back-off of failed pod resizes.
    pub cgroup_retry: Retry,
    /// RestartAllContainers is under way; the container whose exit asked for it.
    pub restarting_all: Option<Box<ContainerId>>,
    /// A look at the runtime for this pod's unknowns, in flight.
    pub observing: Option<OpId>,
    /// Back-off of failed looks.
    pub observe_retry: Retry,
    /// Instances that were made, started, ended or removed while that look was on its way: it may be older than that.
    pub newer_than_look: Few<ContainerId>,
    /// Readiness gates that are met.
    pub gates_met: Few<Name>,
    /// What was told to the API.
    pub publication: Publication,
    /// The final delete, in flight.
    pub releasing: Option<OpId>,
    /// Back-off of failed releases.
    pub release_retry: Retry,
    /// What it is charged on the node now (S5).
    pub charge: ResourceList,
    /// Something that the charge is derived from may have changed since.
    pub charge_stale: bool,
    /// When it wants to be looked at again, and why.
    pub wake: Option<(Time, crate::context::Why)>,
}

/// Admitted state.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Allocation {
    /// One desired spec as a whole (S4).
    pub spec: Shared<PodSpec>,
    /// What it asks for in sum, computed once.
    pub requests: ResourceList,
    /// The same, and one pod: the least that it is charged.
    pub charge: ResourceList,
    /// What is shown as in force once all its main containers have what it says.
    pub in_force: Resources,
    /// What the pod's cgroup is to have.
    pub cgroup: Resources,
    /// Its generation.
    pub generation: u64,
    /// When.
    pub at: Time,
}

/// A pod's life on this node. It only moves forward.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub enum Lifecycle {
    /// Seen, not admitted: a static pod waiting for its name, or sources not ready.
    Waiting,
    /// Admitted and meant to run.
    Active,
    /// Its containers are being stopped.
    Terminating(Termination),
    /// No container runs and none will (confirmed); volumes may go, and a terminal phase is due.
    Terminated,
}

/// A termination under way.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Termination {
    /// Why.
    pub cause: TerminationCause,
    /// Since when.
    pub since: Time,
    /// When the last kill is due; only moves earlier (B24).
    pub deadline: Time,
}

/// Why a pod ends.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[cfg_attr(feature = "rkyv", rkyv(derive(PartialEq, Eq, PartialOrd, Ord)))]
pub enum TerminationCause {
    /// Graceful deletion.
    Deleted,
    /// Its object vanished.
    ObjectGone,
    /// Over a limit.
    Evicted,
    /// activeDeadlineSeconds.
    DeadlineExceeded,
    /// It ran to its end.
    Completed,
    /// Its published phase was terminal when it was first seen.
    ApiTerminal,
    /// Found in the runtime or on disk, wanted by nobody.
    Orphan,
    /// Not admitted, though it was found running.
    Rejected,
    /// A critical pod needed its room.
    Preempted,
}

/// A desired change that is not allocated.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Pending {
    /// Whether it can ever be.
    pub kind: PendingKind,
    /// Why.
    pub message: Name,
    /// The generation that was tried.
    pub generation: u64,
    /// Since when (orders the queue).
    pub since: Time,
}

/// `PodResizePending`'s reason.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[cfg_attr(feature = "rkyv", rkyv(derive(PartialEq, Eq, PartialOrd, Ord)))]
pub enum PendingKind {
    /// May fit later.
    Deferred,
    /// Waits for another spec.
    Infeasible,
}

/// `PodResizeInProgress`.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct InProgress {
    /// The generation that was allocated.
    pub generation: u64,
    /// The last failure, if any.
    pub error: Option<Name>,
    /// Since when.
    pub since: Time,
}

/// A live container that no record owns.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Surplus {
    /// Which.
    pub id: ContainerId,
    /// Being killed.
    pub kill: Option<OpId>,
    /// Back-off of refused kills.
    pub retry: Retry,
}

/// What the API was told.
#[derive(Default, Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Publication {
    /// The status that was derived last, `None` before the first.
    pub current: Option<Shown>,
    /// Something that the status is derived from may have changed since. If not, it would be derived the same.
    pub stale: bool,
    /// The one sent last.
    pub sent: Option<Digest>,
    /// Its write, in flight.
    pub writing: Option<OpId>,
    /// The mirror pod that it was sent to, if the pod is a static one.
    pub mirror: Option<Box<PodUid>>,
    /// A terminal phase was acknowledged (S8).
    pub terminal_acknowledged: bool,
    /// Back-off of failed writes.
    pub retry: Retry,
}

impl Publication {
    /// The API has acknowledged the status as it is now.
    pub fn is_current(&self) -> bool {
        self.writing.is_none() && self.current.as_ref().map(|shown| shown.digest) == self.sent
    }
}

/// What is remembered of a status: as much as later decisions and the next derivation ask. The rest is derived anew when
/// it is wanted (DESIGN §4 rule 8).
#[derive(Default, Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Shown {
    /// Of the whole status.
    pub digest: Digest,
    /// It shows a phase that is never left.
    pub is_terminal: bool,
    /// The address that it shows.
    pub ip: Option<Name>,
    /// Conditions, whether each holds, and since when.
    pub conditions: Vec<(ConditionKind, bool, Time)>,
    /// Init and main containers whose `state` is the end of this instance.
    pub ends: Few<ContainerId>,
    /// Containers that wait because their image could not be pulled.
    pub pull_errors: Few<Name>,
}

impl PodState {
    /// Something changed that the status or the charge is derived from. Whoever changes such a thing says so; that nobody
    /// forgets is asserted in debug builds, at each event that finds nothing to derive.
    pub fn changed(&mut self) {
        self.publication.stale = true;
        self.charge_stale = true;
    }

    /// A pod just seen.
    pub fn new(pod: Shared<Pod>, arrived: EventSeq, epoch: Epoch) -> PodState {
        PodState {
            pod,
            arrived,
            born: epoch,
            applied_in: epoch,
            object_gone: false,
            again: None,
            allocated: None,
            lifecycle: Lifecycle::Waiting,
            terminal: None,
            end_reason: None,
            start_time: None,
            ever_ran: false,
            initialized: false,
            initialized_in: None,
            sandbox: None,
            old_sandboxes: Few::default(),
            next_sandbox: 0,
            sandbox_retry: Retry::default(),
            containers: Vec::new(),
            incarnation_floor: 0,
            surplus: Few::default(),
            volumes: Vec::new(),
            generation_floor: 0,
            content_changed: true,
            let_go: Few::default(),
            pending: None,
            in_progress: None,
            cgroup: Resources::default(),
            cgroup_resizing: None,
            cgroup_retry: Retry::default(),
            restarting_all: None,
            observing: None,
            observe_retry: Retry::default(),
            newer_than_look: Few::default(),
            gates_met: Few::default(),
            publication: Publication { stale: true, ..Publication::default() },
            releasing: None,
            release_retry: Retry::default(),
            charge: ResourceList::default(),
            charge_stale: true,
            wake: None,
        }
    }

    /// The allocated spec, or the desired one before admission.
    pub fn spec(&self) -> &Arc<PodSpec> {
        self.allocated.as_ref().map_or(&self.pod.spec, |a| a.spec.arc())
    }
    /// It is meant to run.
    pub fn is_active(&self) -> bool {
        matches!(self.lifecycle, Lifecycle::Active)
    }
    /// No container of it runs or will.
    pub fn is_terminated(&self) -> bool {
        matches!(self.lifecycle, Lifecycle::Terminated)
    }
    /// It may still become active, or is.
    pub fn is_not_ended(&self) -> bool {
        match self.lifecycle {
            Lifecycle::Waiting | Lifecycle::Active => true,
            Lifecycle::Terminating(_) | Lifecycle::Terminated => false,
        }
    }
    /// It takes up its static full name, and the node's room.
    pub fn is_started(&self) -> bool {
        match self.lifecycle {
            Lifecycle::Waiting | Lifecycle::Terminated => false,
            Lifecycle::Active | Lifecycle::Terminating(_) => true,
        }
    }
    /// For people.
    pub fn label(&self) -> &'static str {
        match &self.lifecycle {
            Lifecycle::Waiting => "Waiting",
            Lifecycle::Active => "Active",
            Lifecycle::Terminating(_) => "Terminating",
            Lifecycle::Terminated => "Terminated",
        }
    }
    /// The current (not removed) record of a container name.
    pub fn container(&self, name: &str) -> Option<&ContainerState> {
        self.containers.iter().find(|c| &*c.name == name && c.removed.is_none())
    }
    /// The record that owns that id.
    pub fn container_of(&mut self, id: &ContainerId) -> Option<&mut ContainerState> {
        self.containers.iter_mut().find(|c| c.incarnation == id.incarnation && c.name == id.name)
    }
    /// The current (not removed) record of a volume name.
    pub fn volume(&self, name: &str) -> Option<&VolumeState> {
        self.volumes.iter().find(|v| &*v.id.name == name && v.removed.is_none())
    }
    /// The record of that life.
    pub fn volume_of(&mut self, id: &VolumeId) -> Option<&mut VolumeState> {
        self.volumes.iter_mut().find(|v| v.id == *id)
    }
    /// Records of the allocated containers of a kind (not removed), in the order of the spec.
    pub fn indices(&self, kind: ContainerKind) -> impl Iterator<Item = usize> + '_ {
        self.containers
            .iter()
            .enumerate()
            .filter(move |(_, c)| c.kind == kind && c.removed.is_none())
            .map(|(i, _)| i)
    }
    /// Some container may run.
    pub fn has_instances(&self) -> bool {
        !self.surplus.is_empty() || self.containers.iter().any(|c| c.instance.is_some())
    }
    /// A container instance that mounts this life of the volume may run, or something unknown may (S1).
    pub fn holds_lease(&self, volume: &VolumeId) -> bool {
        // Of a pod that was never admitted here nobody knows what its containers mount.
        let unknown = self.allocated.is_none() && self.has_instances();
        unknown
            || !self.surplus.is_empty()
            || self.containers.iter().any(|c| c.instance.as_ref().is_some_and(|i| i.holds(volume)))
    }
    /// The attempt number of the sandbox that containers run in now, if it is ready.
    pub fn ready_sandbox(&self) -> Option<u32> {
        match &self.sandbox {
            Some(s) if matches!(s.phase, super::SandboxPhase::Ready) => Some(s.attempt),
            Some(_) | None => None,
        }
    }
    /// An incarnation for a name that is added now. Later ones of it than those kept may have been forgotten.
    pub fn next_incarnation(&self, name: &str) -> u32 {
        let of_name = self.containers.iter().filter(|c| &*c.name == name);
        of_name.map(|c| c.incarnation + 1).fold(self.incarnation_floor, u32::max)
    }
    /// A generation for a volume name that is added now.
    pub fn next_generation(&self, name: &str) -> u32 {
        let of_name = self.volumes.iter().filter(|v| &*v.id.name == name);
        of_name.map(|v| v.id.generation + 1).fold(self.generation_floor, u32::max)
    }
    /// A volume, wherever it stood, is gone from there: its objects may be given up.
    pub fn let_go_of(&mut self, volume: &Volume) {
        self.let_go.extend(volume.source.objects().into_iter().map(|o| o.object.clone()));
    }
    /// Some volume that is desired, allocated, retained or waits for the pod's next life shows the object.
    pub fn refers_to(&self, object: &ObjectRef) -> bool {
        let shows = |volume: &Volume| volume.source.objects().iter().any(|o| o.object == *object);
        let desired = self.pod.spec.volumes.iter().chain(self.again.iter().flat_map(|p| &p.spec.volumes));
        desired.into_iter().any(|v| shows(v))
            || self.volumes.iter().filter_map(|v| v.spec.as_ref()).any(|v| shows(v))
    }
    /// How long a stop of one of its containers may take when nothing shorter is said. The grace bypasses allocation.
    pub fn termination_grace(&self) -> Nanos {
        self.pod.spec.termination_grace
    }
}
