//! How commands move the world view: what was commanded may happen from now on.

use super::WorldView;
use super::container::{Life, Role, StopView, find_container};
use super::operations::{InFlight, Lane};
use super::pod::{PodView, SandboxView, TerminalStatus};
use super::volume::Host;
use nodefold_core::command::{Action, Command, Rule};
use nodefold_core::event::Hook;
use nodefold_core::ids::ContainerId;
use nodefold_core::spec::{Pod, PodSpec};
use nodefold_core::time::Time;
use std::sync::Arc;

/// Whether an action is the first thing done for a pod's life.
pub fn begins_something(action: &Action) -> bool {
    match action {
        Action::MountVolume { .. }
        | Action::PullImage { .. }
        | Action::CreateSandbox { .. }
        | Action::CreateContainer { .. }
        | Action::StartContainer { .. } => true,
        Action::UnmountVolume { .. }
        | Action::RefreshVolume { .. }
        | Action::StopSandbox { .. }
        | Action::RemoveSandbox { .. }
        | Action::StopContainer { .. }
        | Action::KillContainer { .. }
        | Action::RemoveContainer { .. }
        | Action::ResizeContainer { .. }
        | Action::ResizePod { .. }
        | Action::RunHook { .. }
        | Action::StartProbe { .. }
        | Action::StopProbe { .. }
        | Action::ObserveMounts
        | Action::ObserveRuntime
        | Action::PublishStatus { .. }
        | Action::RecordEvent(_)
        | Action::ReleasePod
        | Action::CreateMirror { .. }
        | Action::DeleteMirror { .. } => false,
    }
}

/// The allocation that an action carries.
pub fn carried_allocation(action: &Action) -> Option<&Arc<PodSpec>> {
    match action {
        Action::MountVolume { allocated, .. }
        | Action::RefreshVolume { allocated, .. }
        | Action::CreateSandbox { allocated, .. }
        | Action::CreateContainer { allocated, .. } => Some(allocated),
        Action::UnmountVolume { .. }
        | Action::PullImage { .. }
        | Action::StopSandbox { .. }
        | Action::RemoveSandbox { .. }
        | Action::StartContainer { .. }
        | Action::StopContainer { .. }
        | Action::KillContainer { .. }
        | Action::RemoveContainer { .. }
        | Action::ResizeContainer { .. }
        | Action::ResizePod { .. }
        | Action::RunHook { .. }
        | Action::StartProbe { .. }
        | Action::StopProbe { .. }
        | Action::ObserveMounts
        | Action::ObserveRuntime
        | Action::PublishStatus { .. }
        | Action::RecordEvent(_)
        | Action::ReleasePod
        | Action::CreateMirror { .. }
        | Action::DeleteMirror { .. } => None,
    }
}

/// The part that a container plays, by the specs a create carries.
pub fn role_of(container: &ContainerId, allocated: &PodSpec, pod: &Pod) -> Role {
    match find_container(allocated, &container.name) {
        Some((_, role)) => role,
        None => {
            let named = |spec: &PodSpec| spec.ephemeral_containers.iter().any(|c| c.name == container.name);
            if named(allocated) || named(&pod.spec) { Role::Ephemeral } else { Role::Unknown }
        }
    }
}

impl WorldView {
    pub(super) fn command(&mut self, command: &Command, at: Time, index: usize) {
        if begins_something(&command.action) && !self.pods.contains_key(&command.pod) {
            self.pods.insert(command.pod, PodView::new(command.pod));
        }
        if matches!(command.action, Action::ObserveRuntime | Action::ObserveMounts) {
            self.observing.push((command.op, command.pod, index));
            self.observes = true;
        }
        let Some(pod) = self.pods.get_mut(&command.pod) else { return };
        if let Some(allocated) = carried_allocation(&command.action) {
            pod.show_allocation(index, allocated);
        }
        // Its terminal status may have to wait for a write that failed; that it made room is told at once.
        if matches!(&command.action, Action::RecordEvent(event) if &*event.reason == "Preempting") {
            pod.begin_termination(index, "it made room for a critical pod");
        }
        match command.cause.rule {
            Rule::PodTerminating => pod.begin_termination(index, "the node began to end the pod"),
            Rule::PodVolumesReleased | Rule::PodReleased => pod.begin_termination(index, "the pod was over"),
            Rule::RestartAll => {
                pod.restart_all = Some(index);
                if matches!(
                    command.action,
                    Action::StopContainer { .. }
                        | Action::KillContainer { .. }
                        | Action::RemoveContainer { .. }
                ) {
                    pod.init_done.clear();
                }
            }
            Rule::VolumeDesired
            | Rule::VolumeRetry
            | Rule::VolumeRefresh
            | Rule::VolumeRemoved
            | Rule::VolumeOrphaned
            | Rule::SandboxNeeded
            | Rule::SandboxObsolete
            | Rule::InitNext
            | Rule::SidecarNeeded
            | Rule::MainNeeded
            | Rule::EphemeralNeeded
            | Rule::ContainerRemoved
            | Rule::DefinitionChanged
            | Rule::MountsChanged
            | Rule::ResizeRestart
            | Rule::ResizeInPlace
            | Rule::LivenessFailed
            | Rule::StartupFailed
            | Rule::PostStartFailed
            | Rule::RuntimeUnknown
            | Rule::SandboxGone
            | Rule::GraceExceeded
            | Rule::Surplus
            | Rule::GarbageCollected
            | Rule::ObservationNeeded
            | Rule::StatusChanged
            | Rule::LifecycleHook
            | Rule::ProbeLifetime
            | Rule::Told
            | Rule::MirrorNeeded
            | Rule::MirrorObsolete => {}
        }
        act(pod, command, at, index);
        occupy(pod, command, at, index);
    }
}

/// Records the operation that a command begins. A stop of what has ended begins none: its completion has been.
fn occupy(pod: &mut PodView, command: &Command, at: Time, index: usize) {
    let Some(operation) = InFlight::begun_by(command, at, index) else { return };
    pod.last_op = Some(command.op);
    if operation.is_stop()
        && let Lane::Container(id) = &operation.lane
        && pod.container(id).is_some_and(|c| !c.may_run())
    {
        return;
    }
    match &operation.lane {
        // Latest wins.
        Lane::Status | Lane::Release => pod.in_flight.retain(|o| o.lane != operation.lane),
        // What overtakes a stop replaces it, and a repeated attempt the former.
        Lane::Container(_) | Lane::Volume(_) | Lane::Sandbox(_) | Lane::PodResources | Lane::Hook(..) => {
            pod.in_flight.retain(|o| o.lane != operation.lane);
        }
    }
    pod.in_flight.push(operation);
}

fn act(pod: &mut PodView, command: &Command, at: Time, index: usize) {
    match &command.action {
        Action::MountVolume { volume, spec, .. } => {
            for older in &mut pod.volumes {
                if older.id.name == volume.name && older.id.generation < volume.generation {
                    older.removed.get_or_insert(index);
                }
            }
            let view = pod.volume_or_stub(volume, Host::Absent, index);
            view.mount_commanded(spec, index);
            let differs = pod.allocation.versions.iter().find(|v| v.spec.volume(&volume.name) != Some(spec));
            let changed = differs.map(|v| v.index);
            if let Some(view) = pod.volume_mut(volume) {
                view.changed = view.changed.or(changed);
            }
        }
        Action::UnmountVolume { volume, .. } => {
            let view = pod.volume_or_stub(volume, Host::FoundOnly, index);
            view.unmount_commanded(index);
            if command.cause.rule == Rule::VolumeRemoved {
                view.removed.get_or_insert(index);
            }
        }
        Action::RefreshVolume { volume, .. } => {
            if let Some(view) = pod.volume_mut(volume) {
                view.commanded = index;
            }
        }
        Action::PullImage { container, image, .. } => {
            // An ephemeral container bypasses allocation: its pull says nothing of the rest.
            let is_ephemeral =
                |spec: &Arc<PodSpec>| spec.ephemeral_containers.iter().any(|c| c.name == container.name);
            // Without KEP-5972 any image does.
            if !pod.allocation.images_bypass && !pod.allocation.possible().any(is_ephemeral) {
                let place = pod.allocation.first_with(&container.name, |c| c.image == *image);
                imply(pod, index, place);
            }
        }
        Action::ResizeContainer { container, resources } => {
            let place = pod.allocation.first_with(&container.name, |c| c.resources == *resources);
            imply(pod, index, place);
            if let Some(view) = pod.container_mut(container) {
                view.resizing = Some(resources.clone());
                view.resized = Some((index, resources.requests.clone()));
            }
        }
        Action::CreateSandbox { attempt, .. } => {
            pod.sandboxes.retain(|s| s.live && s.attempt != *attempt);
            pod.sandboxes.push(SandboxView { attempt: *attempt, live: true, index });
            pod.init_done.retain(|d| d.sandbox >= *attempt);
        }
        Action::CreateContainer { container, spec, mounts, sandbox, pod: applied, allocated } => {
            for older in &mut pod.containers {
                if older.id.name == container.name && older.id.incarnation < container.incarnation {
                    older.removed.get_or_insert(index);
                }
            }
            let role = role_of(container, allocated, applied);
            pod.prune();
            let view = pod.container_or_stub(container, Life::Creating, index);
            view.spec = Some(spec.clone());
            view.role = role;
            view.mounts = Some(mounts.clone());
            view.sandbox = Some(*sandbox);
            view.resources = spec.resources.clone();
            view.commanded = index;
            view.unanswered = None;
            view.turn(Life::Creating, index);
            pod.note_changes_of(container);
        }
        Action::StartContainer { container } => {
            let view = pod.container_or_stub(container, Life::Starting, index);
            view.commanded = index;
            view.unanswered = None;
            view.turn(Life::Starting, index);
        }
        Action::StopContainer { container, grace } => {
            stop(pod, command.cause.rule, container, at.after(*grace), false, index);
        }
        Action::KillContainer { container } => stop(pod, command.cause.rule, container, at, true, index),
        Action::PublishStatus { status, .. } => {
            if status.phase.is_terminal() {
                // What the API knows it does not forget: only the first acknowledgement matters.
                let acknowledged = pod.terminal.and_then(|t| t.acknowledged);
                pod.terminal = Some(TerminalStatus { op: command.op, index, acknowledged });
                pod.begin_termination(index, "a terminal phase was published");
            }
            pod.published = Some((index, status.clone()));
        }
        Action::ReleasePod => pod.released = Some(index),
        Action::StartProbe { container, probe, .. } => {
            if let Some(view) = pod.container_mut(container) {
                view.probing.insert(*probe);
            }
        }
        Action::StopProbe { container, probe } => {
            if let Some(view) = pod.container_mut(container) {
                view.probing.remove(probe);
            }
        }
        Action::StopSandbox { .. }
        | Action::RemoveSandbox { .. }
        | Action::RemoveContainer { .. }
        | Action::ResizePod { .. }
        | Action::RunHook { hook: Hook::PostStart, .. }
        | Action::ObserveMounts
        | Action::ObserveRuntime
        | Action::RecordEvent(_)
        | Action::CreateMirror { .. }
        | Action::DeleteMirror { .. } => {}
        // A stop begins with its hook.
        Action::RunHook { container, hook: Hook::PreStop, .. } => {
            if let Some(view) = pod.container_mut(container) {
                view.stop_commanded.get_or_insert(index);
            }
        }
    }
}

fn imply(pod: &mut PodView, index: usize, place: Option<usize>) {
    if let Some(place) = place
        && place > 0
    {
        pod.allocation.imply(index, place);
    }
}

fn stop(pod: &mut PodView, rule: Rule, id: &ContainerId, deadline: Time, kill: bool, index: usize) {
    let Some(view) = pod.container_mut(id) else { return };
    view.stop_commanded.get_or_insert(index);
    if rule == Rule::ContainerRemoved {
        view.removed.get_or_insert(index);
    }
    match &mut view.stop {
        Some(stop) => {
            if deadline < stop.deadline {
                stop.deadline = deadline;
                stop.index = index;
            }
            stop.killed |= kill;
        }
        None => view.stop = Some(StopView { index, deadline, killed: kill }),
    }
}
