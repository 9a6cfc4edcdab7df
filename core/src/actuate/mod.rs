//! Room 4: containers and sandboxes follow the allocation. Reads allocated and retained state only (DESIGN §4 rule 2).
//! Stops never block (rule 6): every decision is taken anew whenever something about the pod changes.

mod gc;
mod init;
pub mod plan;
mod probes;
pub(crate) mod resize;
pub mod restart;
mod sandbox;
pub(crate) mod start;
pub(crate) mod stop;
mod terminate;

pub(crate) use terminate::phase_of;

use crate::command::{Action, Rule};
use crate::context::{Context, Why, text};
use crate::observe::{fail_with, terminate as begin_termination};
use crate::state::{ContainerKind, InstancePhase, Lifecycle, PodState, SandboxPhase, TerminationCause};
use crate::time::Nanos;
use plan::Plan;

/// Takes the pod's next steps.
pub(crate) fn actuate(pod: &mut PodState, ctx: &mut Context<'_>) {
    // Nothing is done to, or concluded about, what has not been looked at yet (DESIGN §3 "Restart", B1).
    if !ctx.runtime_seen {
        return;
    }
    look_at_unknowns(pod, ctx);
    if pod.is_active() {
        active(pod, ctx);
    }
    match pod.lifecycle {
        Lifecycle::Waiting | Lifecycle::Active => {}
        Lifecycle::Terminating(_) => terminate::drive(pod, ctx),
        // A late sight of something that runs doesn't move the pod back (B2), but it goes.
        Lifecycle::Terminated => {
            if !pod.has_instances() {
                sandbox::stop_all(pod, ctx);
            }
        }
    }
    kill_surplus(pod, ctx);
    stop::drive_all(pod, ctx);
    terminate::conclude(pod, ctx);
    probes::drive(pod, ctx);
    gc::collect(pod, ctx);
    sandbox::clean_up(pod, ctx);
    terminate::release(pod, ctx);
}

fn active(pod: &mut PodState, ctx: &mut Context<'_>) {
    if let (Some(started), Some(limit)) = (pod.start_time, pod.pod.spec.active_deadline)
        && ctx.due(started.after(limit), Why::ActiveDeadline)
    {
        let message = "Pod was active on the node longer than the specified deadline";
        fail_with(pod, "DeadlineExceeded", message.into());
        ctx.tell(pod.pod.uid, true, "DeadlineExceeded", message.into(), None);
        let deadline = ctx.now.after(pod.termination_grace().max(Nanos::secs(1)));
        begin_termination(pod, TerminationCause::DeadlineExceeded, ctx.now, deadline, ctx.out);
        return;
    }
    // Since the agent started, its source has not told yet whether the pod is still wanted: nothing of it begins anew, for it
    // may have been deleted meanwhile (DESIGN §3 "Restart"; a kubelet does not know the pod at all until then).
    if pod.applied_in != ctx.epoch {
        return;
    }
    let plan = plan::compute(pod);
    carry_out(pod, &plan, ctx);
}

fn carry_out(pod: &mut PodState, plan: &Plan, ctx: &mut Context<'_>) {
    if pod.restarting_all.is_some() {
        return reset_all(pod, ctx);
    }
    if plan.over {
        let deadline = ctx.now.after(pod.termination_grace().max(Nanos::secs(1)));
        begin_termination(pod, TerminationCause::Completed, ctx.now, deadline, ctx.out);
        return;
    }
    for &(i, why) in &plan.stop {
        stop::begin(pod, i, why, ctx);
    }
    if let Some(attempt) = plan.create_sandbox {
        for i in 0..pod.containers.len() {
            if pod.containers[i].instance.is_some() {
                stop::begin(pod, i, Rule::SandboxGone, ctx);
            }
        }
        sandbox::renew(pod, attempt, ctx);
        return;
    }
    if plan.initialized && pod.ready_sandbox().is_some() {
        if !pod.initialized {
            pod.initialized = true;
            pod.changed();
        }
        pod.initialized_in = pod.ready_sandbox();
    }
    for &i in &plan.start_ephemeral {
        start::advance(pod, i, Rule::EphemeralNeeded, ctx);
    }
    for &(i, why) in plan.start_init.iter().chain(&plan.start_main) {
        start::advance(pod, i, why, ctx);
    }
    resize::drive(pod, ctx);
}

/// KEP-5532: kill without grace, hooks or order; once nothing runs, all begin anew in the same sandbox.
fn reset_all(pod: &mut PodState, ctx: &mut Context<'_>) {
    let mut running = false;
    for i in 0..pod.containers.len() {
        let container = &pod.containers[i];
        if container.kind == ContainerKind::Ephemeral || container.removed.is_some() {
            continue;
        }
        if container.instance.is_some() {
            running = true;
            stop::begin(pod, i, Rule::RestartAll, ctx);
        }
    }
    if running {
        return;
    }
    let source = pod.restarting_all.take().map(|id| id.name);
    for container in &mut pod.containers {
        if container.kind == ContainerKind::Ephemeral || container.removed.is_some() {
            continue;
        }
        container.completed_in = None;
        // Whoever asked for it has crashed, and waits as any that crashes: else it would restart all without end (L4).
        if source.as_ref() != Some(&container.name) {
            container.crashes = 0;
        }
        if let Some(last) = &mut container.last {
            last.why = Some(Rule::RestartAll);
        }
    }
    pod.initialized_in = None;
    pod.changed();
    let plan = plan::compute(pod);
    carry_out(pod, &plan, ctx);
}

/// An operation whose end is unknown is cleared up by looking (B27), never by guessing.
fn look_at_unknowns(pod: &mut PodState, ctx: &mut Context<'_>) {
    let unknown = pod
        .containers
        .iter()
        .any(|c| c.instance.as_ref().is_some_and(|i| matches!(i.phase, InstancePhase::Unknown)))
        || pod.sandbox.iter().chain(&pod.old_sandboxes).any(|s| matches!(s.phase, SandboxPhase::Unknown));
    if !unknown || pod.observing.is_some() {
        return;
    }
    let retry = pod.observe_retry.clone();
    if !ctx.retry_due(&retry, Why::ObserveRetry) {
        return;
    }
    let op = ctx.command(pod.pod.uid, Rule::ObservationNeeded, Action::ObserveRuntime);
    ctx.observations.insert(op, pod.pod.uid);
    pod.observing = Some(op);
}

/// A live container that no record owns goes at once (S6, B27).
fn kill_surplus(pod: &mut PodState, ctx: &mut Context<'_>) {
    let uid = pod.pod.uid;
    for surplus in &mut pod.surplus {
        if surplus.kill.is_none() && ctx.retry_due(&surplus.retry, Why::StopRetry) {
            let action = Action::KillContainer { container: surplus.id.clone() };
            surplus.kill = Some(ctx.command(uid, Rule::Surplus, action));
        }
    }
}

/// `name_namespace(uid)`, as the kubelet prints a pod in messages.
fn full_name(pod: &PodState) -> crate::ids::Name {
    text(format_args!("{}_{}({})", pod.pod.name, pod.pod.namespace, pod.pod.uid))
}
