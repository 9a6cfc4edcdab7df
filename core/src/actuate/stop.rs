//! Stopping a container: a recorded state with a deadline that only moves earlier (S15). preStop, TERM with what is
//! left of the grace, KILL when it has passed.

use crate::command::{Action, Rule, Subject};
use crate::context::{Context, Why, sentence};
use crate::event::Hook;
use crate::state::{ContainerKind, HookState, Instance, InstancePhase, Lifecycle, PodState, Retry, Stop};
use crate::time::{Nanos, Time};
use alloc::boxed::Box;

/// How long after the runtime's own kill was due we send one ourselves.
const KILL_SLACK: Nanos = Nanos::secs(1);

/// What the `Killing` event says of a container that is to start again, as the kubelet words it.
const TOLD: [(Rule, &str); 5] = [
    (Rule::DefinitionChanged, "definition changed, will be restarted"),
    (Rule::MountsChanged, "volume mounts changed, will be restarted"),
    (Rule::ResizeRestart, "resize requires restart"),
    (Rule::LivenessFailed, "failed liveness probe, will be restarted"),
    (Rule::StartupFailed, "failed startup probe, will be restarted"),
];

/// Asks an instance to stop by `deadline`, or moves the deadline of a stop under way earlier. The first reason stays,
/// but for a removal or the pod's end, after which nothing is restarted.
pub(crate) fn ask(instance: &mut Instance, why: Rule, deadline: Time) {
    match &mut instance.stop {
        None => {
            let running = matches!(instance.phase, InstancePhase::Running);
            let hook =
                instance.spec.pre_stop && running && why != Rule::RestartAll && why != Rule::RuntimeUnknown;
            instance.stop = Some(Box::new(Stop {
                why,
                deadline,
                pre_stop: if hook { HookState::Due } else { HookState::Done },
                sent: None,
                kill: None,
                retry: Retry::default(),
            }));
        }
        Some(stop) => {
            stop.deadline = stop.deadline.min(deadline);
            if matches!(
                why,
                Rule::ContainerRemoved | Rule::PodTerminating | Rule::SandboxGone | Rule::RestartAll
            ) {
                stop.why = why;
            }
        }
    }
}

/// Begins to stop a container for a reason, and says so.
pub(super) fn begin(pod: &mut PodState, i: usize, why: Rule, ctx: &mut Context<'_>) {
    // A stop under way keeps its deadline: this request's own runs from when it was made first.
    let under_way = pod.containers[i].instance.as_ref().and_then(|i| i.stop.as_ref());
    if under_way.is_some_and(|stop| stop.why == why) {
        return;
    }
    let grace = grace(pod, i, why, ctx);
    let uid = pod.pod.uid;
    let container = &mut pod.containers[i];
    let name = container.name.clone();
    let Some(id) = container.instance_id() else { return };
    let Some(instance) = &mut container.instance else { return };
    let first = instance.stop.is_none();
    let running = matches!(instance.phase, InstancePhase::Running);
    ask(instance, why, ctx.now.after(grace));
    if !first || !running {
        return;
    }
    ctx.moved(uid, Subject::Container(id), "Running", "Stopping");
    let message = match TOLD.iter().find(|(rule, _)| *rule == why) {
        Some((_, what)) => sentence(format_args!("Container {name} {what}")),
        None => sentence(format_args!("Stopping container {name}")),
    };
    ctx.tell(uid, false, "Killing", message, Some(name));
}

/// The grace that a stop for this reason has (kubelet-pods §3.5).
fn grace(pod: &PodState, i: usize, why: Rule, ctx: &Context<'_>) -> Nanos {
    if why == Rule::RestartAll {
        return Nanos::ZERO;
    }
    if let Lifecycle::Terminating(termination) = &pod.lifecycle {
        return termination.deadline.since(ctx.now);
    }
    let spec = pod.containers[i].instance.as_ref().map(|instance| &instance.spec);
    let probe = if why == Rule::LivenessFailed {
        spec.and_then(|s| s.liveness_probe)
    } else if why == Rule::StartupFailed {
        spec.and_then(|s| s.startup_probe)
    } else {
        None
    };
    probe.and_then(|p| p.grace).unwrap_or_else(|| pod.termination_grace())
}

/// Takes the next step of every stop under way.
pub(super) fn drive_all(pod: &mut PodState, ctx: &mut Context<'_>) {
    for i in 0..pod.containers.len() {
        let waits = waits_for_turn(pod, i);
        drive(pod, i, waits, ctx);
    }
}

/// During termination a sidecar stops after the main containers that run (removed ones too) and after every later
/// sidecar. What does not run can't be waited for (B20).
fn waits_for_turn(pod: &PodState, i: usize) -> bool {
    let me = &pod.containers[i];
    if me.kind != ContainerKind::Sidecar || !matches!(pod.lifecycle, Lifecycle::Terminating(_)) {
        return false;
    }
    pod.containers.iter().enumerate().any(|(j, other)| {
        let before_me = match other.kind {
            ContainerKind::Main => true,
            ContainerKind::Sidecar => j > i,
            ContainerKind::Init | ContainerKind::Ephemeral => false,
        };
        before_me && other.instance.is_some()
    })
}

fn drive(pod: &mut PodState, i: usize, waits: bool, ctx: &mut Context<'_>) {
    let uid = pod.pod.uid;
    let minimum = ctx.config.timing.minimum_grace;
    let container = &mut pod.containers[i];
    if container.instance.as_ref().is_none_or(|i| i.stop.is_none()) {
        return;
    }
    let Some(id) = container.instance_id() else { return };
    let Some(instance) = &mut container.instance else { return };
    let Some(stop) = &mut instance.stop else { return };
    match instance.phase {
        // What is in flight ends first; an observation tells what is unknown.
        InstancePhase::Creating { .. }
        | InstancePhase::Starting { .. }
        | InstancePhase::Unknown
        | InstancePhase::Discarding { .. } => return,
        InstancePhase::Created => {
            if ctx.retry_due(&stop.retry, Why::StopRetry) {
                let action = Action::RemoveContainer { container: id.clone() };
                let op = ctx.command(uid, stop.why, action);
                instance.phase = InstancePhase::Discarding { op };
                ctx.moved(uid, Subject::Container(id), "Created", "Discarding");
            }
            return;
        }
        InstancePhase::Running | InstancePhase::Lost => {}
    }
    if !pre_stop_over(&id, &instance.spec, stop, uid, ctx) {
        return;
    }
    if waits && !ctx.due(stop.deadline, Why::GraceDeadline) {
        return;
    }
    let at_once = matches!(stop.why, Rule::RestartAll);
    match &stop.sent {
        None if !at_once => send(&id, stop, uid, minimum, ctx),
        // A kill that was handed over is answered by its exit or its refusal, as below.
        None if stop.kill.is_none() => kill(&id, stop, uid, ctx),
        None => {}
        Some((op, kill_at)) => {
            let (op, kill_at) = (*op, *kill_at);
            // Both sides count from the moment of the event.
            let wanted = stop.deadline.max(ctx.now.after(minimum));
            if stop.kill.is_some() {
                // Handed over; its exit or its refusal comes as a fact.
            } else if ctx.due(kill_at.after(KILL_SLACK), Why::GraceDeadline) {
                kill(&id, stop, uid, ctx);
            } else if wanted < kill_at || op.is_none() {
                // Less time than the runtime was given: an earlier stop overtakes it (B24). Or it was refused.
                send(&id, stop, uid, minimum, ctx);
            }
        }
    }
}

/// Runs preStop within the grace. True when the container may be told to stop.
fn pre_stop_over(
    id: &crate::ids::ContainerId,
    spec: &crate::state::Shared<crate::spec::Container>,
    stop: &mut Stop,
    uid: crate::ids::PodUid,
    ctx: &mut Context<'_>,
) -> bool {
    match stop.pre_stop {
        HookState::Done => true,
        HookState::Due => {
            let left = stop.deadline.since(ctx.now);
            if left == Nanos::ZERO {
                stop.pre_stop = HookState::Done;
                return true;
            }
            let action = Action::RunHook {
                container: id.clone(),
                hook: Hook::PreStop,
                timeout: Some(left),
                spec: spec.arc().clone(),
            };
            let op = ctx.command(uid, Rule::LifecycleHook, action);
            stop.pre_stop = HookState::Running { op };
            ctx.due(stop.deadline, Why::GraceDeadline);
            false
        }
        HookState::Running { .. } => {
            let given_up = ctx.due(stop.deadline, Why::GraceDeadline);
            if given_up {
                stop.pre_stop = HookState::Done;
            }
            given_up
        }
    }
}

fn send(
    id: &crate::ids::ContainerId,
    stop: &mut Stop,
    uid: crate::ids::PodUid,
    minimum: Nanos,
    ctx: &mut Context<'_>,
) {
    if !ctx.retry_due(&stop.retry, Why::StopRetry) {
        return;
    }
    let grace = stop.deadline.since(ctx.now).max(minimum);
    let op = ctx.command(uid, stop.why, Action::StopContainer { container: id.clone(), grace });
    let kill_at = ctx.now.after(grace);
    stop.sent = Some((Some(op), kill_at));
    ctx.due(kill_at.after(KILL_SLACK), Why::GraceDeadline);
}

fn kill(id: &crate::ids::ContainerId, stop: &mut Stop, uid: crate::ids::PodUid, ctx: &mut Context<'_>) {
    if !ctx.retry_due(&stop.retry, Why::StopRetry) {
        return;
    }
    let rule = if stop.why == Rule::RestartAll { Rule::RestartAll } else { Rule::GraceExceeded };
    stop.kill = Some(ctx.command(uid, rule, Action::KillContainer { container: id.clone() }));
}
