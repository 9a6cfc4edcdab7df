//! What the node tells about a pod: `PodStatus` with the two KEPs' fields, typed. The boundary writes it as Kubernetes
//! does. Derived, never read back (DESIGN §4 rule 8).

use crate::ids::{ContainerId, Name, Word};
use crate::resources::{QosClass, ResourceList, Resources};
use crate::spec::Mounts;
use crate::time::Time;
use alloc::vec::Vec;

/// A pod's status.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PodStatus {
    /// `observedGeneration`.
    pub observed_generation: u64,
    /// `phase`.
    pub phase: PodPhase,
    /// `reason`, empty if none.
    pub reason: Name,
    /// `message`, empty if none.
    pub message: Name,
    /// `startTime`.
    pub start_time: Option<Time>,
    /// `podIP`.
    pub pod_ip: Option<Name>,
    /// `qosClass`.
    pub qos: QosClass,
    /// Conditions in published order.
    pub conditions: Vec<Condition>,
    /// `initContainerStatuses`, in the order of the spec.
    pub init_containers: Vec<ContainerStatus>,
    /// `containerStatuses`: the spec's, then the removed ones that are kept.
    pub containers: Vec<ContainerStatus>,
    /// `ephemeralContainerStatuses`.
    pub ephemeral_containers: Vec<ContainerStatus>,
    /// `volumeStatuses` (KEP-6395).
    pub volumes: Vec<VolumeStatus>,
    /// `allocatedResources`: the pod's allocated requests.
    pub allocated_resources: ResourceList,
    /// `resources`: what is in force for the pod.
    pub resources: Resources,
}

/// `status.phase`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum PodPhase {
    /// Not all containers have run.
    Pending,
    /// Some container runs, or will again.
    Running,
    /// All ended well and none will run again.
    Succeeded,
    /// All ended, one of them badly.
    Failed,
}

impl PodPhase {
    /// As Kubernetes spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            PodPhase::Pending => "Pending",
            PodPhase::Running => "Running",
            PodPhase::Succeeded => "Succeeded",
            PodPhase::Failed => "Failed",
        }
    }
    /// A phase that is never left.
    pub const fn is_terminal(self) -> bool {
        matches!(self, PodPhase::Succeeded | PodPhase::Failed)
    }
}

/// A pod condition.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Condition {
    /// `type`.
    pub kind: ConditionKind,
    /// `status`: True or False.
    pub status: bool,
    /// `reason`, empty if none.
    pub reason: Word,
    /// `message`, empty if none.
    pub message: Word,
    /// When `status` last changed.
    pub last_transition: Time,
    /// `observedGeneration`.
    pub observed_generation: u64,
}

/// The conditions this node writes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[cfg_attr(feature = "rkyv", rkyv(derive(PartialEq, Eq, PartialOrd, Ord)))]
pub enum ConditionKind {
    /// A desired change is not allocated.
    PodResizePending,
    /// An allocated change is not actuated.
    PodResizeInProgress,
    /// The sandbox runs.
    PodReadyToStartContainers,
    /// Init containers are done.
    Initialized,
    /// The pod serves.
    Ready,
    /// Its containers do.
    ContainersReady,
    /// It has a node.
    PodScheduled,
    /// RestartAllContainers is under way.
    AllContainersRestarting,
    /// It is being evicted.
    DisruptionTarget,
}

impl ConditionKind {
    /// All of them.
    pub const ALL: [ConditionKind; 9] = [
        ConditionKind::PodResizePending,
        ConditionKind::PodResizeInProgress,
        ConditionKind::PodReadyToStartContainers,
        ConditionKind::Initialized,
        ConditionKind::Ready,
        ConditionKind::ContainersReady,
        ConditionKind::PodScheduled,
        ConditionKind::AllContainersRestarting,
        ConditionKind::DisruptionTarget,
    ];

    /// As Kubernetes spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            ConditionKind::PodResizePending => "PodResizePending",
            ConditionKind::PodResizeInProgress => "PodResizeInProgress",
            ConditionKind::PodReadyToStartContainers => "PodReadyToStartContainers",
            ConditionKind::Initialized => "Initialized",
            ConditionKind::Ready => "Ready",
            ConditionKind::ContainersReady => "ContainersReady",
            ConditionKind::PodScheduled => "PodScheduled",
            ConditionKind::AllContainersRestarting => "AllContainersRestarting",
            ConditionKind::DisruptionTarget => "DisruptionTarget",
        }
    }
}

/// A container's status.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ContainerStatus {
    /// Its name.
    pub name: Name,
    /// The instance that `state` is about; `None` before the first.
    pub id: Option<ContainerId>,
    /// `state`.
    pub state: ContainerState,
    /// `lastState`.
    pub last_state: Option<Terminated>,
    /// `ready`.
    pub ready: bool,
    /// `started`.
    pub started: bool,
    /// `restartCount`.
    pub restart_count: u32,
    /// `image`.
    pub image: Name,
    /// `imageID`, empty until pulled.
    pub image_id: Name,
    /// `allocatedResources`.
    pub allocated_resources: ResourceList,
    /// `resources`: what the runtime acknowledged.
    pub resources: Resources,
    /// `volumeMounts`: the mounts that the shown instance really has.
    pub mounts: Mounts,
}

/// `state`.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ContainerState {
    /// `waiting`.
    Waiting {
        /// Why; empty if there is nothing to say.
        reason: Name,
        /// More.
        message: Name,
    },
    /// `running`.
    Running {
        /// `startedAt`.
        started_at: Time,
    },
    /// `terminated`.
    Terminated(Terminated),
}

/// `terminated`.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Terminated {
    /// Which instance; none if there was none that anybody saw.
    pub id: Option<ContainerId>,
    /// `exitCode`.
    pub exit_code: i32,
    /// `signal`, 0 if none.
    pub signal: i32,
    /// `reason`.
    pub reason: Name,
    /// `message`.
    pub message: Name,
    /// `startedAt`.
    pub started_at: Option<Time>,
    /// `finishedAt`; none if nobody saw it end.
    pub finished_at: Option<Time>,
}

/// `volumeStatuses[]`.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct VolumeStatus {
    /// Its name.
    pub name: Name,
    /// `hostPhase`.
    pub phase: HostPhase,
    /// `errorMessage`: speaks of SetUp only; empty if none.
    pub error_message: Name,
}

/// `hostPhase`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum HostPhase {
    /// Not allocated, or not yet mounted.
    Pending,
    /// On the host.
    HostMounted,
    /// Being mounted, with an error.
    ErrorMounting,
    /// Removal was allocated.
    Unmounting,
}

impl HostPhase {
    /// As KEP-6395 spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            HostPhase::Pending => "Pending",
            HostPhase::HostMounted => "HostMounted",
            HostPhase::ErrorMounting => "ErrorMounting",
            HostPhase::Unmounting => "Unmounting",
        }
    }
}
