//! How facts move the world view.

use super::WorldView;
use super::container::{Ending, Life, Role};
use super::operations::answered;
use super::pod::{PodView, asks_restart_all};
use super::volume::Host;
use nodefold_core::event::{ErrorClass, Exit, Fact, ProbeKind};
use nodefold_core::ids::{ContainerId, PodUid, Source};
use nodefold_core::spec::Pod;
use nodefold_core::time::Time;
use std::sync::Arc;

/// Answers remembered of a pod, so that one that comes again is known: more than are ever on their way at once.
const ANSWERS_KEPT: usize = 64;

impl WorldView {
    pub(super) fn fact(&mut self, fact: &Fact, at: Time, index: usize) {
        match fact {
            Fact::PodApplied(pod) => self.applied(pod, at, index),
            Fact::SourceReady { source } => self.source_ready(*source, index),
            Fact::NodeChanged(node) => self.node_changed(node, index),
            Fact::AgentStarted { boot_id } => self.agent_started(*boot_id, index),
            Fact::MountsObserved { op, mounts } => self.mounts_observed(*op, mounts, index),
            Fact::RuntimeObserved { op, complete, sandboxes, containers } => {
                self.runtime_observed(*op, *complete, sandboxes, containers, index);
            }
            Fact::ObserveFailed { op, .. } => self.observing.retain(|(o, ..)| o != op),
            Fact::Tick
            | Fact::ObjectSeen { .. }
            | Fact::ObjectGone { .. }
            | Fact::MirrorSeen { .. }
            | Fact::MirrorGone { .. }
            | Fact::MirrorCreated { .. }
            | Fact::MirrorDeleted { .. }
            | Fact::MirrorFailed { .. } => {}
            Fact::PodRemoved { .. }
            | Fact::ReadinessGate { .. }
            | Fact::VolumeMounted { .. }
            | Fact::VolumeMountFailed { .. }
            | Fact::VolumeUnmounted { .. }
            | Fact::VolumeUnmountFailed { .. }
            | Fact::VolumeRefreshed { .. }
            | Fact::VolumeRefreshFailed { .. }
            | Fact::UsageReported { .. }
            | Fact::ImagePulled { .. }
            | Fact::ImagePullFailed { .. }
            | Fact::SandboxReady { .. }
            | Fact::SandboxFailed { .. }
            | Fact::SandboxStopped { .. }
            | Fact::SandboxStopFailed { .. }
            | Fact::SandboxRemoved { .. }
            | Fact::SandboxRemoveFailed { .. }
            | Fact::ContainerCreated { .. }
            | Fact::ContainerCreateFailed { .. }
            | Fact::ContainerStarted { .. }
            | Fact::ContainerStartFailed { .. }
            | Fact::ContainerExited { .. }
            | Fact::ContainerStopFailed { .. }
            | Fact::ContainerRemoved { .. }
            | Fact::ContainerRemoveFailed { .. }
            | Fact::ContainerResized { .. }
            | Fact::ContainerResizeFailed { .. }
            | Fact::PodResized { .. }
            | Fact::PodResizeFailed { .. }
            | Fact::HookDone { .. }
            | Fact::ProbeResult { .. }
            | Fact::StatusWritten { .. }
            | Fact::StatusWriteFailed { .. }
            | Fact::ReleaseFailed { .. } => {
                let Some(uid) = fact.pod() else { return };
                let Some(pod) = self.pods.get_mut(&uid) else { return };
                pod_fact(pod, fact, index);
                self.forget_if_over(uid, index);
            }
        }
    }

    fn applied(&mut self, applied: &Arc<Pod>, at: Time, index: usize) {
        let uid = applied.uid;
        let former = self.tombstones.remove(&uid);
        self.tombstone_order.retain(|u| *u != uid || self.tombstones.contains_key(u));
        let images_bypass = !self.node.gates.dynamic_containers;
        let pod = self.pods.entry(uid).or_insert_with(|| PodView::new(uid));
        let first = pod.applied.is_none();
        if let Some(former) = former.filter(|_| applied.source == Source::File && applied.deletion.is_none())
        {
            // A file came back as it was. The last words of its former life, and late answers to it, may still come.
            pod.came_back = true;
            pod.last_op_before = former.last_op;
        }
        pod.allocation.images_bypass |= images_bypass;
        pod.applied_this_epoch = true;
        if pod.left_source.take().is_some() {
            pod.wanted_again = Some(index);
        }
        let spec_is_new = pod.applied.as_ref().is_none_or(|p| !Arc::ptr_eq(&p.spec, &applied.spec));
        pod.applied = Some(applied.clone());
        pod.applied_index = index;
        if spec_is_new {
            pod.allocation.desired(index, &applied.spec);
            pod.note_changes(index, &applied.spec);
        }
        if let Some(deletion) = &applied.deletion {
            pod.begin_termination(index, "its deletion was asked for");
            let due = at.after(deletion.grace.max(self.minimum_grace));
            if pod.deadline.is_none_or(|(deadline, _)| due < deadline) {
                pod.deadline = Some((due, index));
            }
        }
        if first && applied.api_terminal.is_some() {
            pod.begin_termination(index, "the API already showed a terminal phase");
        }
        if first && applied.source == Source::File {
            let key = (applied.namespace.clone(), applied.name.clone());
            let uids = self.static_names.entry(key).or_default();
            if !uids.contains(&uid) {
                uids.push(uid);
            }
        }
    }

    /// After the agent's start, the end of a source's first list says which of its pods are gone.
    fn source_ready(&mut self, source: Source, index: usize) {
        let mut gone: Vec<PodUid> = Vec::new();
        for pod in self.pods.values_mut() {
            let of_source = pod.applied.as_ref().is_some_and(|p| p.source == source);
            if of_source && !pod.applied_this_epoch && pod.left_source.is_none() {
                pod.left_source = Some(index);
                pod.wanted_again = None;
                pod.begin_termination(index, "its source no longer has it");
                gone.push(pod.uid);
            }
        }
        for uid in gone {
            self.forget_if_over(uid, index);
        }
    }

    fn agent_started(&mut self, boot_id: u128, index: usize) {
        let rebooted = self.boot_id.is_some_and(|former| former != boot_id);
        self.boot_id = Some(boot_id);
        self.observing.clear();
        self.runtime_unknown = if rebooted { None } else { Some(index) };
        for pod in self.pods.values_mut() {
            pod.applied_this_epoch = false;
            pod.deadline = None;
            pod.in_flight.clear();
            pod.last_op_before = pod.last_op;
            pod.answered.clear();
            for container in &mut pod.containers {
                container.probing.clear();
                if rebooted {
                    container.vanished(index);
                    continue;
                }
                match container.life {
                    Life::Creating | Life::Starting => {
                        container.unanswered = Some(container.commanded);
                        container.turn(Life::Unknown, index);
                    }
                    Life::Created | Life::Running | Life::Unknown | Life::Ended(_) => {}
                }
            }
            for volume in &mut pod.volumes {
                volume.agent_started(rebooted, index);
            }
            if rebooted {
                for sandbox in &mut pod.sandboxes {
                    sandbox.live = false;
                    sandbox.index = index;
                }
            }
        }
    }
}

/// A fact about one known pod.
fn pod_fact(pod: &mut PodView, fact: &Fact, index: usize) {
    if is_stale(pod, fact) {
        return;
    }
    let again = answered(fact).is_some_and(|op| pod.answered.contains(&op));
    note_answer(pod, fact);
    pod.in_flight.retain(|operation| !operation.completed_by(fact));
    match fact {
        Fact::PodRemoved { .. } => {
            pod.left_source = Some(index);
            pod.wanted_again = None;
            pod.begin_termination(index, "its object is gone");
        }
        Fact::VolumeMounted { volume, .. } => {
            pod.volume_or_stub(volume, Host::Absent, index).mount_succeeded(index);
        }
        Fact::VolumeMountFailed { volume, error, .. } => {
            if let Some(view) = pod.volume_mut(volume) {
                view.mount_failed(error.class, index);
            }
        }
        Fact::VolumeUnmounted { volume, .. } => {
            if let Some(view) = pod.volume_mut(volume) {
                view.unmounted(index);
            }
        }
        Fact::VolumeUnmountFailed { volume, .. } => {
            if let Some(view) = pod.volume_mut(volume) {
                view.unmount_failed(index);
            }
        }
        Fact::SandboxStopped { attempt, .. } | Fact::SandboxRemoved { attempt, .. } => {
            for sandbox in pod.sandboxes.iter_mut().filter(|s| s.attempt == *attempt) {
                sandbox.live = false;
                sandbox.index = index;
            }
        }
        Fact::SandboxFailed { attempt, error, .. } => match error.class {
            ErrorClass::Final | ErrorClass::Transient => {
                for sandbox in pod.sandboxes.iter_mut().filter(|s| s.attempt == *attempt) {
                    sandbox.live = false;
                    sandbox.index = index;
                }
            }
            ErrorClass::Uncertain => {}
        },
        Fact::ContainerCreated { container, .. } => {
            let view = pod.container_or_stub(container, Life::Created, index);
            if matches!(
                view.life,
                Life::Creating | Life::Unknown | Life::Ended(Ending::Lost | Ending::NeverCreated)
            ) {
                view.turn(Life::Created, index);
            }
        }
        Fact::ContainerCreateFailed { container, error, .. } => {
            if let Some(view) = pod.container_mut(container) {
                view.turn(
                    match error.class {
                        ErrorClass::Final | ErrorClass::Transient => Life::Ended(Ending::NeverCreated),
                        ErrorClass::Uncertain => Life::Unknown,
                    },
                    index,
                );
            }
        }
        Fact::ContainerStarted { container, .. } => started(pod, container, index),
        Fact::ContainerStartFailed { container, error, .. } => {
            if let Some(view) = pod.container_mut(container) {
                view.start_failed = Some(index);
                view.turn(
                    match error.class {
                        ErrorClass::Final => Life::Ended(Ending::NeverStarted),
                        ErrorClass::Transient => Life::Created,
                        ErrorClass::Uncertain => Life::Unknown,
                    },
                    index,
                );
            }
        }
        Fact::ContainerExited { container, exit, .. } => exited(pod, container, exit, index),
        Fact::ContainerRemoved { container, .. } => {
            if let Some(view) = pod.container_mut(container) {
                view.vanished(index);
            }
        }
        Fact::ContainerResized { container, .. } => {
            if let Some(view) = pod.container_mut(container)
                && let Some(resources) = view.resizing.take()
            {
                view.resources = resources;
            }
        }
        Fact::ProbeResult { container, probe, passed, .. } => probed(pod, container, *probe, *passed, index),
        Fact::StatusWritten { op, .. } => {
            pod.status_refused = None;
            if let Some(terminal) = pod.terminal.as_mut().filter(|t| t.op == *op) {
                terminal.acknowledged.get_or_insert(index);
            }
        }
        Fact::ReleaseFailed { .. } => pod.released = None,
        Fact::ReadinessGate { .. }
        | Fact::VolumeRefreshed { .. }
        | Fact::VolumeRefreshFailed { .. }
        | Fact::UsageReported { .. }
        | Fact::ImagePulled { .. }
        | Fact::ImagePullFailed { .. }
        | Fact::SandboxReady { .. }
        | Fact::SandboxStopFailed { .. }
        | Fact::SandboxRemoveFailed { .. }
        | Fact::ContainerStopFailed { .. }
        | Fact::ContainerRemoveFailed { .. }
        | Fact::ContainerResizeFailed { .. }
        | Fact::PodResized { .. }
        | Fact::PodResizeFailed { .. }
        | Fact::HookDone { .. } => {}
        Fact::StatusWriteFailed { error, .. } => match error.class {
            ErrorClass::Final if !again && !is_of_former_epoch(pod, fact) => pod.status_refused = Some(index),
            ErrorClass::Final | ErrorClass::Transient | ErrorClass::Uncertain => {}
        },
        // Not about one pod, or taken in elsewhere.
        Fact::Tick
        | Fact::PodApplied(_)
        | Fact::SourceReady { .. }
        | Fact::ObjectSeen { .. }
        | Fact::ObjectGone { .. }
        | Fact::NodeChanged(_)
        | Fact::AgentStarted { .. }
        | Fact::MountsObserved { .. }
        | Fact::RuntimeObserved { .. }
        | Fact::ObserveFailed { .. }
        | Fact::MirrorSeen { .. }
        | Fact::MirrorGone { .. }
        | Fact::MirrorCreated { .. }
        | Fact::MirrorDeleted { .. }
        | Fact::MirrorFailed { .. } => {}
    }
}

/// An answer to an operation of an older epoch, and one that comes a second time, is recorded and changes nothing (DESIGN
/// §3). What is written to the API is acknowledged by number, whatever was written since.
fn is_stale(pod: &PodView, fact: &Fact) -> bool {
    let to_the_api = matches!(
        fact,
        Fact::StatusWritten { .. } | Fact::StatusWriteFailed { .. } | Fact::ReleaseFailed { .. }
    );
    let Some(op) = answered(fact).filter(|_| !to_the_api) else { return false };
    is_of_former_epoch(pod, fact) || pod.answered.contains(&op) || is_of_the_past(pod, fact)
}

/// The answer to an operation that an agent began which is no more.
fn is_of_former_epoch(pod: &PodView, fact: &Fact) -> bool {
    answered(fact).is_some_and(|op| pod.last_op_before.is_some_and(|last| op <= last))
}

/// The answer to a create or start of an instance that ended, was forgotten, and was followed by another.
fn is_of_the_past(pod: &PodView, fact: &Fact) -> bool {
    let (Fact::ContainerCreated { container, .. } | Fact::ContainerStarted { container, .. }) = fact else {
        return false;
    };
    let newest = pod.newest(&container.name).map(|newest| (newest.id.incarnation, newest.id.attempt));
    pod.container(container).is_none()
        && newest.is_some_and(|n| n > (container.incarnation, container.attempt))
}

/// Notes that an operation was answered.
fn note_answer(pod: &mut PodView, fact: &Fact) {
    let Some(op) = answered(fact).filter(|op| pod.last_op.is_some_and(|last| *op <= last)) else { return };
    if pod.answered.len() == ANSWERS_KEPT {
        pod.answered.pop_front();
    }
    pod.answered.push_back(op);
    if let Fact::VolumeMounted { volume, .. } | Fact::VolumeRefreshed { volume, .. } = fact
        && let Some(view) = pod.volume_mut(volume)
    {
        view.written_by = Some(op);
    }
}

/// A container runs. A sidecar without a startup probe thereby counts as up.
pub(super) fn started(pod: &mut PodView, id: &ContainerId, index: usize) {
    let view = pod.container_or_stub(id, Life::Running, index);
    view.started.get_or_insert(index);
    view.hearsay = false;
    view.turn(Life::Running, index);
    let up = view.role == Role::Sidecar && view.spec.as_ref().is_some_and(|s| s.startup_probe.is_none());
    if up {
        pod.note_init_done(id);
    }
}

/// A container's exit is known.
pub(super) fn exited(pod: &mut PodView, id: &ContainerId, exit: &Exit, index: usize) {
    let Some(view) = pod.container_mut(id) else { return };
    let first = view.exit.is_none();
    view.ended(exit, index);
    let (role, spec) = (view.role, view.spec.clone());
    if first && role == Role::Init && exit.code == 0 {
        pod.note_init_done(id);
    }
    if first && spec.is_some_and(|s| asks_restart_all(&s, role, exit)) {
        pod.restart_all = Some(index);
        pod.init_done.clear();
    }
}

fn probed(pod: &mut PodView, id: &ContainerId, probe: ProbeKind, passed: bool, index: usize) {
    let Some(view) = pod.container_mut(id) else { return };
    match probe {
        ProbeKind::Startup => {
            if passed {
                view.startup_passed = Some(index);
                if view.role == Role::Sidecar {
                    pod.note_init_done(id);
                }
            }
        }
        ProbeKind::Readiness => view.readiness = Some((index, passed)),
        ProbeKind::Liveness => {}
    }
}
