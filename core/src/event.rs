//! Facts: the only input of the fold (DESIGN §3 "Events"). Past tense, each naming the operation and the instance it
//! is about. Nothing here decides.

use crate::config::NodeFacts;
use crate::ids::{ContainerId, Name, ObjectRef, OpId, PodUid, Source, VolumeId};
use crate::spec::Pod;
use crate::time::Time;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Something that happened, and when.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Event {
    /// When it happened, as the driver's clock had it. The core knows no other time.
    pub at: Time,
    /// What.
    pub fact: Fact,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub enum Fact {
    /// Nothing but time.
    Tick,

    // --- desired state -------------------------------------------------------------------------------------------
    /// A pod appeared at its source or changed there.
    PodApplied(Arc<Pod>),
    /// The pod's object is gone from its source: released, force-deleted, or its file removed.
    PodRemoved {
        /// Which pod.
        pod: PodUid,
    },
    /// The source has delivered everything it has (once per epoch, at the end of its first list). Pods of that source
    /// not applied since the agent started are gone from it.
    SourceReady {
        /// Which source.
        source: Source,
    },
    /// A referenced object exists, in this version. Bytes never enter the core: only that the content differs.
    ObjectSeen {
        /// Which object.
        object: ObjectRef,
        /// Its version.
        version: ObjectVersion,
    },
    /// A referenced object does not exist (any more).
    ObjectGone {
        /// Which object.
        object: ObjectRef,
    },
    /// The node's allocatable, labels or gates, as a whole.
    NodeChanged(NodeFacts),
    /// A condition that a readiness gate of the pod names.
    ReadinessGate {
        /// Which pod.
        pod: PodUid,
        /// Its condition type.
        condition: Name,
        /// It is True.
        met: bool,
    },

    // --- volumes -------------------------------------------------------------------------------------------------
    /// A mount succeeded: the volume is set up on the host.
    VolumeMounted {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// Which volume.
        volume: VolumeId,
        /// When a credential in it wants renewal (80 % of a token's life).
        renew_at: Option<Time>,
        /// The digest of an image volume's image.
        image_digest: Option<Name>,
    },
    /// A mount failed.
    VolumeMountFailed {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// Which volume.
        volume: VolumeId,
        /// Why.
        error: OpError,
    },
    /// An unmount succeeded: nothing of the volume is left on the host.
    VolumeUnmounted {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// Which volume.
        volume: VolumeId,
    },
    /// An unmount failed.
    VolumeUnmountFailed {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// Which volume.
        volume: VolumeId,
        /// Why.
        error: OpError,
    },
    /// A refresh wrote the newest content.
    VolumeRefreshed {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// Which volume.
        volume: VolumeId,
        /// See `VolumeMounted`.
        renew_at: Option<Time>,
    },
    /// A refresh failed; the former content is intact (kubelet-volumes I6).
    VolumeRefreshFailed {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// Which volume.
        volume: VolumeId,
        /// Why.
        error: OpError,
    },
    /// Bytes on disk (or in memory, for a memory volume), reported when a limit is crossed either way.
    UsageReported {
        /// Which pod.
        pod: PodUid,
        /// Of what.
        of: UsageOf,
        /// How much.
        bytes: u64,
    },

    // --- images --------------------------------------------------------------------------------------------------
    /// The image for a container's next start is present.
    ImagePulled {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// For which container.
        container: ContainerId,
        /// The image's digest.
        image_id: Name,
        /// Nothing had to be pulled.
        already_present: bool,
    },
    /// It could not be had.
    ImagePullFailed {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// For which container.
        container: ContainerId,
        /// Why. `reason` may be `ErrImageNeverPull` or `InvalidImageName`.
        error: OpError,
    },

    // --- sandbox -------------------------------------------------------------------------------------------------
    /// The sandbox runs.
    SandboxReady {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// Which attempt.
        attempt: u32,
        /// Its address. None without network of its own (or if the network plugin gave none).
        ip: Option<Name>,
    },
    /// It could not be made.
    SandboxFailed {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// Which attempt.
        attempt: u32,
        /// Why.
        error: OpError,
    },
    /// The sandbox no longer runs: stopped as commanded, or died.
    SandboxStopped {
        /// Which pod.
        pod: PodUid,
        /// Which attempt.
        attempt: u32,
    },
    /// Stopping it failed.
    SandboxStopFailed {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// Which attempt.
        attempt: u32,
        /// Why.
        error: OpError,
    },
    /// The dead sandbox was removed.
    SandboxRemoved {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// Which attempt.
        attempt: u32,
    },
    /// Removing it failed.
    SandboxRemoveFailed {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// Which attempt.
        attempt: u32,
        /// Why.
        error: OpError,
    },

    // --- containers ----------------------------------------------------------------------------------------------
    /// The container exists, parked before its first instruction.
    ContainerCreated {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// Which container.
        container: ContainerId,
    },
    /// It could not be made.
    ContainerCreateFailed {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// Which container.
        container: ContainerId,
        /// Why. `reason` may be `CreateContainerConfigError`.
        error: OpError,
    },
    /// The container runs.
    ContainerStarted {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// Which container.
        container: ContainerId,
    },
    /// It could not be started.
    ContainerStartFailed {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// Which container.
        container: ContainerId,
        /// Why.
        error: OpError,
    },
    /// All its processes have ended.
    ContainerExited {
        /// Which pod.
        pod: PodUid,
        /// Which container.
        container: ContainerId,
        /// How.
        exit: Exit,
    },
    /// A stop or kill was refused or went wrong.
    ContainerStopFailed {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// Which container.
        container: ContainerId,
        /// Why.
        error: OpError,
    },
    /// The dead container was removed from the runtime.
    ContainerRemoved {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// Which container.
        container: ContainerId,
    },
    /// Removing it failed.
    ContainerRemoveFailed {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// Which container.
        container: ContainerId,
        /// Why.
        error: OpError,
    },
    /// The runtime acknowledged the container's new resources.
    ContainerResized {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// Which container.
        container: ContainerId,
    },
    /// It refused them.
    ContainerResizeFailed {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// Which container.
        container: ContainerId,
        /// Why.
        error: OpError,
    },
    /// The pod's cgroup has its new resources.
    PodResized {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
    },
    /// It was refused them.
    PodResizeFailed {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// Why.
        error: OpError,
    },
    /// A lifecycle hook ended.
    HookDone {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// Which container.
        container: ContainerId,
        /// Which hook.
        hook: Hook,
        /// Why it failed, if it did.
        error: Option<Name>,
    },
    /// A probe reached a threshold: it passes now, or fails now. Not each sample.
    ProbeResult {
        /// Which pod.
        pod: PodUid,
        /// Which container.
        container: ContainerId,
        /// Which probe.
        probe: ProbeKind,
        /// It passes.
        passed: bool,
        /// What the probe said.
        message: Name,
    },

    // --- the agent's own life ------------------------------------------------------------------------------------
    /// The agent started: a new epoch. A new `boot_id` means that the host rebooted in between.
    AgentStarted {
        /// The kernel's boot id.
        boot_id: u128,
    },
    /// The mount table under the pods' directory, whole.
    MountsObserved {
        /// The observation's operation.
        op: OpId,
        /// What is there.
        mounts: Vec<SeenMount>,
    },
    /// The runtime's list.
    RuntimeObserved {
        /// The observation's operation.
        op: OpId,
        /// The runtime vouches that nothing is missing from the list. Absence counts only then.
        complete: bool,
        /// Its sandboxes.
        sandboxes: Vec<SeenSandbox>,
        /// Its containers.
        containers: Vec<SeenContainer>,
    },
    /// An observation failed.
    ObserveFailed {
        /// The operation.
        op: OpId,
        /// Why.
        error: OpError,
    },

    // --- the API's answers ---------------------------------------------------------------------------------------
    /// A status write was acknowledged.
    StatusWritten {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
    },
    /// It was refused or lost.
    StatusWriteFailed {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// Why.
        error: OpError,
    },
    /// Releasing the pod (the final delete) failed. Success is the `PodRemoved` that follows.
    ReleaseFailed {
        /// The operation.
        op: OpId,
        /// Which pod.
        pod: PodUid,
        /// Why.
        error: OpError,
    },

    // --- mirror pods: what the API has in a static pod's place --------------------------------------------------------
    /// The API has this object under a static pod's name.
    MirrorSeen {
        /// Its namespace.
        namespace: Name,
        /// Its name.
        name: Name,
        /// What it is.
        mirror: Mirror,
    },
    /// It no longer has it.
    MirrorGone {
        /// Its namespace.
        namespace: Name,
        /// Its name.
        name: Name,
        /// The object that went.
        mirror: PodUid,
    },
    /// The node's create was acknowledged, or the very mirror was there already.
    MirrorCreated {
        /// The operation.
        op: OpId,
        /// Its namespace.
        namespace: Name,
        /// Its name.
        name: Name,
        /// What is there now.
        mirror: Mirror,
    },
    /// The node's delete was acknowledged, or that object was gone already.
    MirrorDeleted {
        /// The operation.
        op: OpId,
        /// Its namespace.
        namespace: Name,
        /// Its name.
        name: Name,
        /// The object.
        mirror: PodUid,
    },
    /// The node's create or delete was refused or lost.
    MirrorFailed {
        /// The operation.
        op: OpId,
        /// As the command named it: the static pod to be shown, or the object to be deleted.
        pod: PodUid,
        /// Its namespace.
        namespace: Name,
        /// Its name.
        name: Name,
        /// Why.
        error: OpError,
    },
}

/// A mirror pod as the API has it.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Mirror {
    /// The object's own UID.
    pub uid: PodUid,
    /// The static pod that it was made for (annotation `kubernetes.io/config.mirror`): another version of the file is
    /// another pod.
    pub of: PodUid,
    /// Somebody has asked for its deletion.
    pub deleting: bool,
}

/// A version of a secret or configMap: equal digests mean equal content.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct ObjectVersion {
    /// `metadata.resourceVersion`.
    pub resource_version: Name,
    /// A keyed digest of the content, made where the bytes are.
    pub digest: u128,
    /// Key names and sizes, for people.
    pub keys: Vec<(Name, u64)>,
}

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct OpError {
    /// What is known about its effect.
    pub class: ErrorClass,
    /// A waiting reason more exact than the operation's own, as Kubernetes spells it.
    pub reason: Option<Name>,
    /// For people. No secret data.
    pub message: Name,
}

/// What a failure says about the effect (kubelet-volumes §1.8).
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[cfg_attr(feature = "rkyv", rkyv(derive(PartialEq, Eq, PartialOrd, Ord)))]
pub enum ErrorClass {
    /// It did not happen, and that is an answer.
    Final,
    /// It was not tried: no answer.
    Transient,
    /// It may have happened, or still happen.
    Uncertain,
}

/// What usage is of.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub enum UsageOf {
    /// A volume's content.
    Volume(VolumeId),
    /// A container's writable layer and logs.
    Container(ContainerId),
}

/// How a container ended.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Exit {
    /// The exit code; 128 + signal for a signal's.
    pub code: i32,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// As the runtime names it: `Completed`, `Error`, `OOMKilled`, `ContainerStatusUnknown`, ...
    pub reason: Name,
    /// When it started, if it ever did.
    pub started_at: Option<Time>,
    /// When it ended.
    pub finished_at: Time,
}

/// A lifecycle hook.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[cfg_attr(feature = "rkyv", rkyv(derive(PartialEq, Eq, PartialOrd, Ord)))]
pub enum Hook {
    /// After start.
    PostStart,
    /// Before stop.
    PreStop,
}

/// A probe.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[cfg_attr(feature = "rkyv", rkyv(derive(PartialEq, Eq, PartialOrd, Ord)))]
pub enum ProbeKind {
    /// Gates the other two and, for a sidecar, what comes after it.
    Startup,
    /// Its failure restarts the container.
    Liveness,
    /// Its result is readiness.
    Readiness,
}

/// A volume found on the host.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct SeenMount {
    /// Whose.
    pub pod: PodUid,
    /// Which volume. An executor persists the generation; one that can't know it reports 0.
    pub volume: VolumeId,
}

/// A sandbox found in the runtime.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct SeenSandbox {
    /// Whose.
    pub pod: PodUid,
    /// Which attempt.
    pub attempt: u32,
    /// It runs.
    pub ready: bool,
    /// Its address.
    pub ip: Option<Name>,
}

/// A container found in the runtime.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct SeenContainer {
    /// Whose.
    pub pod: PodUid,
    /// Which.
    pub container: ContainerId,
    /// Its state there.
    pub state: SeenState,
}

/// A container's state as the runtime has it.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub enum SeenState {
    /// Made, not started.
    Created,
    /// Runs.
    Running {
        /// Since when.
        started_at: Time,
    },
    /// Ended.
    Exited(Exit),
    /// The runtime itself doesn't know.
    Unknown,
}

impl Fact {
    /// The fact's name, as logs and coverage tables print it.
    pub fn name(&self) -> &'static str {
        match self {
            Fact::Tick => "Tick",
            Fact::PodApplied(_) => "PodApplied",
            Fact::PodRemoved { .. } => "PodRemoved",
            Fact::SourceReady { .. } => "SourceReady",
            Fact::ObjectSeen { .. } => "ObjectSeen",
            Fact::ObjectGone { .. } => "ObjectGone",
            Fact::NodeChanged(_) => "NodeChanged",
            Fact::ReadinessGate { .. } => "ReadinessGate",
            Fact::VolumeMounted { .. } => "VolumeMounted",
            Fact::VolumeMountFailed { .. } => "VolumeMountFailed",
            Fact::VolumeUnmounted { .. } => "VolumeUnmounted",
            Fact::VolumeUnmountFailed { .. } => "VolumeUnmountFailed",
            Fact::VolumeRefreshed { .. } => "VolumeRefreshed",
            Fact::VolumeRefreshFailed { .. } => "VolumeRefreshFailed",
            Fact::UsageReported { .. } => "UsageReported",
            Fact::ImagePulled { .. } => "ImagePulled",
            Fact::ImagePullFailed { .. } => "ImagePullFailed",
            Fact::SandboxReady { .. } => "SandboxReady",
            Fact::SandboxFailed { .. } => "SandboxFailed",
            Fact::SandboxStopped { .. } => "SandboxStopped",
            Fact::SandboxStopFailed { .. } => "SandboxStopFailed",
            Fact::SandboxRemoved { .. } => "SandboxRemoved",
            Fact::SandboxRemoveFailed { .. } => "SandboxRemoveFailed",
            Fact::ContainerCreated { .. } => "ContainerCreated",
            Fact::ContainerCreateFailed { .. } => "ContainerCreateFailed",
            Fact::ContainerStarted { .. } => "ContainerStarted",
            Fact::ContainerStartFailed { .. } => "ContainerStartFailed",
            Fact::ContainerExited { .. } => "ContainerExited",
            Fact::ContainerStopFailed { .. } => "ContainerStopFailed",
            Fact::ContainerRemoved { .. } => "ContainerRemoved",
            Fact::ContainerRemoveFailed { .. } => "ContainerRemoveFailed",
            Fact::ContainerResized { .. } => "ContainerResized",
            Fact::ContainerResizeFailed { .. } => "ContainerResizeFailed",
            Fact::PodResized { .. } => "PodResized",
            Fact::PodResizeFailed { .. } => "PodResizeFailed",
            Fact::HookDone { .. } => "HookDone",
            Fact::ProbeResult { .. } => "ProbeResult",
            Fact::AgentStarted { .. } => "AgentStarted",
            Fact::MountsObserved { .. } => "MountsObserved",
            Fact::RuntimeObserved { .. } => "RuntimeObserved",
            Fact::ObserveFailed { .. } => "ObserveFailed",
            Fact::StatusWritten { .. } => "StatusWritten",
            Fact::StatusWriteFailed { .. } => "StatusWriteFailed",
            Fact::ReleaseFailed { .. } => "ReleaseFailed",
            Fact::MirrorSeen { .. } => "MirrorSeen",
            Fact::MirrorGone { .. } => "MirrorGone",
            Fact::MirrorCreated { .. } => "MirrorCreated",
            Fact::MirrorDeleted { .. } => "MirrorDeleted",
            Fact::MirrorFailed { .. } => "MirrorFailed",
        }
    }

    /// The one pod that the fact is about, if it is about one.
    pub fn pod(&self) -> Option<PodUid> {
        match self {
            Fact::PodApplied(pod) => Some(pod.uid),
            Fact::PodRemoved { pod }
            | Fact::ReadinessGate { pod, .. }
            | Fact::VolumeMounted { pod, .. }
            | Fact::VolumeMountFailed { pod, .. }
            | Fact::VolumeUnmounted { pod, .. }
            | Fact::VolumeUnmountFailed { pod, .. }
            | Fact::VolumeRefreshed { pod, .. }
            | Fact::VolumeRefreshFailed { pod, .. }
            | Fact::UsageReported { pod, .. }
            | Fact::ImagePulled { pod, .. }
            | Fact::ImagePullFailed { pod, .. }
            | Fact::SandboxReady { pod, .. }
            | Fact::SandboxFailed { pod, .. }
            | Fact::SandboxStopped { pod, .. }
            | Fact::SandboxStopFailed { pod, .. }
            | Fact::SandboxRemoved { pod, .. }
            | Fact::SandboxRemoveFailed { pod, .. }
            | Fact::ContainerCreated { pod, .. }
            | Fact::ContainerCreateFailed { pod, .. }
            | Fact::ContainerStarted { pod, .. }
            | Fact::ContainerStartFailed { pod, .. }
            | Fact::ContainerExited { pod, .. }
            | Fact::ContainerStopFailed { pod, .. }
            | Fact::ContainerRemoved { pod, .. }
            | Fact::ContainerRemoveFailed { pod, .. }
            | Fact::ContainerResized { pod, .. }
            | Fact::ContainerResizeFailed { pod, .. }
            | Fact::PodResized { pod, .. }
            | Fact::PodResizeFailed { pod, .. }
            | Fact::HookDone { pod, .. }
            | Fact::ProbeResult { pod, .. }
            | Fact::StatusWritten { pod, .. }
            | Fact::StatusWriteFailed { pod, .. }
            | Fact::ReleaseFailed { pod, .. }
            | Fact::MirrorFailed { pod, .. } => Some(*pod),
            Fact::MirrorSeen { mirror, .. } | Fact::MirrorCreated { mirror, .. } => Some(mirror.of),
            Fact::MirrorGone { mirror, .. } | Fact::MirrorDeleted { mirror, .. } => Some(*mirror),
            Fact::Tick
            | Fact::SourceReady { .. }
            | Fact::ObjectSeen { .. }
            | Fact::ObjectGone { .. }
            | Fact::NodeChanged(_)
            | Fact::AgentStarted { .. }
            | Fact::MountsObserved { .. }
            | Fact::RuntimeObserved { .. }
            | Fact::ObserveFailed { .. } => None,
        }
    }
}
