//! One addition of a container name to a pod (an incarnation), its current instance, and what is kept of ended ones.

use super::retry::Retry;
use super::shared::Shared;
use crate::command::Rule;
use crate::event::Exit;
use crate::few::Few;
use crate::ids::{ContainerId, Name, OpId, VolumeId};
use crate::resources::Resources;
use crate::spec::Container;
use crate::time::{Nanos, Time};
use alloc::boxed::Box;
use alloc::sync::Arc;

/// What kind of container it is: decides when it starts and whether its end matters.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[cfg_attr(feature = "rkyv", rkyv(derive(PartialEq, Eq, PartialOrd, Ord)))]
pub enum ContainerKind {
    /// Runs to completion before the next.
    Init,
    /// An init container with restartPolicy Always.
    Sidecar,
    /// What the pod is for.
    Main,
    /// Added for a look, once.
    Ephemeral,
}

/// See the file's head.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct ContainerState {
    /// Its name.
    pub name: Name,
    /// Which addition of the name.
    pub incarnation: u32,
    /// Its kind.
    pub kind: ContainerKind,
    /// Its allocated definition; once removed, the last one it had.
    pub spec: Shared<Container>,
    /// When its removal was allocated.
    pub removed: Option<Time>,
    /// Number of the next attempt.
    pub next_attempt: u32,
    /// The current life, if there is one, or may be.
    pub instance: Option<Box<Instance>>,
    /// An image pull for the next attempt, in flight, and of which image.
    pub pulling: Option<Box<(OpId, Name)>>,
    /// The image for the next attempt is present.
    pub image_id: Option<Name>,
    /// Back-off of its image pulls.
    pub pull_retry: Retry,
    /// Back-off of failed creates and starts.
    pub start_retry: Retry,
    /// Why the last start did not come about: `waiting.reason` and `.message`.
    pub start_failure: Option<Box<(Name, Name)>>,
    /// The life that ended last.
    pub last: Option<Box<Ended>>,
    /// The one before it.
    pub previous: Option<Box<Ended>>,
    /// The end of `last` was shown as `state` in an acknowledged status, and may move on to `lastState`.
    pub end_shown: bool,
    /// Ended instances that the runtime still holds, oldest first.
    pub dead: Few<Dead>,
    /// `restartCount`.
    pub restarts: u32,
    /// Exits in a row that were not asked for, each after less than the reset time.
    pub crashes: u32,
    /// It was told that it waits in back-off for `last`.
    pub backoff_told: bool,
    /// A plain init container that ended well in this sandbox attempt: a remembered fact (B29), valid only there (B23).
    pub completed_in: Option<u32>,
    /// An instance of it was started, ever.
    pub ever_started: bool,
    /// Bytes of its writable layer and logs, as reported last.
    pub usage: Option<u64>,
}

/// One life of a container. While this record exists the container may run, and holds the leases.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Instance {
    /// Which attempt.
    pub attempt: u32,
    /// What is known of it.
    pub phase: InstancePhase,
    /// The definition it was made from.
    pub spec: Shared<Container>,
    /// The life of the volume that each mount of the definition means: with it the fingerprint for the restart decision.
    pub leases: Arc<[VolumeId]>,
    /// Digest of its image.
    pub image_id: Name,
    /// In which sandbox.
    pub sandbox: u32,
    /// When it started.
    pub started_at: Option<Time>,
    /// What the runtime acknowledged last (actuated).
    pub resources: Resources,
    /// A resize in flight, and to what.
    pub resizing: Option<Box<(OpId, Resources)>>,
    /// Back-off of failed resizes.
    pub resize_retry: Retry,
    /// Its postStart hook.
    pub post_start: HookState,
    /// What its probes said.
    pub probes: Probes,
    /// It is to stop, or being stopped.
    pub stop: Option<Box<Stop>>,
}

/// What is known of an instance.
#[derive(Copy, Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub enum InstancePhase {
    /// Being made.
    Creating {
        /// By this operation.
        op: OpId,
    },
    /// Made, parked before its first instruction.
    Created,
    /// Being started.
    Starting {
        /// By this operation.
        op: OpId,
    },
    /// It runs.
    Running,
    /// It may exist: an operation's end is unknown. An observation decides.
    Unknown,
    /// The runtime itself lost track of it: it is killed and started anew.
    Lost,
    /// Never started, and being removed.
    Discarding {
        /// By this operation.
        op: OpId,
    },
}

/// A probe's state for one instance.
#[derive(Default, Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Probes {
    /// Asked for in this epoch: startup, liveness, readiness.
    pub asked: [bool; 3],
    /// The latest results: startup, liveness, readiness. `None`: unknown, which is not the same as absent (B37).
    pub results: [Option<bool>; 3],
}

/// A stop under way: a state with a deadline that only moves earlier (DESIGN §4 rule 6).
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Stop {
    /// Why.
    pub why: Rule,
    /// When the kill is due.
    pub deadline: Time,
    /// The preStop hook.
    pub pre_stop: HookState,
    /// The stop that was handed to the runtime: its operation (`None`: refused or unknown), and when the runtime's own
    /// kill follows.
    pub sent: Option<(Option<OpId>, Time)>,
    /// The kill that was handed to the runtime.
    pub kill: Option<OpId>,
    /// Back-off of refused stops and kills.
    pub retry: Retry,
}

/// A lifecycle hook of an instance.
#[derive(Copy, Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub enum HookState {
    /// Not run yet.
    Due,
    /// In flight.
    Running {
        /// By this operation.
        op: OpId,
    },
    /// Done, failed, given up, or there is none.
    Done,
}

/// A life that ended.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Ended {
    /// Which attempt.
    pub attempt: u32,
    /// How.
    pub exit: Exit,
    /// For people.
    pub message: Name,
    /// In which sandbox.
    pub sandbox: u32,
    /// Which rule stopped it; `None`: it ended by itself.
    pub why: Option<Rule>,
    /// The definition it was made from.
    pub spec: Shared<Container>,
    /// Its image's digest.
    pub image_id: Name,
}

/// A dead container that the runtime still holds.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Dead {
    /// Which attempt.
    pub attempt: u32,
    /// In which sandbox.
    pub sandbox: u32,
    /// Being removed.
    pub removing: Option<OpId>,
    /// Back-off of failed removals.
    pub retry: Retry,
}

impl ContainerState {
    /// A container that was just allocated.
    pub fn new(spec: Shared<Container>, kind: ContainerKind, incarnation: u32) -> ContainerState {
        ContainerState {
            name: spec.name.clone(),
            incarnation,
            kind,
            spec,
            removed: None,
            next_attempt: 0,
            instance: None,
            pulling: None,
            image_id: None,
            pull_retry: Retry::default(),
            start_retry: Retry::default(),
            start_failure: None,
            last: None,
            previous: None,
            end_shown: false,
            dead: Few::default(),
            restarts: 0,
            crashes: 0,
            backoff_told: false,
            completed_in: None,
            ever_started: false,
            usage: None,
        }
    }
    /// The id of an attempt of this incarnation.
    pub fn id(&self, attempt: u32) -> ContainerId {
        ContainerId { name: self.name.clone(), incarnation: self.incarnation, attempt }
    }
    /// The id of the current instance.
    pub fn instance_id(&self) -> Option<ContainerId> {
        self.instance.as_ref().map(|i| self.id(i.attempt))
    }
    /// The current instance, if it is that attempt.
    pub fn instance_mut(&mut self, attempt: u32) -> Option<&mut Instance> {
        self.instance.as_deref_mut().filter(|i| i.attempt == attempt)
    }
    /// It runs, as far as is known.
    pub fn is_running(&self) -> bool {
        self.instance.as_ref().is_some_and(|i| matches!(i.phase, InstancePhase::Running))
    }
    /// Started: runs, postStart done, startup probe passed if there is one (kubelet-pods §4.3). Belongs to the
    /// instance, never to the name (B19).
    pub fn is_started(&self) -> bool {
        self.instance.as_ref().is_some_and(|i| {
            matches!(i.phase, InstancePhase::Running)
                && matches!(i.post_start, HookState::Done)
                && (i.spec.startup_probe.is_none() || i.probes.results[0] == Some(true))
        })
    }
    /// Ready: started, and the readiness probe passes if there is one.
    pub fn is_ready(&self) -> bool {
        self.is_started()
            && self
                .instance
                .as_ref()
                .is_some_and(|i| i.spec.readiness_probe.is_none() || i.probes.results[2] == Some(true))
    }
    /// For people: where it is in its life.
    pub fn label(&self) -> &'static str {
        match &self.instance {
            Some(i) => match (i.phase, i.stop.is_some()) {
                (InstancePhase::Creating { .. }, _) => "Creating",
                (InstancePhase::Created, _) => "Created",
                (InstancePhase::Starting { .. }, _) => "Starting",
                (InstancePhase::Running, false) => "Running",
                (InstancePhase::Running, true) => "Stopping",
                (InstancePhase::Unknown, _) => "Unknown",
                (InstancePhase::Lost, _) => "Lost",
                (InstancePhase::Discarding { .. }, _) => "Discarding",
            },
            None if self.pulling.is_some() => "Pulling",
            None if self.last.is_some() => "Exited",
            None => "Waiting",
        }
    }
}

impl Instance {
    /// It holds a lease on that volume.
    pub fn holds(&self, volume: &VolumeId) -> bool {
        self.leases.contains(volume)
    }
}

/// The crash back-off after `crashes` exits in a row: 0, 10, 20, 40 s ... 5 min (DESIGN §4 rule 6, B35).
pub fn crash_backoff(crashes: u32, initial: Nanos, max: Nanos) -> Nanos {
    match crashes {
        0 | 1 => Nanos::ZERO,
        n => super::retry::backoff(n - 1, initial, max),
    }
}
