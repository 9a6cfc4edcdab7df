//! Which operation's effect may come before everything else that can happen, because nothing can tell when it came. Owns
//! that table; a search that reduces asks it (`check/place.rs`, whose head says why that is sound), and it changes nothing.

use super::World;
use super::choice::Choice;
use super::inflight::{InFlight, OpKey, OpKind, Phase};
use nodefold_core::about::About;
use nodefold_core::command::Action;
use nodefold_core::ids::{ContainerId, VolumeId};
use nodefold_core::state::{InstancePhase, PodState, SandboxPhase};

impl World {
    /// The operation, if there is one: it takes effect, works on nothing that another operation on its way works on, and
    /// neither the agent nor a process can find out whether it already has.
    pub fn unseen_effect(&self) -> Option<&OpKey> {
        if !self.agent.is_alive()
            || !self.faults.are_none()
            || !self.rules.are_none()
            || self.may_be_looked_at()
        {
            return None;
        }
        self.inflight.iter().find(|(key, op)| self.is_unseen(key, op)).map(|(key, _)| key)
    }

    /// The agent looks at the host, or may be made to before what is on its way has been answered: by something whose
    /// state it does not know, or by an answer that leaves it unknown.
    fn may_be_looked_at(&self) -> bool {
        let unclear = |(key, op): (&OpKey, &InFlight)| {
            matches!(key.kind, OpKind::ObserveMounts | OpKind::ObserveRuntime)
                || op.orphan
                || op.fate.is_some()
        };
        let Some(node) = self.agent.brain().node() else { return true };
        !node.has_seen_mounts()
            || !node.has_seen_runtime()
            || self.inflight.iter().any(unclear)
            || node.pods().into_iter().filter_map(|pod| node.pod(pod)).any(has_unknowns)
    }

    fn is_unseen(&self, key: &OpKey, op: &InFlight) -> bool {
        if !matches!(op.phase, Phase::Running { .. }) {
            return false;
        }
        let others = || {
            let runs = |op: &InFlight| !matches!(op.phase, Phase::Done { .. });
            self.inflight.iter().filter(move |(other, op)| *other != key && other.pod == key.pod && runs(op))
        };
        // What a mount or an environment is made of must not be about to change.
        let settled = self.server.forbidden().is_empty();
        let apart = |is_apart: &dyn Fn(&Action) -> bool| others().all(|(_, op)| is_apart(&op.command.action));
        match &op.command.action {
            Action::PullImage { .. } | Action::ResizePod { .. } => true,
            Action::MountVolume { volume, .. }
            | Action::UnmountVolume { volume, .. }
            | Action::RefreshVolume { volume, .. } => {
                settled && apart(&|other| !touches_volume(other, volume))
            }
            Action::CreateSandbox { .. } | Action::RemoveSandbox { .. } => apart(&|other| !is_inside(other)),
            Action::StopSandbox { attempt } => {
                self.living_in(key.pod, *attempt).is_empty() && apart(&|other| !is_inside(other))
            }
            Action::CreateContainer { container, mounts, .. } => {
                let volume = |other: &Action| mounts.iter().any(|m| touches_volume(other, &m.volume));
                settled && apart(&|other| !is_of(other, container) && !volume(other))
            }
            Action::StartContainer { container } => apart(&|other| !is_of(other, container)),
            Action::RemoveContainer { container } => {
                let noticed = Choice::ExitNoticed { pod: key.pod, container: container.clone() };
                !self.pending.contains_key(&noticed) && apart(&|other| !is_of(other, container))
            }
            // What a process does meanwhile decides how these end, or they decide what it does.
            Action::StopContainer { .. }
            | Action::KillContainer { .. }
            | Action::ResizeContainer { .. }
            | Action::RunHook { .. }
            // Users see these, and the API's rules read them.
            | Action::PublishStatus { .. }
            | Action::ReleasePod
            | Action::CreateMirror { .. }
            | Action::DeleteMirror { .. }
            // These look.
            | Action::ObserveMounts
            | Action::ObserveRuntime
            // These are no operations.
            | Action::StartProbe { .. }
            | Action::StopProbe { .. }
            | Action::RecordEvent(_) => false,
        }
    }
}

/// The agent does not know how something of the pod is, and will look (B27).
fn has_unknowns(pod: &PodState) -> bool {
    let instance = |c: &nodefold_core::state::ContainerState| {
        c.instance.as_ref().is_some_and(|i| matches!(i.phase, InstancePhase::Unknown))
    };
    pod.observing.is_some()
        || pod.containers.iter().any(instance)
        || pod.sandbox.iter().chain(&pod.old_sandboxes).any(|s| matches!(s.phase, SandboxPhase::Unknown))
}

/// It works on a volume of that name, or makes a container that has it.
fn touches_volume(action: &Action, volume: &VolumeId) -> bool {
    match (action.about(), action) {
        (About::Volume(other), _) => other.name == volume.name,
        (_, Action::CreateContainer { mounts, .. }) => mounts.iter().any(|m| m.volume.name == volume.name),
        _ => false,
    }
}

/// It works on the pod's sandbox, or on a container in it.
fn is_inside(action: &Action) -> bool {
    match action.about() {
        // Pulling needs no sandbox.
        About::Container(_) => !matches!(action, Action::PullImage { .. }),
        About::Sandbox(_) => true,
        About::Volume(_) | About::Pod | About::Node => false,
    }
}

/// It works on a container of that name, or on the sandbox around it.
fn is_of(action: &Action, container: &ContainerId) -> bool {
    match action.about() {
        About::Container(other) => other.name == container.name && is_inside(action),
        About::Sandbox(_) => true,
        About::Volume(_) | About::Pod | About::Node => false,
    }
}
