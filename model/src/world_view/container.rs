//! One container instance as a trace tells it: what it was made from and whether its processes may exist.

use nodefold_core::command::MountedVolume;
use nodefold_core::event::{Exit, ProbeKind};
use nodefold_core::ids::ContainerId;
use nodefold_core::resources::{ResourceList, Resources};
use nodefold_core::spec::{Container, PodSpec};
use nodefold_core::time::Time;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Cpu requests up to this many millicores all mean the least shares there are (kubelet-pods case 81).
pub const LEAST_CPU_MILLICORES: u64 = 2;

/// What part a container plays in its pod.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Runs to its end before the mains.
    Init,
    /// A restartable init container.
    Sidecar,
    /// A main container.
    Main,
    /// An ephemeral container.
    Ephemeral,
    /// The trace never says.
    Unknown,
}

/// How far a container's life is known to be. Everything but `Ended` may have processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Life {
    /// Its creation was commanded.
    Creating,
    /// It exists and has not been started (or its start was not tried).
    Created,
    /// Its start was commanded.
    Starting,
    /// It runs.
    Running,
    /// An operation's outcome is uncertain, an agent's end cut it off, or the runtime lost track.
    Unknown,
    /// It verifiably has no processes.
    Ended(Ending),
}

/// How a container's life is known to have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its exit was seen.
    Exited(Exit),
    /// A complete list lacks it, the host rebooted, or it was removed, and nobody saw an exit.
    Lost,
    /// Its creation failed for certain.
    NeverCreated,
    /// Its start failed for certain: no instruction of it ever ran, and none will.
    NeverStarted,
}

/// A stop under way.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct StopView {
    /// The command with the earliest deadline.
    pub index: usize,
    /// When the kill is due.
    pub deadline: Time,
    /// A kill was commanded.
    pub killed: bool,
}

/// Records of the first desired version in which an aspect of the container differs from the instance's own: what a
/// restart may claim as its reason (S9).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The image, or anything else that isn't named here.
    pub definition: Option<usize>,
    /// The mounts, or the source of a mounted volume.
    pub mounts: Option<usize>,
    /// The resources.
    pub resources: Option<usize>,
    /// The container is not in the spec at all.
    pub removed: Option<usize>,
}

/// A container instance.
#[derive(Clone, Debug)]
pub struct ContainerView {
    /// Which.
    pub id: ContainerId,
    /// Its definition, if its creation is in the trace.
    pub spec: Option<Arc<Container>>,
    /// Its part.
    pub role: Role,
    /// What it holds leases on; `None`: nobody knows, so it may hold anything.
    pub mounts: Option<Vec<MountedVolume>>,
    /// The sandbox it was made in.
    pub sandbox: Option<u32>,
    /// The record that brought it into being.
    pub born: usize,
    /// How far its life is.
    pub life: Life,
    /// The record that says so.
    pub life_index: usize,
    /// Only a look that the node took for another pod tells that it runs: it acts on that when it looks for this one.
    pub hearsay: bool,
    /// The latest command that began an operation on it.
    pub commanded: usize,
    /// The record that shows it running first.
    pub started: Option<usize>,
    /// The first record of its exit.
    pub exit: Option<(usize, Exit)>,
    /// The record from which it was known to be lost.
    pub lost: Option<usize>,
    /// The record of a failed start.
    pub start_failed: Option<usize>,
    /// Its stop.
    pub stop: Option<StopView>,
    /// The node asked for its end, for whatever reason.
    pub stop_commanded: Option<usize>,
    /// The record that shows its removal allocated.
    pub removed: Option<usize>,
    /// How desired versions differ from it.
    pub changes: Changes,
    /// Its probes that are asked in this life of the agent.
    pub probing: BTreeSet<ProbeKind>,
    /// The record of its startup probe passing.
    pub startup_passed: Option<usize>,
    /// The record of its readiness probe's latest result, and the result.
    pub readiness: Option<(usize, bool)>,
    /// What the runtime acknowledged last.
    pub resources: Resources,
    /// What a resize under way asks for.
    pub resizing: Option<Resources>,
    /// The latest resize commanded, and to which requests.
    pub resized: Option<(usize, ResourceList)>,
    /// The agent's end left this create or start unanswered: only an observation permits to repeat it.
    pub unanswered: Option<usize>,
}

impl ContainerView {
    /// A container that record `born` brings up.
    pub fn new(id: ContainerId, life: Life, born: usize) -> ContainerView {
        ContainerView {
            id,
            spec: None,
            role: Role::Unknown,
            mounts: None,
            sandbox: None,
            born,
            life,
            life_index: born,
            hearsay: false,
            commanded: born,
            started: None,
            exit: None,
            lost: None,
            start_failed: None,
            stop: None,
            stop_commanded: None,
            removed: None,
            changes: Changes::default(),
            probing: BTreeSet::new(),
            startup_passed: None,
            readiness: None,
            resources: Resources::default(),
            resizing: None,
            resized: None,
            unanswered: None,
        }
    }

    /// Whether any process of it may exist.
    pub fn may_run(&self) -> bool {
        !matches!(self.life, Life::Ended(_))
    }

    /// The latest record that says that it may run, for evidence.
    pub fn proof(&self) -> usize {
        self.life_index
    }

    /// Moves its life on. What has ended for certain does not live again, whatever a late report says (B2); what was
    /// only found missing may turn up after all (B27).
    pub fn turn(&mut self, life: Life, index: usize) {
        let over = match &self.life {
            Life::Ended(Ending::Exited(_)) => true,
            Life::Ended(Ending::Lost | Ending::NeverCreated | Ending::NeverStarted)
            | Life::Creating
            | Life::Created
            | Life::Starting
            | Life::Running
            | Life::Unknown => false,
        };
        if !over && self.life != life {
            self.life = life;
            self.life_index = index;
        }
    }

    /// Records its exit.
    pub fn ended(&mut self, exit: &Exit, index: usize) {
        if self.exit.is_none() {
            self.exit = Some((index, exit.clone()));
        }
        self.turn(Life::Ended(Ending::Exited(exit.clone())), index);
    }

    /// Records that it is gone without anybody having seen an exit.
    pub fn vanished(&mut self, index: usize) {
        if self.may_run() {
            self.lost = Some(index);
            self.turn(Life::Ended(Ending::Lost), index);
        }
    }

    /// Whether the instance holds a lease on any life of this volume name; unknown mounts may be anything (DESIGN §4
    /// rule 3: unknown is in use).
    pub fn may_hold(&self, volume: &nodefold_core::ids::VolumeId) -> bool {
        self.mounts.as_ref().is_none_or(|mounts| mounts.iter().any(|m| &m.volume == volume))
    }

    /// A state in words.
    pub fn life_in_words(&self) -> &'static str {
        match &self.life {
            Life::Creating => "being created",
            Life::Created => "created",
            Life::Starting => "being started",
            Life::Running if self.stop_commanded.is_some() => "stopping",
            Life::Running => "running",
            Life::Unknown => "unknown",
            Life::Ended(_) => "ended",
        }
    }
}

/// The container of that name in a spec, of any kind but ephemeral, with its part.
pub fn find_container<'a>(spec: &'a PodSpec, name: &str) -> Option<(&'a Arc<Container>, Role)> {
    if let Some(main) = spec.container(name) {
        return Some((main, Role::Main));
    }
    let init = spec.init_containers.iter().find(|c| &*c.name == name)?;
    Some((init, if PodSpec::is_sidecar(init) { Role::Sidecar } else { Role::Init }))
}
