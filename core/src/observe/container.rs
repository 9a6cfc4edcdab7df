//! Facts about containers: images, the life of an instance, its hooks and probes.

use super::Recording;
use crate::anomaly::AnomalyKind;
use crate::command::{Rule, Subject};
use crate::config::Timing;
use crate::context::{sentence, text};
use crate::event::{ErrorClass, Exit, Hook, OpError, ProbeKind};
use crate::ids::{ContainerId, Name, OpId, PodUid};
use crate::spec::PullPolicy;
use crate::state::{ContainerKind, ContainerState, Dead, Ended, HookState, InstancePhase, PodState, Retry};
use crate::time::{Nanos, Time};
use alloc::boxed::Box;

/// The reason of an end that is concluded from a refusal to start, as the runtime names it.
const START_ERROR: &str = "StartError";

pub(super) fn image_pulled(
    r: &mut Recording<'_>,
    op: OpId,
    uid: PodUid,
    id: &ContainerId,
    image_id: &Name,
    already_present: bool,
) {
    let Some(pod) = r.pod_unchanged(uid) else { return };
    let Some(container) = pod.container_of(id).filter(|c| c.pulling.as_ref().is_some_and(|p| p.0 == op))
    else {
        return r.stale(uid, op);
    };
    let Some((_, image)) = container.pulling.take().map(|p| *p) else { return };
    // The definition may have moved on to another image meanwhile, which then wants a pull of its own.
    container.image_id = (image == container.spec.image).then(|| image_id.clone());
    container.pull_retry.clear();
    let policy = container.spec.pull_policy;
    if !already_present {
        pulled_after_all(r, uid, policy, &image, &id.name);
    }
    let how = if already_present {
        sentence(format_args!(
            "Container image \"{image}\" already present on machine and can be accessed by the pod"
        ))
    } else {
        sentence(format_args!("Successfully pulled image \"{image}\""))
    };
    r.moved(uid, Subject::Container(id.clone()), "Pulling", "Waiting");
    r.tell(uid, false, "Pulled", how, Some(id.name.clone()));
}

/// Where the image was looked for first, that it was pulled is known by the answer only; `Always` told it beforehand.
fn pulled_after_all(r: &mut Recording<'_>, uid: PodUid, policy: PullPolicy, image: &Name, container: &Name) {
    match policy {
        PullPolicy::IfNotPresent => {
            let message = sentence(format_args!("Pulling image \"{image}\""));
            r.tell(uid, false, "Pulling", message, Some(container.clone()));
        }
        PullPolicy::Always | PullPolicy::Never => {}
    }
}

pub(super) fn image_pull_failed(
    r: &mut Recording<'_>,
    op: OpId,
    uid: PodUid,
    id: &ContainerId,
    error: &OpError,
) {
    let (now, timing) = (r.state.now, r.state.config.timing.clone());
    let Some(pod) = r.pod(uid) else { return };
    let Some(container) = pod.container_of(id).filter(|c| c.pulling.as_ref().is_some_and(|p| p.0 == op))
    else {
        return r.stale(uid, op);
    };
    container.pulling = None;
    container.pull_retry.fail(now, timing.pull_backoff_initial, timing.pull_backoff_max);
    let reason = error.reason.clone().unwrap_or_else(|| crate::actuate::start::PULL_ERROR.into());
    container.start_failure = Some(Box::new((reason.clone(), error.message.clone())));
    let (image, policy) = (container.spec.image.clone(), container.spec.pull_policy);
    r.moved(uid, Subject::Container(id.clone()), "Pulling", "Waiting");
    // With a reason of its own it was refused before anything was pulled.
    if error.reason.is_none() {
        pulled_after_all(r, uid, policy, &image, &id.name);
    }
    let message = sentence(format_args!("Failed to pull image \"{image}\": {}", error.message));
    r.tell(uid, true, "Failed", message, Some(id.name.clone()));
}

pub(super) fn created(r: &mut Recording<'_>, op: OpId, uid: PodUid, id: &ContainerId) {
    let Some(pod) = r.pod_unchanged(uid) else { return };
    let container = pod.container_of(id);
    let Some(instance) = container
        .and_then(|c| c.instance_mut(id.attempt))
        .filter(|i| matches!(i.phase, InstancePhase::Creating { op: o } if o == op))
    else {
        return r.stale(uid, op);
    };
    instance.phase = InstancePhase::Created;
    newer_than_look(pod, id);
    r.moved(uid, Subject::Container(id.clone()), "Creating", "Created");
    r.tell(uid, false, "Created", "Container created".into(), Some(id.name.clone()));
}

pub(super) fn create_failed(r: &mut Recording<'_>, op: OpId, uid: PodUid, id: &ContainerId, error: &OpError) {
    let (now, timing) = (r.state.now, r.state.config.timing.clone());
    let Some(pod) = r.pod(uid) else { return };
    let Some(container) = pod.container_of(id).filter(|c| {
        c.instance.as_ref().is_some_and(|i| {
            i.attempt == id.attempt && matches!(i.phase, InstancePhase::Creating { op: o } if o == op)
        })
    }) else {
        return r.stale(uid, op);
    };
    fail_start(container, "CreateContainerError", error, now, &timing);
    let to = match error.class {
        // B27: a create that was not acknowledged may exist; only a look at the runtime tells.
        ErrorClass::Uncertain => {
            if let Some(instance) = container.instance_mut(id.attempt) {
                instance.phase = InstancePhase::Unknown;
            }
            "Unknown"
        }
        // A failed create releases the lease.
        ErrorClass::Final | ErrorClass::Transient => {
            container.instance = None;
            "Waiting"
        }
    };
    newer_than_look(pod, id);
    r.moved(uid, Subject::Container(id.clone()), "Creating", to);
    r.tell(uid, true, "Failed", sentence(format_args!("Error: {}", error.message)), Some(id.name.clone()));
}

pub(super) fn started(r: &mut Recording<'_>, op: OpId, uid: PodUid, id: &ContainerId) {
    let now = r.state.now;
    let Some(pod) = r.pod(uid) else { return };
    let container = pod.container_of(id);
    let Some(container) = container.filter(|c| {
        c.instance.as_ref().is_some_and(|i| {
            i.attempt == id.attempt && matches!(i.phase, InstancePhase::Starting { op: o } if o == op)
        })
    }) else {
        return r.stale(uid, op);
    };
    runs(container, id.attempt, now);
    newer_than_look(pod, id);
    pod.sandbox_retry.clear();
    r.moved(uid, Subject::Container(id.clone()), "Starting", "Running");
    r.tell(uid, false, "Started", "Container started".into(), Some(id.name.clone()));
}

/// A list that is on its way may have been read before this answer: what it says of the instance, or doesn't, is older.
fn newer_than_look(pod: &mut PodState, id: &ContainerId) {
    if pod.observing.is_some() && !pod.newer_than_look.contains(id) {
        pod.newer_than_look.push(id.clone());
    }
}

/// A life after another one is a restart from when it is known to have begun, not from when it is wanted: until then the
/// former life is shown, with its own count (recordings 02, 10), and a create that fails restarts nothing.
fn count_restart(container: &mut ContainerState) {
    let begins = container.instance.as_ref().is_some_and(|i| i.started_at.is_none());
    if begins && container.last.is_some() {
        container.restarts += 1;
    }
}

/// The instance is known to run since then.
pub(super) fn runs(container: &mut ContainerState, attempt: u32, since: Time) {
    count_restart(container);
    container.ever_started = true;
    container.start_failure = None;
    container.start_retry.clear();
    container.image_id = None;
    if let Some(instance) = container.instance_mut(attempt) {
        instance.phase = InstancePhase::Running;
        instance.started_at.get_or_insert(since);
    }
}

pub(super) fn start_failed(r: &mut Recording<'_>, op: OpId, uid: PodUid, id: &ContainerId, error: &OpError) {
    let (now, timing) = (r.state.now, r.state.config.timing.clone());
    let Some(pod) = r.pod(uid) else { return };
    let Some(container) = pod.container_of(id).filter(|c| {
        c.instance.as_ref().is_some_and(|i| {
            i.attempt == id.attempt && matches!(i.phase, InstancePhase::Starting { op: o } if o == op)
        })
    }) else {
        return r.stale(uid, op);
    };
    fail_start(container, "RunContainerError", error, now, &timing);
    let to = match error.class {
        ErrorClass::Uncertain => {
            if let Some(instance) = container.instance_mut(id.attempt) {
                instance.phase = InstancePhase::Unknown;
            }
            "Unknown"
        }
        // It was not tried: the container is still parked, and is started later (B31).
        ErrorClass::Transient => {
            if let Some(instance) = container.instance_mut(id.attempt) {
                instance.phase = InstancePhase::Created;
            }
            "Created"
        }
        // A container that can't be started is over; the runtime shows it as exited with 128.
        ErrorClass::Final => {
            let exit = Exit {
                code: 128,
                signal: None,
                reason: START_ERROR.into(),
                started_at: None,
                finished_at: now,
            };
            end_instance(container, exit, error.message.clone(), &timing);
            "Exited"
        }
    };
    newer_than_look(pod, id);
    r.moved(uid, Subject::Container(id.clone()), "Starting", to);
    r.tell(uid, true, "Failed", sentence(format_args!("Error: {}", error.message)), Some(id.name.clone()));
}

fn fail_start(container: &mut ContainerState, reason: &str, error: &OpError, now: Time, timing: &Timing) {
    let reason = error.reason.clone().unwrap_or_else(|| reason.into());
    container.start_failure = Some(Box::new((reason, error.message.clone())));
    container.start_retry.fail(now, timing.retry_backoff_initial, timing.retry_backoff_max);
}

/// An exit as it is kept. Whoever tells it stamped it, maybe in another unit or by a clock that was set back; what is told has
/// happened, so that no back-off begins later than that (B33), and none is over before it began.
pub(super) fn stamped(exit: &Exit, now: Time, behind: Nanos) -> Exit {
    Exit { finished_at: exit.finished_at.after(behind).min(now), ..exit.clone() }
}

pub(super) fn exited(r: &mut Recording<'_>, uid: PodUid, id: &ContainerId, exit: &Exit) {
    let timing = r.state.config.timing.clone();
    let exit = stamped(exit, r.state.now, r.behind);
    let Some(pod) = r.pod(uid) else { return };
    if let Some(at) = pod.surplus.iter().position(|s| s.id == *id) {
        let gone = pod.surplus.remove(at);
        // Its remains are removed like anybody's, if its name has a record to hold them.
        if let Some(container) = pod.container_of(&gone.id) {
            remember_dead(container, gone.id.attempt, 0);
        }
        return;
    }
    if let Some(presumed) = pod.container_of(id).and_then(|c| presumed_end(c, id.attempt)) {
        // The runtime refused to start it because it had ended already: how, only this says (B28).
        presumed.exit = exit;
        presumed.message = Name::default();
        note_restart_all(pod, id);
        return;
    }
    let Some(container) =
        pod.container_of(id).filter(|c| c.instance.as_ref().is_some_and(|i| i.attempt == id.attempt))
    else {
        return r.unknown_instance(uid, text(format_args!("exit of {id}")));
    };
    let from = container.label();
    end_instance(container, exit, Name::default(), &timing);
    newer_than_look(pod, id);
    note_restart_all(pod, id);
    r.moved(uid, Subject::Container(id.clone()), from, "Exited");
}

/// The attempt's end, if it is only concluded from a refusal to start it.
fn presumed_end(container: &mut ContainerState, attempt: u32) -> Option<&mut Ended> {
    container.last.as_deref_mut().filter(|e| e.attempt == attempt && &*e.exit.reason == START_ERROR)
}

/// Ends the current instance: releases its leases, keeps what is shown of it, counts a crash.
pub(crate) fn end_instance(container: &mut ContainerState, exit: Exit, message: Name, timing: &Timing) {
    count_restart(container);
    let Some(instance) = container.instance.take().map(|i| *i) else { return };
    let why = instance.stop.as_ref().map(|s| s.why);
    let ran = exit.started_at.or(instance.started_at).map(|s| exit.finished_at.since(s)).unwrap_or_default();
    container.crashes = match why {
        // A new definition's restart waits for nothing (DESIGN §4 rule 6).
        Some(Rule::DefinitionChanged | Rule::MountsChanged | Rule::ResizeRestart | Rule::RestartAll) => 0,
        _ if ran >= timing.crash_backoff_reset => 1,
        _ => container.crashes.saturating_add(1),
    };
    // An init container is done when it ended well by itself, not when it was stopped (case 57).
    let started_at = exit.started_at.or(instance.started_at);
    if container.kind == ContainerKind::Init && exit.code == 0 && started_at.is_some() && why.is_none() {
        container.completed_in = Some(instance.sandbox);
    }
    remember_dead(container, instance.attempt, instance.sandbox);
    if let InstancePhase::Discarding { op } = instance.phase
        && let Some(dead) = container.dead.iter_mut().find(|d| d.attempt == instance.attempt)
    {
        // Its removal is under way (S12).
        dead.removing = Some(op);
    }
    container.previous = container.last.take();
    container.end_shown = false;
    container.backoff_told = false;
    container.image_id = None;
    container.usage = None;
    container.last = Some(Box::new(Ended {
        attempt: instance.attempt,
        exit: Exit { started_at: exit.started_at.or(instance.started_at), ..exit },
        message,
        sandbox: instance.sandbox,
        why,
        spec: instance.spec,
        image_id: instance.image_id,
    }));
}

fn remember_dead(container: &mut ContainerState, attempt: u32, sandbox: u32) {
    if container.dead.iter().all(|d| d.attempt != attempt) {
        container.dead.push(Dead { attempt, sandbox, removing: None, retry: Retry::default() });
    }
}

/// An end nobody saw: failure, never success (B10, B11).
pub(super) fn vanished(container: &mut ContainerState, now: Time, timing: &Timing) {
    let message = "The container could not be located when the agent looked for it";
    let exit = Exit {
        code: 137,
        signal: None,
        reason: "ContainerStatusUnknown".into(),
        started_at: None,
        finished_at: now,
    };
    let attempt = container.instance.as_ref().map(|i| i.attempt);
    end_instance(container, exit, message.into(), timing);
    // The runtime holds nothing of it.
    container.dead.retain(|d| Some(d.attempt) != attempt);
}

/// KEP-5532: a rule of the container that just exited may ask for all to be restarted.
pub(super) fn note_restart_all(pod: &mut PodState, id: &ContainerId) {
    if !pod.is_active() || pod.restarting_all.is_some() {
        return;
    }
    let Some(container) = pod.container_of(id) else { return };
    let asked = container.removed.is_none()
        && container.last.as_ref().is_some_and(|e| crate::actuate::restart::asks_for_all(container, e));
    if asked {
        pod.restarting_all = Some(Box::new(id.clone()));
    }
}

pub(super) fn stop_failed(r: &mut Recording<'_>, op: OpId, uid: PodUid, id: &ContainerId, error: &OpError) {
    let (now, timing) = (r.state.now, r.state.config.timing.clone());
    let Some(pod) = r.pod_unchanged(uid) else { return };
    if let Some(surplus) = pod.surplus.iter_mut().find(|s| s.id == *id && s.kill == Some(op)) {
        surplus.kill = None;
        surplus.retry.fail(now, timing.retry_backoff_initial, timing.retry_backoff_max);
        return;
    }
    let stop = pod.container_of(id).and_then(|c| c.instance_mut(id.attempt)).and_then(|i| i.stop.as_mut());
    let Some(stop) = stop.filter(|s| s.kill == Some(op) || matches!(s.sent, Some((Some(o), _)) if o == op))
    else {
        return r.stale(uid, op);
    };
    if stop.kill == Some(op) {
        stop.kill = None;
    } else if let Some((sent, _)) = &mut stop.sent {
        *sent = None;
    }
    stop.retry.fail(now, timing.retry_backoff_initial, timing.retry_backoff_max);
    r.tell(
        uid,
        true,
        "FailedKillPod",
        sentence(format_args!("error killing container: {}", error.message)),
        None,
    );
}

pub(super) fn removed(r: &mut Recording<'_>, op: OpId, uid: PodUid, id: &ContainerId) {
    let Some(pod) = r.pod_unchanged(uid) else { return };
    let Some(container) = pod.container_of(id) else { return r.stale(uid, op) };
    let discarding = container
        .instance_mut(id.attempt)
        .is_some_and(|i| matches!(i.phase, InstancePhase::Discarding { op: o } if o == op));
    if discarding {
        // It never started: its removal releases the lease.
        container.instance = None;
        newer_than_look(pod, id);
        pod.changed();
        r.moved(uid, Subject::Container(id.clone()), "Discarding", "");
        return;
    }
    let before = container.dead.len();
    container.dead.retain(|d| !(d.attempt == id.attempt && d.removing == Some(op)));
    if container.dead.len() == before {
        r.stale(uid, op);
    }
}

pub(super) fn remove_failed(r: &mut Recording<'_>, op: OpId, uid: PodUid, id: &ContainerId, error: &OpError) {
    let (now, timing) = (r.state.now, r.state.config.timing.clone());
    let Some(pod) = r.pod_unchanged(uid) else { return };
    let Some(container) = pod.container_of(id) else { return r.stale(uid, op) };
    if let Some(instance) = container.instance_mut(id.attempt)
        && matches!(instance.phase, InstancePhase::Discarding { op: o } if o == op)
    {
        instance.phase = match error.class {
            ErrorClass::Uncertain => InstancePhase::Unknown,
            ErrorClass::Final | ErrorClass::Transient => InstancePhase::Created,
        };
        if let Some(stop) = &mut instance.stop {
            stop.retry.fail(now, timing.retry_backoff_initial, timing.retry_backoff_max);
        }
        return;
    }
    let Some(dead) = container.dead.iter_mut().find(|d| d.attempt == id.attempt && d.removing == Some(op))
    else {
        return r.stale(uid, op);
    };
    dead.removing = None;
    dead.retry.fail(now, timing.retry_backoff_initial, timing.retry_backoff_max);
}

pub(super) fn resized(r: &mut Recording<'_>, op: OpId, uid: PodUid, id: &ContainerId) {
    let Some(pod) = r.pod(uid) else { return };
    let instance = pod.container_of(id).and_then(|c| c.instance_mut(id.attempt));
    let Some(instance) = instance.filter(|i| i.resizing.as_ref().is_some_and(|r| r.0 == op)) else {
        return r.stale(uid, op);
    };
    // Converge on what was acknowledged, not on what is measured (B36).
    if let Some((_, resources)) = instance.resizing.take().map(|r| *r) {
        instance.resources = resources;
    }
    instance.resize_retry.clear();
}

pub(super) fn resize_failed(r: &mut Recording<'_>, op: OpId, uid: PodUid, id: &ContainerId, error: &OpError) {
    let (now, timing) = (r.state.now, r.state.config.timing.clone());
    let Some(pod) = r.pod(uid) else { return };
    let instance = pod.container_of(id).and_then(|c| c.instance_mut(id.attempt));
    let Some(instance) = instance.filter(|i| i.resizing.as_ref().is_some_and(|r| r.0 == op)) else {
        return r.stale(uid, op);
    };
    instance.resizing = None;
    instance.resize_retry.fail(now, timing.retry_backoff_initial, timing.retry_backoff_max);
    if let Some(progress) = &mut pod.in_progress {
        progress.error = Some(error.message.clone());
    }
    r.tell(uid, true, "ResizeError", (&error.message).into(), Some(id.name.clone()));
}

pub(super) fn hook_done(
    r: &mut Recording<'_>,
    op: OpId,
    uid: PodUid,
    id: &ContainerId,
    hook: Hook,
    error: Option<&Name>,
) {
    let now = r.state.now;
    let Some(pod) = r.pod(uid) else { return };
    let deadline = now.after(pod.termination_grace());
    let Some(instance) = pod.container_of(id).and_then(|c| c.instance_mut(id.attempt)) else {
        return r.stale(uid, op);
    };
    let expected = match hook {
        Hook::PostStart => matches!(instance.post_start, HookState::Running { op: o } if o == op),
        Hook::PreStop => instance
            .stop
            .as_ref()
            .is_some_and(|s| matches!(s.pre_stop, HookState::Running { op: o } if o == op)),
    };
    if !expected {
        return r.stale(uid, op);
    }
    match hook {
        Hook::PostStart => {
            instance.post_start = HookState::Done;
            if let Some(message) = error {
                crate::actuate::stop::ask(instance, Rule::PostStartFailed, deadline);
                if let Some(container) = pod.container_of(id) {
                    container.start_failure = Some(Box::new(("PostStartHookError".into(), message.clone())));
                }
            }
        }
        Hook::PreStop => {
            if let Some(stop) = &mut instance.stop {
                stop.pre_stop = HookState::Done;
            }
        }
    }
    if let Some(message) = error {
        let reason = match hook {
            Hook::PostStart => "FailedPostStartHook",
            Hook::PreStop => "FailedPreStopHook",
        };
        r.tell(uid, true, reason, message.into(), Some(id.name.clone()));
    }
}

pub(super) fn probe_result(
    r: &mut Recording<'_>,
    uid: PodUid,
    id: &ContainerId,
    probe: ProbeKind,
    passed: bool,
    message: &Name,
) {
    let Some(pod) = r.pod(uid) else { return };
    let Some(instance) = pod.container_of(id).and_then(|c| c.instance_mut(id.attempt)) else {
        return r.unknown_instance(uid, text(format_args!("probe of {id}")));
    };
    let (slot, name) = match probe {
        ProbeKind::Startup => (0, "Startup"),
        ProbeKind::Liveness => (1, "Liveness"),
        ProbeKind::Readiness => (2, "Readiness"),
    };
    instance.probes.results[slot] = Some(passed);
    if !passed {
        let message = sentence(format_args!("{name} probe failed: {message}"));
        r.tell(uid, true, "Unhealthy", message, Some(id.name.clone()));
    }
}

/// A live container that no record owns was found: it is killed, and holds everything meanwhile (B27, S6).
pub(super) fn note_surplus(r: &mut Recording<'_>, uid: PodUid, id: &ContainerId) {
    let Some(pod) = r.pod(uid) else { return };
    if pod.surplus.iter().any(|s| s.id == *id) {
        return;
    }
    pod.surplus.push(crate::state::Surplus { id: id.clone(), kill: None, retry: Retry::default() });
    r.state.anomaly(AnomalyKind::SurplusContainer, Some(uid), text(format_args!("{id}")));
}
