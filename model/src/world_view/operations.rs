//! Operations in flight: which command still waits for the fact that completes it.

use nodefold_core::command::{Action, Command, Subject};
use nodefold_core::event::{Fact, Hook};
use nodefold_core::ids::{ContainerId, OpId, VolumeId};
use nodefold_core::time::Time;

/// What an operation occupies. Within a lane there is one at a time (S12). Hooks are part of a start or a stop and have
/// lanes of their own: a kill must be able to end a container whose preStop hangs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lane {
    /// A container.
    Container(ContainerId),
    /// A hook of a container.
    Hook(ContainerId, Hook),
    /// A volume.
    Volume(VolumeId),
    /// A sandbox.
    Sandbox(u32),
    /// The pod's cgroup.
    PodResources,
    /// The pod's status at the API. Latest wins, so writes may overtake each other.
    Status,
    /// The pod's final delete.
    Release,
}

/// An operation in flight.
#[derive(Clone, Debug)]
pub struct InFlight {
    /// Which.
    pub op: OpId,
    /// What it occupies.
    pub lane: Lane,
    /// Its verb.
    pub verb: &'static str,
    /// The command's record.
    pub index: usize,
    /// When it was commanded.
    pub at: Time,
    /// For a stop: when the runtime is to kill. For a kill: now. For a hook: when its time is over.
    pub deadline: Option<Time>,
    /// It is a kill.
    pub kill: bool,
}

impl Lane {
    /// The lane of a command; none for what has no completion.
    pub fn of(action: &Action) -> Option<Lane> {
        match action {
            Action::MountVolume { volume, .. }
            | Action::UnmountVolume { volume, .. }
            | Action::RefreshVolume { volume, .. } => Some(Lane::Volume(volume.clone())),
            Action::PullImage { container, .. }
            | Action::CreateContainer { container, .. }
            | Action::StartContainer { container }
            | Action::StopContainer { container, .. }
            | Action::KillContainer { container }
            | Action::RemoveContainer { container }
            | Action::ResizeContainer { container, .. } => Some(Lane::Container(container.clone())),
            Action::RunHook { container, hook, .. } => Some(Lane::Hook(container.clone(), *hook)),
            Action::CreateSandbox { attempt, .. }
            | Action::StopSandbox { attempt }
            | Action::RemoveSandbox { attempt } => Some(Lane::Sandbox(*attempt)),
            Action::ResizePod { .. } => Some(Lane::PodResources),
            Action::PublishStatus { .. } => Some(Lane::Status),
            Action::ReleasePod => Some(Lane::Release),
            Action::StartProbe { .. }
            | Action::StopProbe { .. }
            | Action::ObserveMounts
            | Action::ObserveRuntime
            | Action::RecordEvent(_)
            | Action::CreateMirror { .. }
            | Action::DeleteMirror { .. } => None,
        }
    }

    /// As the subject of a violation.
    pub fn subject(&self) -> Subject {
        match self {
            Lane::Container(id) | Lane::Hook(id, _) => Subject::Container(id.clone()),
            Lane::Volume(id) => Subject::Volume(id.clone()),
            Lane::Sandbox(attempt) => Subject::Sandbox(*attempt),
            Lane::PodResources | Lane::Status | Lane::Release => Subject::Pod,
        }
    }
}

impl InFlight {
    /// The operation that a command begins.
    pub fn begun_by(command: &Command, at: Time, index: usize) -> Option<InFlight> {
        let lane = Lane::of(&command.action)?;
        let kill = matches!(command.action, Action::KillContainer { .. });
        let deadline = match &command.action {
            Action::StopContainer { grace, .. } => Some(at.after(*grace)),
            Action::KillContainer { .. } => Some(at),
            Action::RunHook { timeout, .. } => timeout.map(|timeout| at.after(timeout)),
            Action::MountVolume { .. }
            | Action::UnmountVolume { .. }
            | Action::RefreshVolume { .. }
            | Action::PullImage { .. }
            | Action::CreateSandbox { .. }
            | Action::StopSandbox { .. }
            | Action::RemoveSandbox { .. }
            | Action::CreateContainer { .. }
            | Action::StartContainer { .. }
            | Action::RemoveContainer { .. }
            | Action::ResizeContainer { .. }
            | Action::ResizePod { .. }
            | Action::StartProbe { .. }
            | Action::StopProbe { .. }
            | Action::ObserveMounts
            | Action::ObserveRuntime
            | Action::PublishStatus { .. }
            | Action::RecordEvent(_)
            | Action::ReleasePod
            | Action::CreateMirror { .. }
            | Action::DeleteMirror { .. } => None,
        };
        Some(InFlight { op: command.op, lane, verb: command.action.verb(), index, at, deadline, kill })
    }

    /// When a stop or a kill is to have ended its container; of anything else, none.
    pub fn stops_by(&self) -> Option<Time> {
        self.deadline.filter(|_| matches!(self.lane, Lane::Container(_)))
    }

    /// A stop or a kill.
    pub fn is_stop(&self) -> bool {
        self.stops_by().is_some()
    }

    /// Whether `fact` completes it. An exit completes whatever is under way with the container but its removal (a start
    /// whose answer is late can do nothing more), a sandbox's end its stop, whatever brought them about.
    pub fn completed_by(&self, fact: &Fact) -> bool {
        if let Fact::ContainerExited { container, .. } = fact {
            return self.verb != "remove" && matches!(&self.lane, Lane::Container(id) if id == container);
        }
        if let Fact::SandboxStopped { attempt, .. } = fact {
            return self.verb == "stop-sandbox" && self.lane == Lane::Sandbox(*attempt);
        }
        if let Fact::PodRemoved { .. } = fact {
            return matches!(self.lane, Lane::Release | Lane::Status);
        }
        answered(fact) == Some(self.op)
    }
}

/// The pod's operation that a fact answers: looks and mirrors are not a pod's.
pub fn answered(fact: &Fact) -> Option<OpId> {
    let of_the_node = matches!(
        fact,
        Fact::MountsObserved { .. }
            | Fact::RuntimeObserved { .. }
            | Fact::ObserveFailed { .. }
            | Fact::MirrorCreated { .. }
            | Fact::MirrorDeleted { .. }
            | Fact::MirrorFailed { .. }
    );
    fact.op().filter(|_| !of_the_node)
}
