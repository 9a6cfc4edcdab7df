//! Room for a critical pod: when nothing else keeps it out, pods that matter less are ended, as few as will do
//! (kubelet-pods §1.4). Chooses and begins; the stop itself is `actuate`'s, and the room is used when it is there.

use super::{admit, charge};
use crate::command::Commands;
use crate::context::{Touched, text};
use crate::ids::{Name, PodUid, Source};
use crate::node::State;
use crate::resources::{QosClass, ResourceList, ResourceName};
use crate::spec::Pod;
use crate::state::{Lifecycle, PodState, TerminationCause};
use crate::time::Nanos;
use alloc::vec::Vec;

/// Priority from which a pod is critical: that of `system-cluster-critical`.
pub(crate) const CRITICAL_PRIORITY: i32 = 2_000_000_000;

/// `status.reason` of a pod that had to go.
pub(crate) const PREEMPTED: &str = "Preempting";
const MESSAGE: &str = "Preempted in order to admit critical pod";

/// The node itself depends on it: static, or of a system priority.
pub(crate) fn is_critical(pod: &Pod) -> bool {
    pod.source == Source::File || pod.spec.priority >= CRITICAL_PRIORITY
}

/// `victim` may be ended for `critical`'s sake. A static pod without a priority is nobody's victim.
fn may_displace(critical: &Pod, victim: &Pod) -> bool {
    !is_critical(victim) || (victim.spec.priority != 0 && critical.spec.priority > victim.spec.priority)
}

/// What the pod wants beyond what it is charged: all of it before admission, its growth after.
fn claim(pod: &PodState) -> ResourceList {
    let mut wanted = charge::grown(pod);
    wanted.set(ResourceName::Pods, 1);
    wanted.subtract(&pod.charge);
    wanted
}

/// What is set aside for critical pods other than this one, whose room is being made: nobody else gets it meanwhile, just
/// as a kubelet admits nobody while it preempts.
pub(crate) fn claimed_by_others(state: &State, uid: PodUid) -> ResourceList {
    let mut sum = ResourceList::default();
    let others = state.preemptors.iter().filter(|other| **other != uid);
    others.filter_map(|other| state.pods.get(other)).for_each(|pod| sum.add(&claim(pod)));
    sum
}

/// Makes room for a critical pod that does not fit, or finds it in the making: what is ending anyway counts first. The
/// pod is tried again whenever something has ended. `Err`: ending all it may displace would not be enough; nobody is
/// ended then.
pub(crate) fn make_room(
    state: &mut State,
    uid: PodUid,
    touched: &mut Touched,
    out: &mut Commands,
) -> Result<(), Name> {
    let victims = victims(state, uid)?;
    state.preemptors.insert(uid);
    for victim in victims {
        end(state, victim, touched, out);
    }
    Ok(())
}

/// The pod is in, or out of the question: its claim ends. What it no longer holds back others may have.
pub(crate) fn withdraw(state: &mut State, uid: PodUid) {
    if state.preemptors.remove(&uid) && !(state.queue.is_empty() && state.preemptors.is_empty()) {
        let now = state.now;
        state.wake_allocator(now, crate::context::Why::CapacityFreed);
    }
}

/// Critical pods that wait for room, the most important first, then the oldest.
pub(crate) fn waiting(state: &State) -> Vec<PodUid> {
    let rank = |pod: &PodState| (core::cmp::Reverse(pod.pod.spec.priority), pod.pod.created_at);
    let mut waiting: Vec<_> =
        state.preemptors.iter().filter_map(|uid| state.pods.get(uid).map(|pod| (rank(pod), *uid))).collect();
    waiting.sort();
    waiting.into_iter().map(|(_, uid)| uid).collect()
}

fn end(state: &mut State, uid: PodUid, touched: &mut Touched, out: &mut Commands) {
    let now = state.now;
    let Some(pod) = state.pod_mut(uid) else { return };
    crate::observe::fail_with(pod, PREEMPTED, MESSAGE.into());
    let deadline = now.after(pod.termination_grace().max(Nanos::secs(1)));
    crate::observe::terminate(pod, TerminationCause::Preempted, now, deadline, out);
    state.queue.remove(&uid);
    touched.add(uid);
    super::tell(state, out, uid, true, PREEMPTED.into(), MESSAGE.into());
}

/// How much of what is missing.
type Missing = Vec<(ResourceName, u64)>;

/// Pods to end for this one: of Guaranteed ones as few as possible, then of Burstable ones, then of BestEffort ones.
fn victims(state: &State, uid: PodUid) -> Result<Vec<PodUid>, Name> {
    let Some(critical) = state.pods.get(&uid) else { return Ok(Vec::new()) };
    let ending = |pod: &&PodState| matches!(pod.lifecycle, Lifecycle::Terminating(_)) && pod.pod.uid != uid;
    let mut coming = ResourceList::default();
    state.pods.values().map(|pod| &**pod).filter(ending).for_each(|pod| coming.add(&pod.charge));
    let counted = |short: &admit::Shortage| {
        critical.charge.given(&short.resource).is_none() || short.resource != ResourceName::Pods
    };
    let missing: Missing = admit::shortages(state, critical, &charge::grown(critical))
        .filter(counted)
        .map(|short| {
            let beyond = short.wanted.saturating_add(short.used).saturating_sub(short.capacity);
            let amount = beyond.saturating_sub(coming.get(&short.resource));
            (short.resource, amount)
        })
        .filter(|(_, amount)| *amount > 0)
        .collect();
    let of_class = |class: QosClass| -> Vec<&PodState> {
        let displaceable = |pod: &&PodState| {
            pod.is_active()
                && pod.pod.uid != uid
                && may_displace(&critical.pod, &pod.pod)
                && pod.spec().qos == class
        };
        state.pods.values().map(|pod| &**pod).filter(displaceable).collect()
    };
    let (best_effort, burstable, guaranteed) =
        (of_class(QosClass::BestEffort), of_class(QosClass::Burstable), of_class(QosClass::Guaranteed));
    let never = less(&less(&less(&missing, &best_effort), &burstable), &guaranteed);
    if !never.is_empty() {
        return Err(unreclaimable(&never));
    }
    // Each class gives what the classes below it, ended as a whole, could not.
    let from_guaranteed = nearest(guaranteed, less(&less(&missing, &best_effort), &burstable));
    let from_burstable = nearest(burstable, less(&less(&missing, &best_effort), &from_guaranteed));
    let from_best_effort = nearest(best_effort, less(&less(&missing, &from_burstable), &from_guaranteed));
    let chosen = from_best_effort.iter().chain(&from_burstable).chain(&from_guaranteed);
    Ok(chosen.map(|pod| pod.pod.uid).collect())
}

/// What is still missing once these pods have gone.
fn less(missing: &Missing, pods: &[&PodState]) -> Missing {
    let left = |(name, amount): &(ResourceName, u64)| {
        let freed = pods.iter().fold(0u64, |sum, pod| sum.saturating_add(pod.charge.get(name)));
        (name.clone(), amount.saturating_sub(freed))
    };
    missing.iter().map(left).filter(|(_, amount)| *amount > 0).collect()
}

/// Takes the pod that comes nearest to what is missing until nothing is; among equals the one that holds less memory,
/// then less cpu, then by UID.
fn nearest(mut pods: Vec<&PodState>, mut missing: Missing) -> Vec<&PodState> {
    let mut chosen = Vec::new();
    while !missing.is_empty() {
        let rank = |pod: &PodState| {
            let holds = |name| pod.charge.get(&name);
            (distance(&missing, pod), holds(ResourceName::Memory), holds(ResourceName::Cpu), pod.pod.uid)
        };
        let Some(at) = (0..pods.len()).min_by_key(|i| rank(pods[*i])) else { break };
        let pod = pods.swap_remove(at);
        missing = less(&missing, &[pod]);
        chosen.push(pod);
    }
    chosen
}

/// How far this pod's end leaves us from having enough: the sum of squares of the fractions still missing, so that each
/// resource weighs the same. In fixed point: the fold has no floats.
fn distance(missing: &Missing, pod: &PodState) -> u128 {
    const ONE: u128 = 1 << 24;
    let fraction = |(name, amount): &(ResourceName, u64)| {
        let left = amount.saturating_sub(pod.charge.get(name));
        u128::from(left) * ONE / u128::from((*amount).max(1))
    };
    missing.iter().map(fraction).map(|left| left * left).sum()
}

fn unreclaimable(missing: &Missing) -> Name {
    let mut list = alloc::string::String::new();
    for (name, amount) in missing {
        list.push_str(&text(format_args!("(res: {name}, q: {amount}), ")));
    }
    text(format_args!(
        "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to \
         preempt: no set of running pods found to reclaim resources: [{list}]"
    ))
}
