//! The end of a pod: containers, then sandbox, then volumes, a terminal phase, and only then its object
//! (kubelet-pods §3.4, §3.6; S8).

use super::{sandbox, stop};
use crate::command::{Action, Rule, Subject};
use crate::context::{Context, Why};
use crate::ids::Source;
use crate::spec::TerminalPhase;
use crate::state::{Lifecycle, PodState, SandboxPhase, VolumePhase};

/// Every container is to stop by the pod's deadline.
pub(super) fn drive(pod: &mut PodState, ctx: &mut Context<'_>) {
    let Lifecycle::Terminating(termination) = &pod.lifecycle else { return };
    let deadline = termination.deadline;
    if pod.restarting_all.take().is_some() {
        pod.changed();
    }
    for i in 0..pod.containers.len() {
        if pod.containers[i].instance.is_none() {
            // What was on its way is not wanted any more.
            pod.containers[i].image_id = None;
            continue;
        }
        stop::begin(pod, i, Rule::PodTerminating, ctx);
        if let Some(instance) = &mut pod.containers[i].instance {
            stop::ask(instance, Rule::PodTerminating, deadline);
        }
    }
    if !pod.has_instances() {
        sandbox::stop_all(pod, ctx);
    }
}

/// When nothing runs and the sandbox is stopped, the pod has terminated: absorbing (B2).
pub(super) fn conclude(pod: &mut PodState, ctx: &mut Context<'_>) {
    if !matches!(pod.lifecycle, Lifecycle::Terminating(_))
        || pod.has_instances()
        || !sandbox::all_stopped(pod)
    {
        return;
    }
    if pod.terminal.is_none() {
        let phase = crate::publish::phase::at_end(pod);
        pod.terminal = Some(phase);
    }
    pod.lifecycle = Lifecycle::Terminated;
    pod.changed();
    for volume in &mut pod.volumes {
        if !matches!(volume.phase, VolumePhase::Unmounting { .. }) && volume.removed.is_none() {
            // A failed mount's back-off is no reason to wait with its unmount (I11).
            volume.retry.clear();
        }
    }
    ctx.moved(pod.pod.uid, Subject::Pod, "Terminating", "Terminated");
    // Its volumes may go now, and that is decided above.
    ctx.follow_up();
}

/// The final delete: containers confirmed stopped, volumes unmounted, a terminal phase acknowledged (S8, B13). Static
/// pods have no object of their own, and a force-removed one's is gone.
pub(super) fn release(pod: &mut PodState, ctx: &mut Context<'_>) {
    let wanted = pod.pod.deletion.is_some() && !pod.object_gone && pod.pod.source == Source::Api;
    // S8. What was seen to run beside the record after the end counts too (B2, case 90).
    let gone = pod.is_terminated() && !pod.has_instances() && pod.volumes.is_empty();
    // Its last status is told before the object goes, not beside it.
    let ready = gone && pod.publication.terminal_acknowledged && pod.publication.writing.is_none();
    if !(wanted && ready) || pod.releasing.is_some() {
        return;
    }
    // That its last volume is gone is a part of it: a finalizer may keep the object for long.
    if pod.publication.stale {
        ctx.follow_up();
        return;
    }
    let retry = pod.release_retry.clone();
    if ctx.retry_due(&retry, Why::ReleaseRetry) {
        pod.releasing = Some(ctx.command(pod.pod.uid, Rule::PodReleased, Action::ReleasePod));
    }
}

/// The phase label that a terminal phase has in a status.
pub(crate) fn phase_of(terminal: TerminalPhase) -> crate::status::PodPhase {
    match terminal {
        TerminalPhase::Succeeded => crate::status::PodPhase::Succeeded,
        TerminalPhase::Failed => crate::status::PodPhase::Failed,
    }
}

/// A sandbox of which nothing runs.
pub(super) fn is_down(phase: &SandboxPhase) -> bool {
    match phase {
        SandboxPhase::Stopped | SandboxPhase::Removing { .. } => true,
        SandboxPhase::Creating { .. }
        | SandboxPhase::Ready
        | SandboxPhase::Dead
        | SandboxPhase::Stopping { .. }
        | SandboxPhase::Unknown => false,
    }
}
