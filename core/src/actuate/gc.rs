//! Dead containers (kubelet-pods §3.8) and the statuses of removed ones (KEP-5972): they go together.

use crate::command::{Action, Rule};
use crate::context::{Context, Why};
use crate::ids::ContainerId;
use crate::state::{ContainerState, PodState};
use crate::time::Time;
use alloc::vec::Vec;

/// Removes what need not be kept: of each name the newest dead container stays, of removed names the ten newest with
/// their statuses, and nothing once the pod goes.
pub(super) fn collect(pod: &mut PodState, ctx: &mut Context<'_>) {
    if !(pod.born == ctx.epoch || ctx.may_undo) {
        return;
    }
    if pod.containers.iter().all(|c| c.dead.is_empty() && c.removed.is_none()) {
        return;
    }
    let goes = pod.is_terminated() && (pod.object_gone || pod.pod.deletion.is_some());
    let kept = ctx.config.timing.removed_statuses_kept as usize;
    let surplus = surplus_statuses(pod, kept);
    let uid = pod.pod.uid;
    for (i, container) in pod.containers.iter_mut().enumerate().filter(|(_, c)| !c.dead.is_empty()) {
        // An end that was not shown yet is still in the record; the runtime's copy is not needed for it.
        let newest =
            if goes || surplus.contains(&i) { None } else { container.dead.last().map(|d| d.attempt) };
        let (name, incarnation) = (&container.name, container.incarnation);
        for dead in &mut container.dead {
            let keep = Some(dead.attempt) == newest || dead.removing.is_some();
            if !keep && ctx.retry_due(&dead.retry, Why::RemoveRetry) {
                let id = ContainerId { name: name.clone(), incarnation, attempt: dead.attempt };
                let action = Action::RemoveContainer { container: id };
                dead.removing = Some(ctx.command(uid, Rule::GarbageCollected, action));
            }
        }
    }
    forget_removed(pod, &surplus);
}

/// Removed, ended containers beyond those that are kept, oldest first, ties by name.
fn surplus_statuses(pod: &PodState, kept: usize) -> Vec<usize> {
    if pod.containers.iter().filter(|c| c.removed.is_some()).count() <= kept {
        return Vec::new();
    }
    let mut ended: Vec<(Time, &str, usize)> = pod
        .containers
        .iter()
        .enumerate()
        .filter(|(_, c)| c.removed.is_some() && c.instance.is_none())
        .map(|(i, c)| (c.last.as_ref().map_or(Time(0), |e| e.exit.finished_at), &*c.name, i))
        .collect();
    ended.sort();
    let excess = ended.len().saturating_sub(kept);
    ended.into_iter().take(excess).map(|(_, _, i)| i).collect()
}

/// Drops records of removed containers: those that never ran have nothing to show, those in surplus had their turn.
fn forget_removed(pod: &mut PodState, surplus: &[usize]) {
    let over = |i: usize, c: &ContainerState| {
        let nothing_left = c.instance.is_none() && c.dead.is_empty() && c.pulling.is_none();
        c.removed.is_some() && nothing_left && (c.last.is_none() || surplus.contains(&i))
    };
    if pod.containers.iter().all(|c| c.removed.is_none()) {
        return;
    }
    let mut floor = pod.incarnation_floor;
    let before = pod.containers.len();
    let mut i = 0;
    pod.containers.retain(|c| {
        let gone = over(i, c);
        i += 1;
        if gone {
            floor = floor.max(c.incarnation.saturating_add(1));
        }
        !gone
    });
    pod.incarnation_floor = floor;
    if pod.containers.len() < before {
        pod.changed();
    }
}
