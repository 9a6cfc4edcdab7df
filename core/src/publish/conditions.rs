//! Conditions (kubelet-pods §1.8, §4.4; api-side §4.3).

use crate::allocate::preempt::PREEMPTED;
use crate::context::text;
use crate::ids::Name;
use crate::state::{ContainerKind, ContainerState, PendingKind, PodState};
use crate::status::{Condition, ConditionKind, PodPhase};
use crate::time::Time;
use alloc::string::String;
use alloc::vec::Vec;

pub(super) fn derive(pod: &PodState, phase: PodPhase, now: Time) -> Vec<Condition> {
    let mut conditions = Vec::new();
    let generation = pod.pod.generation;
    let mut push = |kind, status, reason: &str, message: Name, generation| {
        let reason: Name = reason.into();
        conditions.push(condition(pod, kind, status, reason, message, generation, now));
    };
    if let Some(pending) = &pod.pending {
        let reason = match pending.kind {
            PendingKind::Deferred => "Deferred",
            PendingKind::Infeasible => "Infeasible",
        };
        push(ConditionKind::PodResizePending, true, reason, pending.message.clone(), pending.generation);
    }
    if let Some(progress) = &pod.in_progress {
        let reason = if progress.error.is_some() { "Error" } else { "" };
        let message = progress.error.clone().unwrap_or_default();
        push(ConditionKind::PodResizeInProgress, true, reason, message, progress.generation);
    }
    if pod.restarting_all.is_some() {
        push(ConditionKind::AllContainersRestarting, true, "", Name::default(), generation);
    }
    let disruption = pod.end_reason.as_ref().and_then(|(reason, message)| match &**reason {
        "Evicted" => Some(message.clone()),
        PREEMPTED => Some("Pod was preempted by Kubelet to accommodate a critical pod.".into()),
        _ => None,
    });
    if let Some(message) = disruption {
        push(ConditionKind::DisruptionTarget, true, "TerminationByKubelet", message, generation);
    }
    let ready_to_start = pod.ready_sandbox().is_some()
        && (pod.spec().host_network || pod.sandbox.as_ref().is_some_and(|s| s.ip.is_some()));
    push(ConditionKind::PodReadyToStartContainers, ready_to_start, "", Name::default(), generation);
    let (initialized, reason, message) = initialized(pod, phase);
    push(ConditionKind::Initialized, initialized, reason, message, generation);
    let (containers_ready, reason, message) = containers_ready(pod, phase);
    let (ready, ready_reason, ready_message) =
        if containers_ready { gates(pod) } else { (false, reason, message.clone()) };
    push(ConditionKind::Ready, ready, ready_reason, ready_message, generation);
    push(ConditionKind::ContainersReady, containers_ready, reason, message, generation);
    push(ConditionKind::PodScheduled, true, "", Name::default(), generation);
    conditions
}

/// `lastTransitionTime` moves only when `status` does.
fn condition(
    pod: &PodState,
    kind: ConditionKind,
    status: bool,
    reason: Name,
    message: Name,
    observed_generation: u64,
    now: Time,
) -> Condition {
    let before = pod.publication.current.as_ref().and_then(|s| s.conditions.iter().find(|c| c.kind == kind));
    let last_transition = match before {
        Some(before) if before.status == status => before.last_transition,
        Some(_) | None => now.whole_seconds(),
    };
    Condition { kind, status, reason, message, last_transition, observed_generation }
}

fn initialized(pod: &PodState, phase: PodPhase) -> (bool, &'static str, Name) {
    if phase == PodPhase::Succeeded {
        return (true, "PodCompleted", Name::default());
    }
    let main_started = pod.indices(ContainerKind::Main).any(|i| pod.containers[i].ever_started);
    if pod.initialized || main_started {
        return (true, "", Name::default());
    }
    let incomplete = |c: &&ContainerState| match c.kind {
        ContainerKind::Init => c.completed_in.is_none(),
        ContainerKind::Sidecar => !c.is_started(),
        ContainerKind::Main | ContainerKind::Ephemeral => false,
    };
    let names = list(pod.containers.iter().filter(|c| c.removed.is_none()).filter(incomplete));
    match names {
        None => (true, "", Name::default()),
        Some(names) => (
            false,
            "ContainersNotInitialized",
            text(format_args!("containers with incomplete status: [{names}]")),
        ),
    }
}

/// Sidecars and main containers of the allocation; what is only desired is ignored (KEP-5972 "Readiness").
fn containers_ready(pod: &PodState, phase: PodPhase) -> (bool, &'static str, Name) {
    // An end that was forced on a pod that had not run says what it lacked (recording 15).
    let computed = super::phase::compute(pod, true);
    match phase {
        PodPhase::Succeeded => return (false, "PodCompleted", Name::default()),
        PodPhase::Failed if computed.is_terminal() => return (false, "PodFailed", Name::default()),
        PodPhase::Failed | PodPhase::Pending | PodPhase::Running => {}
    }
    let counted = |c: &&ContainerState| {
        c.removed.is_none() && matches!(c.kind, ContainerKind::Sidecar | ContainerKind::Main)
    };
    let unready = list(pod.containers.iter().filter(counted).filter(|c| !c.is_ready()));
    match unready {
        Some(names) => {
            (false, "ContainersNotReady", text(format_args!("containers with unready status: [{names}]")))
        }
        // Terminal is never ready, whatever is known (B12).
        None if phase.is_terminal() => (false, "PodFailed", Name::default()),
        None => (true, "", Name::default()),
    }
}

fn gates(pod: &PodState) -> (bool, &'static str, Name) {
    let unmet: Vec<&Name> =
        pod.pod.spec.readiness_gates.iter().filter(|g| !pod.gates_met.contains(g)).collect();
    match unmet.first() {
        None => (true, "", Name::default()),
        Some(gate) => {
            let message = text(format_args!(
                "corresponding condition of pod readiness gate \"{gate}\" does not exist."
            ));
            (false, "ReadinessGatesNotReady", message)
        }
    }
}

/// Names separated by spaces, as Go prints a list; `None` if there are none.
fn list<'a>(containers: impl Iterator<Item = &'a ContainerState>) -> Option<String> {
    let mut names = String::new();
    for container in containers {
        if !names.is_empty() {
            names.push(' ');
        }
        names.push_str(&container.name);
    }
    (!names.is_empty()).then_some(names)
}
