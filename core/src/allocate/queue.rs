//! The order in which pods that want allocation are tried (DESIGN §4 rule 1): those that do not ask for more first, then
//! by priority, then Guaranteed, then the one that waits longest, then by UID.

use super::pod_requests;
use crate::ids::PodUid;
use crate::node::State;
use crate::resources::{QosClass, ResourceName};
use crate::spec::PodSpec;
use crate::state::PodState;
use crate::time::Time;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// Pods in the order they are tried.
pub(crate) fn ordered(state: &State, pods: impl Iterator<Item = PodUid>) -> Vec<PodUid> {
    let mut keyed: Vec<_> = pods.filter_map(|uid| state.pods.get(&uid).map(|pod| (rank(pod), uid))).collect();
    keyed.sort();
    keyed.into_iter().map(|(_, uid)| uid).collect()
}

/// Smaller is tried first. A total order, which the kubelet's own comparison is not (kubelet-pods §1.6).
pub fn rank(pod: &PodState) -> (bool, Reverse<i32>, bool, Option<Time>, bool) {
    let desired = &pod.pod.spec;
    let increases = pod.allocated.as_ref().is_some_and(|a| increases(&a.spec, desired));
    let since = pod.pending.as_ref().map(|p| p.since);
    // No condition yet sorts last.
    (
        increases,
        Reverse(desired.priority),
        desired.qos != QosClass::Guaranteed,
        since.or(Some(Time(u64::MAX))),
        since.is_none(),
    )
}

/// The desired spec asks for more cpu or memory in sum than the allocated one (cases 24, 25).
pub fn increases(allocated: &PodSpec, desired: &PodSpec) -> bool {
    let (before, after) = (pod_requests(allocated), pod_requests(desired));
    [ResourceName::Cpu, ResourceName::Memory].iter().any(|name| after.get(name) > before.get(name))
}
