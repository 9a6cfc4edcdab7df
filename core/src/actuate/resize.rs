//! In-place resize: allocated against *actuated* resources (kubelet-pods §1.9), never against what is measured (B36).
//! Order: the pod's cgroup grows first, containers shrink, then grow, the pod's cgroup shrinks last.

use crate::allocate::charge;
use crate::command::{Action, Rule};
use crate::context::{Context, Why};
use crate::resources::{ResourceList, ResourceName, Resources};
use crate::state::{ContainerKind, ContainerState, InstancePhase, PodState};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Cpu requests up to this many millicores all mean the least shares there are (case 81).
const MINIMUM_SHARES_MILLICORES: u64 = 2;
/// Cpu limits up to this many millicores all mean the least quota there is.
const MINIMUM_QUOTA_MILLICORES: u64 = 10;

/// Which of a running container's resources the runtime is to be told: empty if what it has means the same.
pub fn changes(container: &ContainerState) -> Vec<ResourceName> {
    match &container.instance {
        Some(instance) => differences(&container.spec.resources, &instance.resources),
        None => Vec::new(),
    }
}

/// Resources whose wanted and actuated amounts don't mean the same to the kernel: of a container, or of the pod's cgroup
/// (case 81).
fn differences(want: &Resources, have: &Resources) -> Vec<ResourceName> {
    let mut changed = Vec::new();
    // Nearly always they are one list.
    if want == have {
        return changed;
    }
    let cpu = ResourceName::Cpu;
    let request = (want.requests.get(&cpu), have.requests.get(&cpu));
    let limit = (want.limits.get(&cpu), have.limits.get(&cpu));
    if differs(request, MINIMUM_SHARES_MILLICORES) || differs_limit(limit) {
        changed.push(cpu);
    }
    // A memory request alone makes no call.
    if want.limits.get(&ResourceName::Memory) != have.limits.get(&ResourceName::Memory) {
        changed.push(ResourceName::Memory);
    }
    changed
}

fn differs((want, have): (u64, u64), minimum: u64) -> bool {
    want != have && !(want <= minimum && have <= minimum)
}

/// No limit at all is not a small limit.
fn differs_limit((want, have): (u64, u64)) -> bool {
    want != have
        && !(want > 0 && have > 0 && want <= MINIMUM_QUOTA_MILLICORES && have <= MINIMUM_QUOTA_MILLICORES)
}

/// A changed resource's resizePolicy asks for a restart.
pub(crate) fn needs_restart(container: &ContainerState) -> bool {
    changes(container).iter().any(|name| container.spec.resize_restarts.contains(name))
}

/// Allocated and actuated are the same to the letter, and nothing is under way: there is no step to take.
fn is_settled(pod: &PodState, target: &Resources) -> bool {
    let as_allocated = |c: &ContainerState| {
        c.instance.as_ref().is_none_or(|i| i.resources == c.spec.resources && i.resizing.is_none())
    };
    pod.cgroup == *target
        && pod.cgroup_resizing.is_none()
        && pod.in_progress.is_none()
        && pod.containers.iter().all(as_allocated)
}

/// Takes the next step of a resize of an active pod.
pub(super) fn drive(pod: &mut PodState, ctx: &mut Context<'_>) {
    let Some(target) = pod.allocated.as_ref().map(|a| &a.cgroup) else { return };
    if is_settled(pod, target) {
        return;
    }
    let target = target.clone();
    let raised = larger_of(&pod.cgroup, &target);
    let differing: Vec<usize> =
        (0..pod.containers.len()).filter(|i| wants_resize(&pod.containers[*i])).collect();
    if pod.cgroup_resizing.is_some() {
        return;
    }
    if differing.is_empty() && differences(&target, &pod.cgroup).is_empty() {
        pod.cgroup = target;
        if adopt_equivalents(pod)
            && pod.containers.iter().any(|c| c.instance.is_none() && c.removed.is_none())
        {
            // A start may have waited for the room.
            ctx.follow_up();
        }
        return finish(pod, ctx);
    }
    if !differing.is_empty() && !differences(&raised, &pod.cgroup).is_empty() {
        return resize_pod(pod, raised, ctx);
    }
    let (shrinking, growing): (Vec<usize>, Vec<usize>) =
        differing.iter().copied().partition(|i| shrinks(&pod.containers[*i]));
    let step = if shrinking.is_empty() { growing } else { shrinking };
    for i in step {
        if has_room(pod, i) {
            resize_container(pod, i, ctx);
        }
    }
    if differing.is_empty() {
        resize_pod(pod, target, ctx);
    }
}

fn wants_resize(container: &ContainerState) -> bool {
    let settled = container
        .instance
        .as_ref()
        .is_some_and(|i| matches!(i.phase, InstancePhase::Running) && i.stop.is_none());
    let kind = matches!(container.kind, ContainerKind::Main | ContainerKind::Sidecar);
    settled
        && kind
        && container.removed.is_none()
        && !changes(container).is_empty()
        && !needs_restart(container)
}

/// Growth waits for the room that another container of the pod still holds: one that was removed, or can't be told to
/// shrink before its start has ended (S5).
fn has_room(pod: &PodState, i: usize) -> bool {
    let container = &pod.containers[i];
    let Some(instance) = &container.instance else { return true };
    let (want, have) = (&container.spec.resources.requests, &instance.resources.requests);
    let more = want.iter().map(|(name, amount)| (name, amount.saturating_sub(have.get(name))));
    charge::has_room(pod, more.filter(|(_, more)| *more > 0))
}

fn shrinks(container: &ContainerState) -> bool {
    let Some(instance) = &container.instance else { return false };
    let (want, have) = (&container.spec.resources.limits, &instance.resources.limits);
    [ResourceName::Cpu, ResourceName::Memory].iter().any(|name| want.get(name) < have.get(name))
}

fn larger_of(have: &Resources, want: &Resources) -> Resources {
    let mut raised = have.clone();
    raised.requests.raise_to(&want.requests);
    let mut limits = ResourceList::default();
    for (name, amount) in have.limits.iter() {
        // Losing a limit is growing.
        if let Some(wanted) = want.limits.given(name) {
            limits.set(name.clone(), (*amount).max(wanted));
        }
    }
    Resources { requests: raised.requests, limits }
}

fn resize_container(pod: &mut PodState, i: usize, ctx: &mut Context<'_>) {
    let uid = pod.pod.uid;
    let container = &mut pod.containers[i];
    let (Some(id), resources) = (container.instance_id(), container.spec.resources.clone()) else { return };
    let Some(instance) = &mut container.instance else { return };
    if instance.resizing.is_some() || !ctx.retry_due(&instance.resize_retry, Why::ResizeRetry) {
        return;
    }
    let action = Action::ResizeContainer { container: id, resources: resources.clone() };
    let op = ctx.command(uid, Rule::ResizeInPlace, action);
    instance.resizing = Some(Box::new((op, resources)));
}

fn resize_pod(pod: &mut PodState, resources: Resources, ctx: &mut Context<'_>) {
    let retry = pod.cgroup_retry.clone();
    if pod.sandbox.is_none() || !ctx.retry_due(&retry, Why::ResizeRetry) {
        return;
    }
    let op =
        ctx.command(pod.pod.uid, Rule::ResizeInPlace, Action::ResizePod { resources: resources.clone() });
    pod.cgroup_resizing = Some(Box::new((op, resources)));
}

/// Values that mean the same to the kernel count as acknowledged, so that the sums are right. Whether any did.
fn adopt_equivalents(pod: &mut PodState) -> bool {
    let mut adopted = false;
    for container in &mut pod.containers {
        let settled = container.removed.is_none() && changes(container).is_empty();
        let resources = container.spec.resources.clone();
        if let Some(instance) =
            container.instance.as_mut().filter(|i| settled && matches!(i.phase, InstancePhase::Running))
        {
            adopted |= instance.resources != resources;
            instance.resources = resources;
        }
    }
    pod.changed();
    adopted
}

/// Allocated and actuated agree: nothing is in progress any more, and this is told.
fn finish(pod: &mut PodState, ctx: &mut Context<'_>) {
    let waiting = pod.containers.iter().any(|c| {
        c.removed.is_none()
            && c.instance.is_some()
            && (!changes(c).is_empty() || c.instance.as_ref().is_some_and(|i| i.resizing.is_some()))
    });
    if waiting || pod.in_progress.is_none() {
        return;
    }
    pod.in_progress = None;
    pod.changed();
    ctx.tell(pod.pod.uid, false, "ResizeCompleted", "Pod resize completed".into(), None);
}
