//! The pod's sandbox: made once the first volumes are there, renewed when it died, stopped last.

use super::{start, terminate};
use crate::command::{Action, Rule, Subject};
use crate::context::{Context, Why};
use crate::state::{PodState, Sandbox, SandboxPhase};

/// Makes sandbox `attempt`, once nothing runs in the former one and that is stopped.
pub(super) fn renew(pod: &mut PodState, attempt: u32, ctx: &mut Context<'_>) {
    if pod.has_instances() {
        return;
    }
    if !stop_all(pod, ctx) {
        return;
    }
    if pod.sandbox.is_some() {
        let former = pod.sandbox.take();
        pod.changed();
        if former.is_some() {
            ctx.tell(
                pod.pod.uid,
                false,
                "SandboxChanged",
                "Pod sandbox changed, it will be killed and re-created.".into(),
                None,
            );
        }
        pod.old_sandboxes.extend(former);
    }
    // A list of what the runtime has is on its way, and would not know the new one.
    if pod.observing.is_some() {
        return;
    }
    // The very first waits for every volume of the pod's creation (KEP-6395 stage 2, recording 15).
    if !pod.initialized && !start::creation_volumes_ready(pod) {
        return;
    }
    if !ctx.retry_due(&pod.sandbox_retry, Why::SandboxRetry) {
        return;
    }
    let Some(allocated) = &pod.allocated else { return };
    let action = Action::CreateSandbox {
        attempt,
        pod: pod.pod.arc().clone(),
        allocated: allocated.spec.arc().clone(),
    };
    let op = ctx.command(pod.pod.uid, Rule::SandboxNeeded, action);
    pod.cgroup = allocated.cgroup.clone();
    pod.sandbox = Some(Sandbox { attempt, phase: SandboxPhase::Creating { op }, ip: None });
    pod.next_sandbox = attempt.saturating_add(1);
    ctx.moved(pod.pod.uid, Subject::Sandbox(attempt), "", "Creating");
}

/// Stops every sandbox. True once all are.
pub(super) fn stop_all(pod: &mut PodState, ctx: &mut Context<'_>) -> bool {
    let retry = pod.sandbox_retry.clone();
    let uid = pod.pod.uid;
    let (mut all_down, mut stopping) = (true, false);
    for sandbox in pod.sandbox.iter_mut().chain(pod.old_sandboxes.iter_mut()) {
        if terminate::is_down(&sandbox.phase) {
            continue;
        }
        all_down = false;
        match sandbox.phase {
            SandboxPhase::Ready | SandboxPhase::Dead | SandboxPhase::Stopping { op: None } => {
                if ctx.retry_due(&retry, Why::SandboxRetry) {
                    let from = sandbox.phase.label();
                    let action = Action::StopSandbox { attempt: sandbox.attempt };
                    let op = ctx.command(uid, Rule::SandboxObsolete, action);
                    sandbox.phase = SandboxPhase::Stopping { op: Some(op) };
                    stopping = true;
                    ctx.moved(uid, Subject::Sandbox(sandbox.attempt), from, "Stopping");
                }
            }
            SandboxPhase::Creating { .. }
            | SandboxPhase::Stopping { op: Some(_) }
            | SandboxPhase::Stopped
            | SandboxPhase::Removing { .. }
            | SandboxPhase::Unknown => {}
        }
    }
    if stopping {
        pod.changed();
    }
    all_down
}

/// Every sandbox is stopped, or there is none.
pub(super) fn all_stopped(pod: &PodState) -> bool {
    pod.sandbox.iter().chain(&pod.old_sandboxes).all(|s| terminate::is_down(&s.phase))
}

/// Removes stopped sandboxes that hold no dead container that is kept: old ones always, the newest when the pod goes.
pub(super) fn clean_up(pod: &mut PodState, ctx: &mut Context<'_>) {
    if !(pod.born == ctx.epoch || ctx.may_undo) {
        return;
    }
    let goes = pod.is_terminated() && (pod.object_gone || pod.pod.deletion.is_some());
    let uid = pod.pod.uid;
    let PodState { sandbox, old_sandboxes, containers, sandbox_retry, .. } = pod;
    let holds_dead = |attempt| containers.iter().flat_map(|c| &c.dead).any(|d| d.sandbox == attempt);
    let newest = sandbox.iter_mut().filter(|_| goes);
    for sandbox in newest.chain(old_sandboxes) {
        if !matches!(sandbox.phase, SandboxPhase::Stopped) || holds_dead(sandbox.attempt) {
            continue;
        }
        if ctx.retry_due(sandbox_retry, Why::SandboxRetry) {
            let action = Action::RemoveSandbox { attempt: sandbox.attempt };
            let op = ctx.command(uid, Rule::GarbageCollected, action);
            sandbox.phase = SandboxPhase::Removing { op };
            ctx.moved(uid, Subject::Sandbox(sandbox.attempt), "Stopped", "Removing");
        }
    }
}
