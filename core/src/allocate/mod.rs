//! Room 2: admit desired state, one transaction per pod (DESIGN §4 rule 1). Nothing is allocated once a pod
//! terminates (S7), and nothing below this room ever reads desired state to act on it (rule 2).

pub mod admit;
pub(crate) mod charge;
pub(crate) mod commit;
pub(crate) mod limits;
pub(crate) mod preempt;
pub mod queue;
pub mod transaction;

use crate::command::{Action, Commands, KubernetesEvent, Rule, Subject, Transition};
use crate::context::{Touched, Why, text};
use crate::ids::{Name, PodUid, Source, Word};
use crate::node::State;
use crate::observe::{Recording, look_again};
use crate::resources::{ResourceList, ResourceName, Resources};
use crate::state::{InProgress, Lifecycle, Pending, PendingKind, PodState, Shared, TerminationCause};
use crate::time::Nanos;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use transaction::Verdict;

/// Admits new pods and books or tries changed ones, of those touched.
pub(crate) fn room(state: &mut State, touched: &mut Touched, out: &mut Commands) {
    let mut newly_queued = Vec::new();
    match *touched.pods() {
        [] => {}
        [only] => visit(state, only, &mut newly_queued, touched, out),
        ref several => {
            // Oldest first, as the kubelet sorts what it is given at once.
            let created = |uid: &PodUid| state.pods.get(uid).map(|pod| (pod.pod.created_at, *uid));
            let mut order: Vec<_> = several.iter().filter_map(created).collect();
            order.sort();
            for (_, uid) in order {
                visit(state, uid, &mut newly_queued, touched, out);
            }
        }
    }
    if !newly_queued.is_empty() && state.sources_ready() {
        for uid in queue::ordered(state, newly_queued.into_iter()) {
            attempt(state, uid, touched, out);
        }
    }
}

fn visit(
    state: &mut State,
    uid: PodUid,
    newly_queued: &mut Vec<PodUid>,
    touched: &mut Touched,
    out: &mut Commands,
) {
    let Some(pod) = state.pods.get(&uid) else { return };
    match pod.lifecycle {
        Lifecycle::Waiting => consider(state, uid, touched, out),
        Lifecycle::Active => {
            if book(state, uid) {
                newly_queued.push(uid);
            }
        }
        Lifecycle::Terminating(_) | Lifecycle::Terminated => {
            state.queue.remove(&uid);
            preempt::withdraw(state, uid);
        }
    }
    charge::refresh(state, uid);
}

/// The room has nothing to do with the pod, if no other is touched by the event (its charge is brought up to date when
/// the rooms below are through).
pub(crate) fn is_through(pod: &PodState, queue: &BTreeSet<PodUid>) -> bool {
    match pod.lifecycle {
        Lifecycle::Waiting => false,
        Lifecycle::Active => is_as_desired(pod) && !queue.contains(&pod.pod.uid),
        Lifecycle::Terminating(_) | Lifecycle::Terminated => !queue.contains(&pod.pod.uid),
    }
}

/// The very spec that is desired is allocated, and nothing is said to be pending: there is nothing to book.
fn is_as_desired(pod: &PodState) -> bool {
    let desired = &pod.pod.spec;
    pod.allocated.as_ref().is_some_and(|a| Arc::ptr_eq(a.spec.arc(), desired))
        && pod.pending.is_none()
        && !commit::lacks_ephemeral(pod)
}

/// Tries every queued pod in order: room was freed, or it is time. One that does not fit never blocks the rest.
pub(crate) fn retry_queue(state: &mut State, why: Why, touched: &mut Touched, out: &mut Commands) {
    let mut recording = Recording { state, behind: Nanos::ZERO, touched, out };
    look_again(&mut recording);
    crate::publish::mirror::retry(recording.state, recording.touched);
    let (state, out) = (recording.state, recording.out);
    let touched = recording.touched;
    for uid in preempt::waiting(state) {
        if state.pods.get(&uid).is_some_and(|pod| !pod.is_active()) {
            touched.add(uid);
            consider(state, uid, touched, out);
            charge::refresh(state, uid);
        }
    }
    if !state.sources_ready() {
        return;
    }
    let ordered = queue::ordered(state, state.queue.clone().into_iter());
    for uid in ordered {
        if attempt(state, uid, touched, out) {
            touched.add(uid);
        }
    }
    if !state.queue.is_empty() || why == Why::AllocationRetry {
        let next = state.now.after(state.config.timing.allocation_retry);
        if !state.queue.is_empty() {
            state.wake_allocator(next, Why::AllocationRetry);
        }
    }
}

/// A pod that was not admitted yet.
fn consider(state: &mut State, uid: PodUid, touched: &mut Touched, out: &mut Commands) {
    // What the host holds of it may be taken over only before admission (DESIGN §3 "Restart"; both looks touch it again).
    if !state.host_seen() {
        return;
    }
    let Some(pod) = state.pods.get(&uid) else { return };
    if pod.pod.source == Source::File && !admit::static_name_free(state, pod) {
        return;
    }
    let mut verdict = admit::admit(state, pod);
    if let Err(short) = &verdict
        && short.for_want_of_room
        && preempt::is_critical(&pod.pod)
    {
        verdict = admit::suits(state, pod);
        if verdict.is_ok() {
            match preempt::make_room(state, uid, touched, out) {
                // It waits until there is room.
                Ok(()) => return,
                Err(message) => {
                    let reason = "UnexpectedAdmissionError".into();
                    verdict = Err(admit::Refusal { for_want_of_room: false, reason, message });
                }
            }
        }
    }
    preempt::withdraw(state, uid);
    let Some(pod) = state.pods.get(&uid) else { return };
    let now = state.now;
    let spec = pod.pod.spec.clone();
    let generation = pod.pod.generation;
    let Some(pod) = state.pod_mut(uid) else { return };
    pod.changed();
    match verdict {
        Ok(()) => {
            pod.lifecycle = Lifecycle::Active;
            pod.start_time = Some(now.whole_seconds());
            commit::commit(pod, &Shared::new(spec), generation, now, out);
            moved(out, uid, "Waiting", "Active");
        }
        Err(refusal) => {
            // Never allocated, never charged (B4), never retried.
            let message = text(format_args!("Pod was rejected: {}", refusal.message));
            crate::observe::fail_with(pod, &refusal.reason, message.clone());
            pod.start_time = Some(now.whole_seconds());
            if pod.has_instances() || pod.sandbox.is_some() {
                // It was found running: it is stopped first, like anybody (S8).
                let deadline = now.after(pod.termination_grace().max(Nanos::secs(1)));
                crate::observe::terminate(pod, TerminationCause::Rejected, now, deadline, out);
            } else {
                pod.lifecycle = Lifecycle::Terminated;
                moved(out, uid, "Waiting", "Terminated");
            }
            tell(state, out, uid, true, Word::from(&refusal.reason), Word::from(&message));
        }
    }
}

/// Notes whether desired differs from allocated. True if the pod is to be tried now.
fn book(state: &mut State, uid: PodUid) -> bool {
    let gates = state.config.node.gates;
    let now = state.now;
    let Some(pod) = state.pods.get(&uid) else { return false };
    let Some(allocated) = &pod.allocated else { return false };
    if !gates.dynamic_containers {
        // Without KEP-5972 an image bypasses allocation, as it always did.
        if let Some(spec) = transaction::with_desired_images(&allocated.spec, &pod.pod.spec) {
            let spec = Shared::new(Arc::new(spec));
            let generation = allocated.generation;
            if let Some(pod) = state.pod_mut(uid) {
                commit::commit(pod, &spec, generation, now, &mut Commands::default());
            }
        }
    }
    let Some(pod) = state.pods.get(&uid) else { return false };
    let Some(allocated) = &pod.allocated else { return false };
    let differs = !transaction::same_gated(&allocated.spec, &pod.pod.spec);
    let (pending, generation, queued) = (pod.pending.clone(), pod.pod.generation, state.queue.contains(&uid));
    let lacks_ephemeral = commit::lacks_ephemeral(pod);
    if !differs {
        state.queue.remove(&uid);
        preempt::withdraw(state, uid);
        if (pending.is_some() || lacks_ephemeral)
            && let Some(pod) = state.pod_mut(uid)
        {
            // Reverted to what is allocated: nothing is pending any more.
            pod.pending = None;
            pod.changed();
            commit::add_ephemeral(pod);
        }
        return false;
    }
    if lacks_ephemeral && let Some(pod) = state.pod_mut(uid) {
        commit::add_ephemeral(pod);
    }
    // A new spec is tried at once, whatever was said of an older one.
    let fresh = pending.is_none_or(|p| p.generation != generation);
    if fresh && !queued {
        state.queue.insert(uid);
    }
    fresh
}

/// Tries one pod's transaction. True if anything about it changed.
fn attempt(state: &mut State, uid: PodUid, touched: &mut Touched, out: &mut Commands) -> bool {
    let Some(pod) = state.pods.get(&uid) else {
        state.queue.remove(&uid);
        return false;
    };
    if !pod.is_active() {
        state.queue.remove(&uid);
        return false;
    }
    let Some(allocated) = &pod.allocated else { return false };
    let verdict = transaction::decide(state, pod);
    let (now, generation) = (state.now, pod.pod.generation);
    let resources_change = !transaction::same_resources(&allocated.spec, &pod.pod.spec);
    let structure_changes = !transaction::same_structure(&allocated.spec, &pod.pod.spec);
    let desired = pod.pod.spec.clone();
    match verdict {
        Verdict::Allocate => {
            state.queue.remove(&uid);
            preempt::withdraw(state, uid);
            let Some(pod) = state.pod_mut(uid) else { return false };
            pod.pending = None;
            commit::commit(pod, &Shared::new(desired), generation, now, out);
            if resources_change {
                pod.in_progress = Some(Box::new(InProgress { generation, error: None, since: now }));
                tell(state, out, uid, false, "ResizeStarted".into(), "Pod resize started".into());
            }
            charge::refresh(state, uid);
            true
        }
        Verdict::Deferred(message) => {
            state.queue.insert(uid);
            let next = now.after(state.config.timing.allocation_retry);
            state.wake_allocator(next, Why::AllocationRetry);
            // A critical pod's growth displaces what matters less, like its admission; if nothing can, it just waits.
            let critical = state.pods.get(&uid).is_some_and(|pod| preempt::is_critical(&pod.pod));
            if !critical || preempt::make_room(state, uid, touched, out).is_err() {
                preempt::withdraw(state, uid);
            }
            refuse(state, out, uid, PendingKind::Deferred, message, generation, structure_changes)
        }
        Verdict::Infeasible(message) => {
            state.queue.remove(&uid);
            preempt::withdraw(state, uid);
            refuse(state, out, uid, PendingKind::Infeasible, message, generation, structure_changes)
        }
    }
}

fn refuse(
    state: &mut State,
    out: &mut Commands,
    uid: PodUid,
    kind: PendingKind,
    message: Name,
    generation: u64,
    structure: bool,
) -> bool {
    let now = state.now;
    let Some(pod) = state.pod_mut(uid) else { return false };
    let before = pod.pending.clone();
    let since = before.as_ref().filter(|p| p.kind == kind).map_or(now, |p| p.since);
    pod.pending = Some(Box::new(Pending { kind, message: message.clone(), generation, since }));
    if pod.pending == before {
        return false;
    }
    pod.changed();
    // Told once per change, not once per attempt. Whatever is pending is a resize that is (KEP-5972 "works exactly the same"),
    // and an addition or removal is told in KEP-6395's word too.
    let reason = match kind {
        PendingKind::Deferred => "ResizeDeferred",
        PendingKind::Infeasible => "ResizeInfeasible",
    };
    tell(state, out, uid, true, reason.into(), Word::from(&message));
    if structure {
        tell(state, out, uid, true, "FailedAllocation".into(), Word::from(&message));
    }
    true
}

fn moved(out: &mut Commands, uid: PodUid, from: &'static str, to: &'static str) {
    out.transitions.push(Transition { pod: uid, subject: Subject::Pod, from: from.into(), to: to.into() });
}

fn tell(state: &mut State, out: &mut Commands, pod: PodUid, warning: bool, reason: Word, message: Word) {
    let event = KubernetesEvent { warning, reason, message, container: None };
    state.command(out, pod, Rule::Told, Action::RecordEvent(event));
}

/// The sum that a pod's spec asks for, as Kubernetes computes a pod's requests: pod-level resources if given; else main
/// containers and sidecars together, or an init container with the sidecars before it where that is more; and overhead.
pub fn pod_requests(spec: &crate::spec::PodSpec) -> ResourceList {
    let mut running = ResourceList::default();
    let mut peak = ResourceList::default();
    for init in &spec.init_containers {
        if crate::spec::PodSpec::is_sidecar(init) {
            running.add(&init.resources.requests);
        } else {
            let mut with_sidecars = running.clone();
            with_sidecars.add(&init.resources.requests);
            peak.raise_to(&with_sidecars);
        }
    }
    for container in &spec.containers {
        running.add(&container.resources.requests);
    }
    running.raise_to(&peak);
    if let Some(resources) = &spec.resources {
        for (name, amount) in resources.requests.iter() {
            running.set(name.clone(), *amount);
        }
    }
    running.add(&spec.overhead);
    running
}

/// What the pod's cgroup is to have: requests always, a limit only where every container has one.
pub(crate) fn cgroup_of(spec: &crate::spec::PodSpec, requests: &ResourceList) -> Resources {
    let limits = |name: ResourceName| limit_of_all(spec, &name).map(|amount| (name, amount));
    let cpu = requests.get(&ResourceName::Cpu);
    Resources {
        requests: ResourceList::from_pairs([(ResourceName::Cpu, cpu)]),
        limits: ResourceList::from_pairs(
            [limits(ResourceName::Cpu), limits(ResourceName::Memory)].into_iter().flatten(),
        ),
    }
}

/// What all of a pod together may use at most: its own limit, else the sum where every main container has one.
/// Saturates, since a manifest may ask for anything.
pub(crate) fn limit_of_all(spec: &crate::spec::PodSpec, name: &ResourceName) -> Option<u64> {
    let of_pod = spec.resources.as_ref().and_then(|r| r.limits.given(name));
    let add =
        |sum: u64, c: &Arc<crate::spec::Container>| Some(sum.saturating_add(c.resources.limits.given(name)?));
    of_pod.or_else(|| spec.containers.iter().try_fold(0, add))
}

/// Whether the pod has containers that may run though the allocation no longer has them.
pub(crate) fn has_leftovers(pod: &PodState) -> bool {
    !pod.surplus.is_empty() || pod.containers.iter().any(|c| c.removed.is_some() && c.instance.is_some())
}
