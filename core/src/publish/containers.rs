//! Container statuses (kubelet-pods §4.2, §4.3; api-side §4.1). Evidence belongs to an instance: nothing of one is shown
//! for another (S14).

use crate::actuate::plan::{Seen, seen};
use crate::actuate::restart::{goes_on_after_a_final_end, restarts};
use crate::ids::{ContainerId, Name};
use crate::spec::{Container, Mounts};
use crate::state::{ContainerKind, ContainerState, Ended, InstancePhase, Lifecycle, PodState, Shared};
use crate::status::{ContainerState as Shown, ContainerStatus, Terminated};
use alloc::vec::Vec;

/// Main containers: those of the allocation, those that only desire has, then removed ones that are kept.
pub(super) fn main(pod: &PodState) -> Vec<ContainerStatus> {
    let mut statuses = of_kinds(pod, &[ContainerKind::Main]);
    // Nothing is allocated once the pod ends: the rows are dropped, not failed (kubelet-pods §7.3).
    if pod.is_active() {
        for desired in &pod.pod.spec.containers {
            if statuses.iter().all(|s| s.name != desired.name) {
                statuses.push(unallocated(desired));
            }
        }
    }
    for container in pod.containers.iter().filter(|c| c.removed.is_some()) {
        if container.instance.is_none() && container.last.is_none() {
            continue;
        }
        let status = of(pod, container);
        match statuses.iter_mut().find(|s| s.name == container.name) {
            // One row per name: the old life while it lives, the new one after.
            Some(row) if container.instance.is_some() => *row = status,
            Some(_) => {}
            None => statuses.push(status),
        }
    }
    statuses
}

/// Allocated containers of these kinds in the order of the spec.
pub(super) fn of_kinds(pod: &PodState, kinds: &[ContainerKind]) -> Vec<ContainerStatus> {
    let shown = || pod.containers.iter().filter(|c| c.removed.is_none() && kinds.contains(&c.kind));
    let mut statuses = Vec::with_capacity(shown().count());
    statuses.extend(shown().map(|c| of(pod, c)));
    statuses
}

/// KEP-5972: added, and not allocated.
fn unallocated(desired: &crate::spec::Container) -> ContainerStatus {
    ContainerStatus {
        name: desired.name.clone(),
        id: None,
        state: Shown::Waiting {
            reason: "Unallocated".into(),
            message: "Container addition pending node allocation".into(),
        },
        last_state: None,
        ready: false,
        started: false,
        restart_count: 0,
        image: desired.image.clone(),
        image_id: Name::default(),
        allocated_resources: Default::default(),
        resources: Default::default(),
        mounts: Mounts::None,
    }
}

fn of(pod: &PodState, container: &ContainerState) -> ContainerStatus {
    let (state, last_state) = states(pod, container);
    let instance = container.instance.as_ref();
    let shows_end = matches!(state, Shown::Terminated(_));
    let ended = container.last.as_ref().filter(|_| shows_end || instance.is_none());
    let of_life = |spec: &Shared<Container>, image_id: &Name| {
        (spec.image.clone(), image_id.clone(), Mounts::Of(spec.arc().clone()))
    };
    let (image, image_id, mounts) = match (ended, instance) {
        (Some(ended), _) => of_life(&ended.spec, &ended.image_id),
        (None, Some(instance)) => of_life(&instance.spec, &instance.image_id),
        (None, None) => (container.spec.image.clone(), Name::default(), Mounts::None),
    };
    let completed =
        container.kind == ContainerKind::Init && matches!(&state, Shown::Terminated(t) if t.exit_code == 0);
    let id = match &state {
        Shown::Terminated(terminated) => terminated.id.clone(),
        Shown::Running { .. } => container.instance_id(),
        Shown::Waiting { .. } => None,
    };
    ContainerStatus {
        name: container.name.clone(),
        id,
        ready: completed || (!shows_end && container.is_ready() && container.kind != ContainerKind::Init),
        started: !shows_end && container.is_started(),
        restart_count: container.restarts,
        image,
        image_id,
        allocated_resources: container.spec.resources.requests.clone(),
        resources: instance.map_or_else(|| container.spec.resources.clone(), |i| i.resources.clone()),
        mounts,
        state,
        last_state,
    }
}

/// `state` and `lastState`.
fn states(pod: &PodState, container: &ContainerState) -> (Shown, Option<Terminated>) {
    let running = container.instance.as_ref().and_then(|instance| match instance.phase {
        InstancePhase::Running | InstancePhase::Unknown | InstancePhase::Lost => instance.started_at,
        InstancePhase::Creating { .. }
        | InstancePhase::Created
        | InstancePhase::Starting { .. }
        | InstancePhase::Discarding { .. } => None,
    });
    let last = container.last.as_ref().map(|e| terminated(container, e));
    let previous = || container.previous.as_ref().map(|e| terminated(container, e));
    if let Some(started_at) = running {
        return (Shown::Running { started_at }, last);
    }
    // What failed is what it waits for only if it is to run again (B22).
    let is_over = matches!(seen(pod, container), Seen::Exited(_))
        && container.last.as_ref().is_some_and(|e| !restarts(container, pod.spec().restart_policy, e));
    let waits = pod.is_active() && container.removed.is_none() && !is_over;
    // Shown as `state`, an API server would never let it go on (api-side S41), and refuse each status from then on.
    let goes_on = waits
        && container
            .last
            .as_ref()
            .is_some_and(|e| goes_on_after_a_final_end(container, pod.spec().restart_policy, e));
    match (last, container.start_failure.as_deref()) {
        (last, None) if goes_on => {
            (Shown::Waiting { reason: default_reason(pod), message: Name::default() }, last)
        }
        // Every other end is shown as `state` once, before it moves on.
        (Some(last), _) if !container.end_shown && !goes_on => (Shown::Terminated(last), previous()),
        (last, Some((reason, message))) if waits => {
            (Shown::Waiting { reason: reason.clone(), message: message.clone() }, last)
        }
        (Some(last), _) => (Shown::Terminated(last), previous()),
        (None, _) if nobody_saw_it_run(pod, container) => (Shown::Terminated(unseen(container)), None),
        (None, _) => (Shown::Waiting { reason: default_reason(pod), message: Name::default() }, None),
    }
}

fn default_reason(pod: &PodState) -> Name {
    let has_init =
        pod.containers.iter().any(|c| matches!(c.kind, ContainerKind::Init | ContainerKind::Sidecar));
    if has_init { "PodInitializing".into() } else { "ContainerCreating".into() }
}

fn terminated(container: &ContainerState, ended: &Ended) -> Terminated {
    Terminated {
        id: Some(container.id(ended.attempt)),
        exit_code: ended.exit.code,
        signal: ended.exit.signal.unwrap_or(0),
        reason: ended.exit.reason.clone(),
        message: ended.message.clone(),
        started_at: ended.exit.started_at,
        finished_at: Some(ended.exit.finished_at),
    }
}

/// When a pod has ended, a container that nobody saw end counts as failed, never as succeeded (TerminatePod, cases 100
/// to 103): main containers if initialization was done, init containers up to the last one that ever ran.
fn nobody_saw_it_run(pod: &PodState, container: &ContainerState) -> bool {
    if !matches!(pod.lifecycle, Lifecycle::Terminated) || container.removed.is_some() {
        return false;
    }
    let inits: Vec<&ContainerState> = pod
        .containers
        .iter()
        .filter(|c| c.removed.is_none() && matches!(c.kind, ContainerKind::Init | ContainerKind::Sidecar))
        .collect();
    let last_that_ran = inits.iter().rposition(|c| c.last.is_some());
    match container.kind {
        ContainerKind::Init | ContainerKind::Sidecar => {
            let mine = inits.iter().position(|c| c.name == container.name);
            mine.is_some_and(|mine| mine <= last_that_ran.unwrap_or(0))
        }
        ContainerKind::Main => {
            let main_ran = pod.indices(ContainerKind::Main).any(|i| pod.containers[i].last.is_some());
            let last_done = inits.last().is_none_or(|c| c.last.as_ref().is_some_and(|e| e.exit.code == 0));
            main_ran || last_done
        }
        ContainerKind::Ephemeral => true,
    }
}

fn unseen(container: &ContainerState) -> Terminated {
    let id: Option<ContainerId> = container.instance_id();
    Terminated {
        id,
        exit_code: 137,
        signal: 0,
        reason: "ContainerStatusUnknown".into(),
        message: "The container could not be located when the pod was terminated".into(),
        started_at: None,
        finished_at: None,
    }
}
