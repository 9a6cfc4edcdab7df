//! What a pod takes of the node: the larger of its allocated and its actuated sum, containers that were removed and may
//! still run included in the latter (S5). A pod that was never admitted, or has ended, takes nothing (B3, B4, B5).

use crate::ids::PodUid;
use crate::node::State;
use crate::resources::{ResourceList, ResourceName};
use crate::state::{Allocation, ContainerKind, ContainerState, Lifecycle, PodState};
use alloc::sync::Arc;

/// The pod's charge as its state has it now.
pub fn of(pod: &PodState) -> ResourceList {
    match (&pod.lifecycle, &pod.allocated) {
        (Lifecycle::Waiting | Lifecycle::Terminated, _) | (_, None) => ResourceList::default(),
        (Lifecycle::Active | Lifecycle::Terminating(_), Some(allocated)) => {
            if holds_what_is_allocated(pod, allocated) {
                allocated.charge.clone()
            } else {
                raised(pod, allocated)
            }
        }
    }
}

/// What is allocated, and more where its containers hold more. It is one pod, whatever a container asks of those.
fn raised(pod: &PodState, allocated: &Allocation) -> ResourceList {
    let mut charge = allocated.charge.clone();
    charge.raise_to(&actuated(pod));
    charge.set(ResourceName::Pods, 1);
    charge
}

/// Each container that runs is allocated, and holds what the allocation says: then they hold no more together than the sum
/// that was taken when it was allocated, unless the pod's own resources took the place of that sum.
fn holds_what_is_allocated(pod: &PodState, allocated: &Allocation) -> bool {
    let as_allocated = |c: &ContainerState| {
        c.instance.as_ref().is_none_or(|i| c.removed.is_none() && i.resources == c.spec.resources)
    };
    let holds = allocated.spec.resources.is_none() && pod.containers.iter().all(as_allocated);
    debug_assert!(
        !holds || raised(pod, allocated) == allocated.charge,
        "the containers of {} hold more than the sum that is allocated",
        pod.pod.uid
    );
    holds
}

/// What it would be charged if its desired spec were allocated, of the resources that it would then be charged more of.
/// What still runs counts until it has stopped.
pub fn grown(pod: &PodState) -> ResourceList {
    let mut wanted = super::pod_requests(&pod.pod.spec);
    wanted.raise_to(&actuated(pod));
    let grows = wanted.iter().filter(|(name, amount)| *amount > pod.charge.get(name)).cloned();
    ResourceList::from_pairs(grows)
}

/// What its containers hold now, as the runtime acknowledged it.
pub fn actuated(pod: &PodState) -> ResourceList {
    let mut sum = ResourceList::default();
    for container in &pod.containers {
        match container.kind {
            // An init container's peak is in the allocated sum already, and no two plain ones run together.
            ContainerKind::Init | ContainerKind::Ephemeral => {}
            ContainerKind::Sidecar | ContainerKind::Main => {
                if let Some(instance) = &container.instance {
                    sum.add(&instance.resources.requests);
                }
            }
        }
    }
    if let Some(spec) = &pod.allocated {
        sum.add(&spec.spec.overhead);
    }
    sum
}

/// What the pod's containers hold now and this much more fit into what is allocated to it, for each resource that is named.
pub(crate) fn has_room<'a>(pod: &PodState, more: impl IntoIterator<Item = (&'a ResourceName, u64)>) -> bool {
    let Some(allocated) = &pod.allocated else { return true };
    let held = actuated(pod);
    more.into_iter().all(|(name, more)| held.get(name).saturating_add(more) <= allocated.requests.get(name))
}

/// Brings the node's sum up to date with the pod. Room that was freed is used in the next event, which is due now.
pub(crate) fn refresh(state: &mut State, uid: PodUid) {
    let Some(pod) = state.pods.get_mut(&uid) else { return };
    if is_current(pod) {
        return;
    }
    if renew(Arc::make_mut(pod), &mut state.charged) {
        use_freed(state);
    }
}

/// Nothing changed that the pod's charge is derived from.
pub(crate) fn is_current(pod: &PodState) -> bool {
    debug_assert!(
        pod.charge_stale || of(pod) == pod.charge,
        "a change of {} was not noted: it would be charged otherwise",
        pod.pod.uid
    );
    !pod.charge_stale
}

/// Charges the pod what it takes now. True if room was freed.
pub(crate) fn renew(pod: &mut PodState, charged: &mut ResourceList) -> bool {
    pod.charge_stale = false;
    let fresh = of(pod);
    if fresh == pod.charge {
        return false;
    }
    let stale = core::mem::replace(&mut pod.charge, fresh);
    charged.subtract(&stale);
    charged.add(&pod.charge);
    stale.iter().any(|(name, amount)| pod.charge.get(name) < *amount)
}

/// Room was freed: whoever waits for it is tried in the next event, which is due now.
pub(crate) fn use_freed(state: &mut State) {
    if !(state.queue.is_empty() && state.preemptors.is_empty()) {
        let now = state.now;
        state.wake_allocator(now, crate::context::Why::CapacityFreed);
    }
}
