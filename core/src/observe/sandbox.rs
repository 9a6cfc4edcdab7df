//! Facts about sandboxes and the pod's cgroup.

use super::Recording;
use crate::command::Subject;
use crate::context::{sentence, text};
use crate::event::{ErrorClass, OpError};
use crate::ids::{Name, OpId, PodUid};
use crate::state::{PodState, Sandbox, SandboxPhase};
use crate::time::Nanos;

/// The sandbox of that attempt, current or old.
pub(super) fn find(pod: &mut PodState, attempt: u32) -> Option<&mut Sandbox> {
    pod.sandbox.iter_mut().chain(pod.old_sandboxes.iter_mut()).find(|s| s.attempt == attempt)
}

/// Drops a sandbox of which nothing is left.
pub(super) fn forget(pod: &mut PodState, attempt: u32) {
    if pod.sandbox.as_ref().is_some_and(|s| s.attempt == attempt) {
        pod.sandbox = None;
    }
    pod.old_sandboxes.retain(|s| s.attempt != attempt);
}

pub(super) fn ready(r: &mut Recording<'_>, op: OpId, uid: PodUid, attempt: u32, ip: &Option<Name>) {
    let Some(pod) = r.pod(uid) else { return };
    let Some(sandbox) =
        find(pod, attempt).filter(|s| matches!(s.phase, SandboxPhase::Creating { op: o } if o == op))
    else {
        return r.stale(uid, op);
    };
    sandbox.phase = SandboxPhase::Ready;
    sandbox.ip = ip.clone();
    r.moved(uid, Subject::Sandbox(attempt), "Creating", "Ready");
}

pub(super) fn failed(r: &mut Recording<'_>, op: OpId, uid: PodUid, attempt: u32, error: &OpError) {
    let (now, timing) = (r.state.now, r.state.config.timing.clone());
    let Some(pod) = r.pod(uid) else { return };
    let Some(sandbox) =
        find(pod, attempt).filter(|s| matches!(s.phase, SandboxPhase::Creating { op: o } if o == op))
    else {
        return r.stale(uid, op);
    };
    let to = match error.class {
        ErrorClass::Uncertain => {
            sandbox.phase = SandboxPhase::Unknown;
            "Unknown"
        }
        ErrorClass::Final | ErrorClass::Transient => {
            forget(pod, attempt);
            ""
        }
    };
    pod.sandbox_retry.fail(now, timing.retry_backoff_initial, timing.retry_backoff_max);
    r.moved(uid, Subject::Sandbox(attempt), "Creating", to);
    let message = sentence(format_args!("Failed to create pod sandbox: {}", error.message));
    r.tell(uid, true, "FailedCreatePodSandBox", message, None);
}

pub(super) fn stopped(r: &mut Recording<'_>, uid: PodUid, attempt: u32) {
    let (now, timing) = (r.state.now, r.state.config.timing.clone());
    let Some(pod) = r.pod(uid) else { return };
    let (was_of_use, is_active) = (was_of_use(pod, attempt), pod.is_active());
    let Some(sandbox) = find(pod, attempt) else {
        return r.unknown_instance(uid, text(format_args!("stop of sandbox {attempt}")));
    };
    let from = sandbox.phase.label();
    sandbox.phase = match sandbox.phase {
        // It died by itself: what is left of it wants a stop, and its containers an end.
        SandboxPhase::Creating { .. } | SandboxPhase::Ready | SandboxPhase::Unknown | SandboxPhase::Dead => {
            SandboxPhase::Dead
        }
        SandboxPhase::Stopping { .. } | SandboxPhase::Stopped => SandboxPhase::Stopped,
        SandboxPhase::Removing { op } => SandboxPhase::Removing { op },
    };
    let to = sandbox.phase.label();
    if was_of_use || !is_active {
        pod.sandbox_retry.clear();
    } else if to == "Stopped" && from != to {
        // What came up and was of no use is as good as failed. The first is made again at once (kubelet-pods §2.3), the others
        // wait, and longer each time (L4).
        let initial =
            if pod.sandbox_retry.failures() == 0 { Nanos::ZERO } else { timing.retry_backoff_initial };
        pod.sandbox_retry.fail(now, initial, timing.retry_backoff_max);
    }
    r.moved(uid, Subject::Sandbox(attempt), from, to);
}

/// Whether a container ever ran in the sandbox.
fn was_of_use(pod: &PodState, attempt: u32) -> bool {
    pod.containers.iter().any(|container| {
        let lives =
            container.instance.as_ref().is_some_and(|i| i.sandbox == attempt && i.started_at.is_some());
        let ended = [&container.last, &container.previous];
        lives || ended.into_iter().flatten().any(|ended| ended.sandbox == attempt)
    })
}

pub(super) fn stop_failed(r: &mut Recording<'_>, op: OpId, uid: PodUid, attempt: u32, error: &OpError) {
    let (now, timing) = (r.state.now, r.state.config.timing.clone());
    let Some(pod) = r.pod_unchanged(uid) else { return };
    let Some(sandbox) =
        find(pod, attempt).filter(|s| matches!(s.phase, SandboxPhase::Stopping { op: Some(o) } if o == op))
    else {
        return r.stale(uid, op);
    };
    sandbox.phase = SandboxPhase::Stopping { op: None };
    pod.sandbox_retry.fail(now, timing.retry_backoff_initial, timing.retry_backoff_max);
    let message = sentence(format_args!("error killing pod: failed to stop sandbox: {}", error.message));
    r.tell(uid, true, "FailedKillPod", message, None);
}

pub(super) fn removed(r: &mut Recording<'_>, op: OpId, uid: PodUid, attempt: u32) {
    let Some(pod) = r.pod_unchanged(uid) else { return };
    if !find(pod, attempt).is_some_and(|s| matches!(s.phase, SandboxPhase::Removing { op: o } if o == op)) {
        return r.stale(uid, op);
    }
    forget(pod, attempt);
    // What was left of containers in it went with it.
    for container in &mut pod.containers {
        container.dead.retain(|d| d.sandbox != attempt);
    }
    r.moved(uid, Subject::Sandbox(attempt), "Removing", "");
}

pub(super) fn remove_failed(r: &mut Recording<'_>, op: OpId, uid: PodUid, attempt: u32, error: &OpError) {
    let (now, timing) = (r.state.now, r.state.config.timing.clone());
    let Some(pod) = r.pod_unchanged(uid) else { return };
    let Some(sandbox) =
        find(pod, attempt).filter(|s| matches!(s.phase, SandboxPhase::Removing { op: o } if o == op))
    else {
        return r.stale(uid, op);
    };
    sandbox.phase = SandboxPhase::Stopped;
    pod.sandbox_retry.fail(now, timing.retry_backoff_initial, timing.retry_backoff_max);
    let message = sentence(format_args!("failed to remove sandbox: {}", error.message));
    r.tell(uid, true, "FailedKillPod", message, None);
}

pub(super) fn pod_resized(r: &mut Recording<'_>, op: OpId, uid: PodUid) {
    let Some(pod) = r.pod(uid) else { return };
    match pod.cgroup_resizing.take() {
        Some(asked) if asked.0 == op => {
            pod.cgroup = asked.1;
            pod.cgroup_retry.clear();
        }
        other => {
            pod.cgroup_resizing = other;
            r.stale(uid, op);
        }
    }
}

pub(super) fn pod_resize_failed(r: &mut Recording<'_>, op: OpId, uid: PodUid, error: &OpError) {
    let (now, timing) = (r.state.now, r.state.config.timing.clone());
    let Some(pod) = r.pod(uid) else { return };
    if pod.cgroup_resizing.as_ref().is_none_or(|asked| asked.0 != op) {
        return r.stale(uid, op);
    }
    pod.cgroup_resizing = None;
    pod.cgroup_retry.fail(now, timing.retry_backoff_initial, timing.retry_backoff_max);
    if let Some(progress) = &mut pod.in_progress {
        progress.error = Some(error.message.clone());
    }
    r.tell(uid, true, "ResizeError", (&error.message).into(), None);
}
