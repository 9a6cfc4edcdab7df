//! The pod's phase (kubelet-pods §4.1), over the allocated containers: a desired container that is not allocated never
//! counts, or the pod would fall back to Pending and the API would refuse even the undo (§7.1).

use crate::actuate::restart;
use crate::spec::TerminalPhase;
use crate::state::{ContainerKind, ContainerState, Ended, InstancePhase, Lifecycle, PodState};
use crate::status::PodPhase;

/// The phase to show now. A terminal one is shown only once nothing runs any more, and never changes (S8, S10).
pub(crate) fn shown(pod: &PodState) -> PodPhase {
    match (&pod.lifecycle, pod.terminal) {
        (Lifecycle::Terminated, Some(terminal)) => crate::actuate::phase_of(terminal),
        (Lifecycle::Terminated | Lifecycle::Waiting | Lifecycle::Active | Lifecycle::Terminating(_), _) => {
            let phase = compute(pod, false);
            match phase {
                PodPhase::Succeeded | PodPhase::Failed => PodPhase::Running,
                // A pod that has been Running never shows Pending again (DESIGN §4 rule 8).
                PodPhase::Pending if pod.ever_ran => PodPhase::Running,
                PodPhase::Pending | PodPhase::Running => phase,
            }
        }
    }
}

/// The phase that a pod ends with: success only if every container is known to have succeeded (B10).
pub(crate) fn at_end(pod: &PodState) -> TerminalPhase {
    match compute(pod, true) {
        PodPhase::Succeeded => TerminalPhase::Succeeded,
        PodPhase::Failed | PodPhase::Pending | PodPhase::Running => TerminalPhase::Failed,
    }
}

/// One container as the count sees it.
enum Look<'a> {
    /// Never ran.
    Waiting,
    /// Runs.
    Running,
    /// Ran, and does not run now.
    Stopped(&'a Ended),
}

fn look(container: &ContainerState) -> Look<'_> {
    match (&container.instance, &container.last) {
        (Some(instance), _) if runs(&instance.phase, instance.started_at.is_some()) => Look::Running,
        (_, Some(ended)) => Look::Stopped(ended),
        (_, None) => Look::Waiting,
    }
}

fn runs(phase: &InstancePhase, started: bool) -> bool {
    match phase {
        InstancePhase::Running => true,
        InstancePhase::Unknown | InstancePhase::Lost => started,
        InstancePhase::Creating { .. }
        | InstancePhase::Created
        | InstancePhase::Starting { .. }
        | InstancePhase::Discarding { .. } => false,
    }
}

/// The count and its table. `ending`: nothing will be started any more.
pub fn compute(pod: &PodState, ending: bool) -> PodPhase {
    let policy = pod.spec().restart_policy;
    let (mut pending_init, mut failed_init) = (false, false);
    let inits = pod.indices(ContainerKind::Init).chain(pod.indices(ContainerKind::Sidecar));
    for i in inits {
        let container = &pod.containers[i];
        match (container.kind, look(container)) {
            (ContainerKind::Sidecar, Look::Running) => pending_init |= !container.is_started(),
            (ContainerKind::Sidecar, Look::Waiting) => pending_init = true,
            // A sidecar that ended says nothing (cases 97, 98).
            (ContainerKind::Sidecar, Look::Stopped(_)) => {}
            (_, Look::Running | Look::Waiting) => pending_init |= container.completed_in.is_none(),
            (_, Look::Stopped(ended)) if ended.exit.code == 0 => {}
            (_, Look::Stopped(ended)) => {
                if restart::restarts(container, policy, ended) {
                    pending_init = true;
                } else {
                    failed_init = true;
                }
            }
        }
    }
    let (mut running, mut waiting, mut stopped, mut succeeded, mut restartable) = (0, 0, 0, 0, false);
    for i in pod.indices(ContainerKind::Main) {
        let container = &pod.containers[i];
        match look(container) {
            Look::Waiting => waiting += 1,
            Look::Running => running += 1,
            Look::Stopped(ended) => {
                stopped += 1;
                succeeded += usize::from(ended.exit.code == 0);
                restartable |= restart::restarts(container, policy, ended);
            }
        }
    }
    let main_started = pod.indices(ContainerKind::Main).any(|i| pod.containers[i].ever_started);
    if failed_init {
        return PodPhase::Failed;
    }
    if (pending_init && !main_started) || waiting > 0 {
        return PodPhase::Pending;
    }
    match (running > 0, stopped > 0) {
        (true, _) => PodPhase::Running,
        (false, true) if ending => of_ends(succeeded == stopped),
        (false, true) if restartable => PodPhase::Running,
        (false, true) => of_ends(succeeded == stopped),
        (false, false) => PodPhase::Pending,
    }
}

fn of_ends(all_succeeded: bool) -> PodPhase {
    if all_succeeded { PodPhase::Succeeded } else { PodPhase::Failed }
}
