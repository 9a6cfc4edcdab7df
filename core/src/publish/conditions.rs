//! Conditions (kubelet-pods §1.8, §4.4; api-side §4.3).

use crate::allocate::preempt::PREEMPTED;
use crate::context::sentence;
use crate::ids::Word;
use crate::state::{ContainerKind, ContainerState, PendingKind, PodState};
use crate::status::{Condition, ConditionKind, PodPhase};
use crate::time::Time;
use alloc::string::String;
use alloc::vec::Vec;

/// Conditions that every pod has.
const USUAL: usize = 5;

pub(super) fn derive(pod: &PodState, phase: PodPhase, now: Time) -> Vec<Condition> {
    let mut conditions = Vec::with_capacity(USUAL);
    let generation = pod.pod.generation;
    let mut push = |kind, status, reason: &'static str, message: Word, observed_generation| {
        let last_transition = last_transition(pod, kind, status, now);
        let reason = reason.into();
        conditions.push(Condition { kind, status, reason, message, last_transition, observed_generation });
    };
    if let Some(pending) = &pod.pending {
        let reason = match pending.kind {
            PendingKind::Deferred => "Deferred",
            PendingKind::Infeasible => "Infeasible",
        };
        let message = Word::from(&pending.message);
        push(ConditionKind::PodResizePending, true, reason, message, pending.generation);
    }
    if let Some(progress) = &pod.in_progress {
        let reason = if progress.error.is_some() { "Error" } else { "" };
        let message = progress.error.as_ref().map(Word::from).unwrap_or_default();
        push(ConditionKind::PodResizeInProgress, true, reason, message, progress.generation);
    }
    if pod.restarting_all.is_some() {
        push(ConditionKind::AllContainersRestarting, true, "", Word::default(), generation);
    }
    let disruption = pod.end_reason.as_ref().and_then(|end| match &*end.0 {
        "Evicted" => Some(Word::from(&end.1)),
        PREEMPTED => Some(Word::from("Pod was preempted by Kubelet to accommodate a critical pod.")),
        _ => None,
    });
    if let Some(message) = disruption {
        push(ConditionKind::DisruptionTarget, true, "TerminationByKubelet", message, generation);
    }
    let ready_to_start = pod.ready_sandbox().is_some()
        && (pod.spec().host_network || pod.sandbox.as_ref().is_some_and(|s| s.ip.is_some()));
    push(ConditionKind::PodReadyToStartContainers, ready_to_start, "", Word::default(), generation);
    let (initialized, reason, message) = initialized(pod, phase);
    push(ConditionKind::Initialized, initialized, reason, message, generation);
    let (containers_ready, reason, message) = containers_ready(pod, phase);
    let (ready, ready_reason, ready_message) =
        if containers_ready { gates(pod) } else { (false, reason, message.clone()) };
    push(ConditionKind::Ready, ready, ready_reason, ready_message, generation);
    push(ConditionKind::ContainersReady, containers_ready, reason, message, generation);
    push(ConditionKind::PodScheduled, true, "", Word::default(), generation);
    conditions
}

/// `lastTransitionTime` moves only when `status` does.
fn last_transition(pod: &PodState, kind: ConditionKind, status: bool, now: Time) -> Time {
    let before = pod.publication.current.as_ref();
    match before.and_then(|shown| shown.conditions.iter().find(|(k, ..)| *k == kind)) {
        Some((_, was, since)) if *was == status => *since,
        Some(_) | None => now.whole_seconds(),
    }
}

fn initialized(pod: &PodState, phase: PodPhase) -> (bool, &'static str, Word) {
    if phase == PodPhase::Succeeded {
        return (true, "PodCompleted", Word::default());
    }
    let main_started = pod.indices(ContainerKind::Main).any(|i| pod.containers[i].ever_started);
    if pod.initialized || main_started {
        return (true, "", Word::default());
    }
    let incomplete = |c: &&ContainerState| match c.kind {
        ContainerKind::Init => c.completed_in.is_none(),
        ContainerKind::Sidecar => !c.is_started(),
        ContainerKind::Main | ContainerKind::Ephemeral => false,
    };
    let allocated = pod.containers.iter().filter(|c| c.removed.is_none());
    match list("containers with incomplete status:", allocated.filter(incomplete)) {
        None => (true, "", Word::default()),
        Some(message) => (false, "ContainersNotInitialized", message),
    }
}

/// Sidecars and main containers of the allocation; what is only desired is ignored (KEP-5972 "Readiness").
fn containers_ready(pod: &PodState, phase: PodPhase) -> (bool, &'static str, Word) {
    match phase {
        PodPhase::Succeeded => return (false, "PodCompleted", Word::default()),
        // An end that was forced on a pod that had not run says what it lacked (recording 15).
        PodPhase::Failed if super::phase::compute(pod, true).is_terminal() => {
            return (false, "PodFailed", Word::default());
        }
        PodPhase::Failed | PodPhase::Pending | PodPhase::Running => {}
    }
    let counted = |c: &&ContainerState| {
        c.removed.is_none() && matches!(c.kind, ContainerKind::Sidecar | ContainerKind::Main)
    };
    let unready = pod.containers.iter().filter(counted).filter(|c| !c.is_ready());
    match list("containers with unready status:", unready) {
        Some(message) => (false, "ContainersNotReady", message),
        // Terminal is never ready, whatever is known (B12).
        None if phase.is_terminal() => (false, "PodFailed", Word::default()),
        None => (true, "", Word::default()),
    }
}

fn gates(pod: &PodState) -> (bool, &'static str, Word) {
    let unmet = pod.pod.spec.readiness_gates.iter().find(|g| !pod.gates_met.contains(g));
    match unmet {
        None => (true, "", Word::default()),
        Some(gate) => {
            let message = sentence(format_args!(
                "corresponding condition of pod readiness gate \"{gate}\" does not exist."
            ));
            (false, "ReadinessGatesNotReady", message)
        }
    }
}

/// What is said of these containers: names separated by spaces, as Go prints a list; `None` if there are none.
fn list<'a>(what: &str, mut containers: impl Iterator<Item = &'a ContainerState>) -> Option<Word> {
    let first = containers.next()?;
    let mut text = String::with_capacity(64);
    text.push_str(what);
    text.push_str(" [");
    text.push_str(&first.name);
    for container in containers {
        text.push(' ');
        text.push_str(&container.name);
    }
    text.push(']');
    Some(text.into())
}
