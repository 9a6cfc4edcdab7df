//! Commands: the only output of the fold (DESIGN §3 "Commands"). Imperative, each with the operation that its
//! completion must name and the cause that explains it.

use crate::event::{Hook, ProbeKind};
use crate::ids::{ContainerId, EventSeq, Name, OpId, PodUid, VolumeId, Word};
use crate::resources::Resources;
use crate::spec::{Container, Pod, PodSpec, PullPolicy, Volume, VolumeMount};
use crate::status::PodStatus;
use crate::time::{Nanos, Time};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Something the core wants done.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Command {
    /// The attempt. Its completion names it.
    pub op: OpId,
    /// For which pod; `PodUid(0)` for what concerns the node.
    pub pod: PodUid,
    /// Why.
    pub cause: Cause,
    /// What.
    pub action: Action,
}

/// Why a command was given.
#[derive(Copy, Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Cause {
    /// The event that made it due.
    pub event: EventSeq,
    /// The rule that asked for it.
    pub rule: Rule,
}

/// The rules that give commands, by the sentence that a person would cite.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub enum Rule {
    /// An allocated, referenced volume is to be on the host.
    VolumeDesired,
    /// A failed mount is tried again after its back-off.
    VolumeRetry,
    /// Content changed, or a credential wants renewal.
    VolumeRefresh,
    /// A removed volume that nothing can hold any more goes (S1).
    VolumeRemoved,
    /// The pod is over: its volumes go.
    PodVolumesReleased,
    /// A mount of nobody's.
    VolumeOrphaned,
    /// A pod that runs needs a sandbox.
    SandboxNeeded,
    /// A sandbox that is dead or surplus goes.
    SandboxObsolete,
    /// The next init container.
    InitNext,
    /// A sidecar (re)starts, whatever the pod's policy.
    SidecarNeeded,
    /// A main container starts.
    MainNeeded,
    /// An ephemeral container starts, once.
    EphemeralNeeded,
    /// The container was removed from the allocation (KEP-5972).
    ContainerRemoved,
    /// Image changed.
    DefinitionChanged,
    /// Mounts changed, under RestartContainer (KEP-6395).
    MountsChanged,
    /// A resize that needs a restart.
    ResizeRestart,
    /// A resize in place.
    ResizeInPlace,
    /// The liveness probe failed.
    LivenessFailed,
    /// The startup probe failed.
    StartupFailed,
    /// postStart failed.
    PostStartFailed,
    /// The runtime lost track of the container.
    RuntimeUnknown,
    /// RestartAllContainers (KEP-5532).
    RestartAll,
    /// The pod's sandbox is gone.
    SandboxGone,
    /// The pod is terminating.
    PodTerminating,
    /// The stop's deadline passed.
    GraceExceeded,
    /// An instance that should not exist.
    Surplus,
    /// Dead containers and sandboxes beyond what is kept.
    GarbageCollected,
    /// Something unknown must be looked at.
    ObservationNeeded,
    /// What people see changed.
    StatusChanged,
    /// Containers stopped, volumes gone, terminal phase published (S8).
    PodReleased,
    /// A hook of the container.
    LifecycleHook,
    /// A container's probes follow its life.
    ProbeLifetime,
    /// Something worth telling.
    Told,
    /// The API is to show a static pod.
    MirrorNeeded,
    /// A mirror pod shows nothing that is here.
    MirrorObsolete,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Action {
    /// Set a volume up on the host. Idempotent over any partial state.
    MountVolume {
        /// Which.
        volume: VolumeId,
        /// From what.
        spec: Arc<Volume>,
        /// The pod as it was applied last (for downwardAPI), and its allocation.
        pod: Arc<Pod>,
        /// The allocation it belongs to.
        allocated: Arc<PodSpec>,
    },
    /// Take it down. Idempotent; "not mounted" is success. For an image volume: drop its lease.
    UnmountVolume {
        /// Which.
        volume: VolumeId,
        /// What it was made from; unknown for a mount found on the host.
        spec: Option<Arc<Volume>>,
    },
    /// Write its newest content, without ever harming what is there.
    RefreshVolume {
        /// Which.
        volume: VolumeId,
        /// From what.
        spec: Arc<Volume>,
        /// See `MountVolume`.
        pod: Arc<Pod>,
        /// See `MountVolume`.
        allocated: Arc<PodSpec>,
    },
    /// Have an image present for a container's start.
    PullImage {
        /// For which container.
        container: ContainerId,
        /// Which image.
        image: Name,
        /// When to ask the registry.
        policy: PullPolicy,
    },
    /// Make the pod's sandbox.
    CreateSandbox {
        /// Which attempt.
        attempt: u32,
        /// The pod.
        pod: Arc<Pod>,
        /// Its allocation.
        allocated: Arc<PodSpec>,
    },
    /// Stop it. Idempotent.
    StopSandbox {
        /// Which attempt.
        attempt: u32,
    },
    /// Remove a stopped one.
    RemoveSandbox {
        /// Which attempt.
        attempt: u32,
    },
    /// Make a container up to just before its first instruction.
    CreateContainer {
        /// Which.
        container: ContainerId,
        /// Its definition.
        spec: Arc<Container>,
        /// Its mounts, each with the life of the volume it means.
        mounts: Vec<MountedVolume>,
        /// In which sandbox attempt.
        sandbox: u32,
        /// The pod.
        pod: Arc<Pod>,
        /// Its allocation.
        allocated: Arc<PodSpec>,
    },
    /// Let it go.
    StartContainer {
        /// Which.
        container: ContainerId,
    },
    /// TERM, then KILL after the grace. A later stop with less grace overtakes this one. The exit is its completion.
    StopContainer {
        /// Which.
        container: ContainerId,
        /// From now.
        grace: Nanos,
    },
    /// KILL now.
    KillContainer {
        /// Which.
        container: ContainerId,
    },
    /// Remove a dead one from the runtime.
    RemoveContainer {
        /// Which.
        container: ContainerId,
    },
    /// Change a running container's resources in place.
    ResizeContainer {
        /// Which.
        container: ContainerId,
        /// To what.
        resources: Resources,
    },
    /// Change the pod cgroup's resources.
    ResizePod {
        /// To what.
        resources: Resources,
    },
    /// Run a lifecycle hook.
    RunHook {
        /// Of which container.
        container: ContainerId,
        /// Which.
        hook: Hook,
        /// Give up after this long; `None`: never.
        timeout: Option<Nanos>,
        /// Its definition.
        spec: Arc<Container>,
    },
    /// Begin to probe.
    StartProbe {
        /// Which container.
        container: ContainerId,
        /// Which probe.
        probe: ProbeKind,
        /// Its definition.
        spec: Arc<Container>,
    },
    /// Stop probing.
    StopProbe {
        /// Which container.
        container: ContainerId,
        /// Which probe.
        probe: ProbeKind,
    },
    /// List the mounts under the pods' directory.
    ObserveMounts,
    /// List the runtime's sandboxes and containers. The list must be read after this command.
    ObserveRuntime,
    /// Write the pod's status to the API.
    PublishStatus {
        /// All of it.
        status: Arc<PodStatus>,
        /// The mirror pod that shows it, if the pod is a static one; `None`: the pod's own object.
        mirror: Option<PodUid>,
    },
    /// Record a Kubernetes Event about the pod.
    RecordEvent(KubernetesEvent),
    /// Delete the pod's object for good: grace 0, with this UID as precondition.
    ReleasePod,
    /// Make a mirror pod of this static pod. One that is there already and is of this very pod is as good.
    CreateMirror {
        /// The static pod.
        pod: Arc<Pod>,
    },
    /// Delete a mirror pod: grace 0, with the command's pod, which is the object's own UID, as precondition. "Not there" is
    /// success.
    DeleteMirror {
        /// Its namespace.
        namespace: Name,
        /// Its name.
        name: Name,
    },
}

/// A mount with the life of the volume that it means: what a lease and a restart decision compare.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct MountedVolume {
    /// Which life of the volume.
    pub volume: VolumeId,
    /// The mount.
    pub mount: VolumeMount,
}

/// A Kubernetes Event.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct KubernetesEvent {
    /// Normal or Warning.
    pub warning: bool,
    /// Its reason.
    pub reason: Word,
    /// Its message.
    pub message: Word,
    /// The container it is about, if one (for `involvedObject.fieldPath`).
    pub container: Option<Name>,
}

/// What changed its phase: the life of things as people draw it.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Transition {
    /// In which pod.
    pub pod: PodUid,
    /// What.
    pub subject: Subject,
    /// Its phase before; empty: it did not exist.
    pub from: Word,
    /// Its phase now; empty: it is gone.
    pub to: Word,
}

/// Something that lives and is drawn as a lane.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Subject {
    /// The pod's own lifecycle.
    Pod,
    /// Its sandbox.
    Sandbox(u32),
    /// A container.
    Container(ContainerId),
    /// A volume.
    Volume(VolumeId),
}

/// What one or more `apply` calls asked for, in order. Reuse it: `apply` only appends.
#[derive(Clone, Debug, Default)]
pub struct Commands {
    /// Commands to execute.
    pub commands: Vec<Command>,
    /// What changed phase, for people; no command depends on it.
    pub transitions: Vec<Transition>,
}

impl Commands {
    /// Forgets everything, keeping the memory.
    pub fn clear(&mut self) {
        self.commands.clear();
        self.transitions.clear();
    }
}

/// One entry of a trace: what oracles read (DESIGN §1). Any system can produce one.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum TraceEntry {
    /// A fact arrived.
    Fact(crate::event::Event),
    /// A command was given at this time.
    Command {
        /// When.
        at: Time,
        /// What.
        command: Command,
    },
}

impl Action {
    /// The verb of a scenario's `order:` and `never:` (`mount`, `unmount`, `create`, ...).
    pub fn verb(&self) -> &'static str {
        match self {
            Action::MountVolume { .. } => "mount",
            Action::UnmountVolume { .. } => "unmount",
            Action::RefreshVolume { .. } => "refresh",
            Action::PullImage { .. } => "pull",
            Action::CreateSandbox { .. } => "sandbox",
            Action::StopSandbox { .. } => "stop-sandbox",
            Action::RemoveSandbox { .. } => "remove-sandbox",
            Action::CreateContainer { .. } => "create",
            Action::StartContainer { .. } => "start",
            Action::StopContainer { .. } => "stop",
            Action::KillContainer { .. } => "kill",
            Action::RemoveContainer { .. } => "remove",
            Action::ResizeContainer { .. } => "resize",
            Action::ResizePod { .. } => "resize-pod",
            Action::RunHook { .. } => "hook",
            Action::StartProbe { .. } => "start-probe",
            Action::StopProbe { .. } => "stop-probe",
            Action::ObserveMounts => "observe-mounts",
            Action::ObserveRuntime => "observe-runtime",
            Action::PublishStatus { .. } => "status",
            Action::RecordEvent(_) => "event",
            Action::ReleasePod => "release",
            Action::CreateMirror { .. } => "create-mirror",
            Action::DeleteMirror { .. } => "delete-mirror",
        }
    }
}
