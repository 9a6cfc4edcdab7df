//! The scan of init containers and sidecars, from the last one backwards (kubelet-pods §2.4, cases 52 to 74).

use super::plan::{RunningRow, Seen, running_row, seen};
use super::restart;
use crate::command::Rule;
use crate::spec::RestartPolicy;
use crate::state::{ContainerKind, ContainerState, PodState};
use alloc::vec::Vec;

/// What the scan found.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Initialization is done: main containers count.
    pub(super) initialized: bool,
    /// An init container failed for good.
    pub(super) failed: bool,
    /// What to start, in the order of the spec.
    pub(super) start: Vec<(usize, Rule)>,
    /// What to stop.
    pub(super) stop: Vec<(usize, Rule)>,
}

pub(super) fn scan(pod: &PodState) -> Scan {
    let inits: Vec<usize> = (0..pod.containers.len())
        .filter(|i| {
            let c = &pod.containers[*i];
            c.removed.is_none() && matches!(c.kind, ContainerKind::Init | ContainerKind::Sidecar)
        })
        .collect();
    let mut found = Scan { initialized: inits.is_empty() || initialized_before(pod), ..Scan::default() };
    // Everything before the first one (from the end) that has a status counts as initialized.
    let mut passed = found.initialized;
    for (position, &i) in inits.iter().enumerate().rev() {
        let container = &pod.containers[i];
        let status = seen(pod, container);
        if status == Seen::Nothing {
            if passed && container.kind == ContainerKind::Sidecar {
                found.start.push((i, Rule::SidecarNeeded));
            }
            continue;
        }
        let next = inits.get(position + 1).copied();
        match container.kind {
            ContainerKind::Init if passed => {}
            ContainerKind::Init => plain(pod, container, i, status, next, &mut found),
            ContainerKind::Sidecar | ContainerKind::Main | ContainerKind::Ephemeral => {
                sidecar(pod, container, i, status, next, passed, &mut found);
            }
        }
        passed = true;
    }
    if !passed && let Some(&first) = inits.first() {
        found.start.push((first, rule_of(&pod.containers[first])));
    }
    found.start.reverse();
    found
}

/// A remembered fact of this sandbox, or proven by a main container that is made or runs (an ended one proves nothing:
/// it may stem from an older sandbox, B23).
fn initialized_before(pod: &PodState) -> bool {
    let current = pod.ready_sandbox();
    (pod.initialized_in.is_some() && pod.initialized_in == current)
        || pod.indices(ContainerKind::Main).any(|i| match seen(pod, &pod.containers[i]) {
            Seen::Created | Seen::Running | Seen::InFlight => true,
            Seen::Nothing | Seen::Exited(_) | Seen::Lost => false,
        })
}

fn rule_of(container: &ContainerState) -> Rule {
    match container.kind {
        ContainerKind::Sidecar => Rule::SidecarNeeded,
        ContainerKind::Init | ContainerKind::Main | ContainerKind::Ephemeral => Rule::InitNext,
    }
}

/// The next one after a finished or started container; without one, initialization is done.
fn advance(pod: &PodState, next: Option<usize>, found: &mut Scan) {
    match next {
        None => found.initialized = true,
        Some(next) => found.start.push((next, rule_of(&pod.containers[next]))),
    }
}

/// Rows of a plain init container that is not yet behind us.
fn plain(
    pod: &PodState,
    container: &ContainerState,
    i: usize,
    status: Seen,
    next: Option<usize>,
    found: &mut Scan,
) {
    let policy = container.spec.restart_policy.unwrap_or(pod.spec().restart_policy);
    match status {
        Seen::Nothing | Seen::InFlight | Seen::Running => {}
        Seen::Created => found.start.push((i, Rule::InitNext)),
        // One that the runtime had lost and that was stopped is run again, whatever its code (case 57).
        Seen::Exited(0) if container.last.as_ref().is_none_or(|ended| ended.why.is_none()) => {
            advance(pod, next, found);
        }
        Seen::Exited(_) => {
            let again = container
                .last
                .as_ref()
                .is_some_and(|ended| restart::restarts(container, pod.spec().restart_policy, ended));
            if again {
                found.start.push((i, Rule::InitNext));
            } else {
                found.failed = true;
            }
        }
        Seen::Lost => {
            if policy == RestartPolicy::Never {
                found.failed = true;
            } else {
                found.stop.push((i, Rule::RuntimeUnknown));
                found.start.push((i, Rule::InitNext));
            }
        }
    }
}

/// Rows of a sidecar. The same before and after initialization, but for the step to the next.
fn sidecar(
    pod: &PodState,
    container: &ContainerState,
    i: usize,
    status: Seen,
    next: Option<usize>,
    passed: bool,
    found: &mut Scan,
) {
    match status {
        Seen::Nothing | Seen::InFlight => {}
        Seen::Created | Seen::Exited(_) => found.start.push((i, Rule::SidecarNeeded)),
        Seen::Lost => {
            found.stop.push((i, Rule::RuntimeUnknown));
            found.start.push((i, Rule::SidecarNeeded));
        }
        Seen::Running => {
            if container.is_started() && !passed {
                advance(pod, next, found);
            }
            match running_row(pod, container) {
                RunningRow::Keep => {}
                RunningRow::Redefined(why) | RunningRow::ProbeFailed(why) => {
                    found.stop.push((i, why));
                    found.start.push((i, why));
                }
            }
        }
    }
}
