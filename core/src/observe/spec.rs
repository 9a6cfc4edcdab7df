//! Facts about what is wanted: pods, the objects their volumes show, the node itself, and the API's answers.

use super::{Recording, text};
use crate::anomaly::AnomalyKind;
use crate::command::{Commands, Subject, Transition};
use crate::config::NodeFacts;
use crate::event::ObjectVersion;
use crate::ids::{Name, ObjectRef, OpId, PodUid, Source};
use crate::node::{ObjectRecord, State};
use crate::spec::{Deletion, Pod, TerminalPhase};
use crate::state::{Lifecycle, PodState, Shared, Termination, TerminationCause};
use crate::time::{Nanos, Time};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The kubelet's floor for a pod's grace (case 92).
const MINIMUM_POD_GRACE: Nanos = Nanos::secs(1);

pub(super) fn pod_applied(r: &mut Recording<'_>, pod: &Arc<Pod>) {
    let uid = pod.uid;
    let (epoch, now, arrived) = (r.state.epoch, r.state.now, r.state.events);
    if uid == PodUid(0) {
        r.state.anomaly(AnomalyKind::UnknownPod, None, "a pod without UID".into());
        return;
    }
    if let Some(known) = r.state.pods.get(&uid) {
        // A life that ends may be followed by one of any name; none changes its own, which names and mirrors hang on.
        let same = known.object_gone
            || (&known.pod.namespace, &known.pod.name, known.pod.source)
                == (&pod.namespace, &pod.name, pod.source);
        if !same {
            let detail =
                text(format_args!("applied as {}/{} from {:?}", pod.namespace, pod.name, pod.source));
            r.state.anomaly(AnomalyKind::OtherIdentity, Some(uid), detail);
            return;
        }
        subscribe(r.state, uid, pod);
        r.touched.add(uid);
        let Some(known) = r.state.pod_mut(uid) else { return };
        known.changed();
        known.applied_in = epoch;
        if known.object_gone {
            // Case 85, B6: wanted again while ending; honoured once this life is over.
            let before = known.again.take();
            known.again = pod.deletion.is_none().then(|| Box::new(Shared::new(pod.clone())));
            for volume in before.iter().flat_map(|p| &p.spec.volumes).chain(&pod.spec.volumes) {
                known.let_go_of(volume);
            }
            return;
        }
        let before = core::mem::replace(&mut known.pod, Shared::new(pod.clone()));
        if before.spec.volumes != pod.spec.volumes {
            before.spec.volumes.iter().for_each(|volume| known.let_go_of(volume));
        }
        known.content_changed = true;
        if let Some(deletion) = pod.deletion {
            delete(known, deletion, now, r.out);
        }
        return;
    }
    let mut state = PodState::new(Shared::new(pod.clone()), arrived, epoch);
    r.moved(uid, Subject::Pod, "", state.label());
    match (pod.api_terminal, pod.deletion) {
        // Case 88: seen first with a terminal phase. It must not run; what may still run of it is stopped.
        (Some(phase), deletion) => {
            state.terminal = Some(phase);
            state.publication.terminal_acknowledged = true;
            let grace = deletion.map_or(pod.spec.termination_grace, |d| d.grace).max(MINIMUM_POD_GRACE);
            terminate(&mut state, TerminationCause::ApiTerminal, now, now.after(grace), r.out);
        }
        (None, Some(deletion)) => delete(&mut state, deletion, now, r.out),
        (None, None) => {}
    }
    insert(r, state);
}

/// Takes a new pod in, with what was found of it on the host before anyone named it.
pub(super) fn insert(r: &mut Recording<'_>, pod: PodState) {
    let uid = pod.pod.uid;
    enter_name(r.state, &pod.pod);
    subscribe(r.state, uid, &pod.pod);
    r.state.pods.insert(uid, Arc::new(pod));
    r.touched.add(uid);
    super::recovery::claim(r, uid);
}

/// Books a pod that arrives under its name. UIDs of a name stand in the order in which they arrived.
fn enter_name(state: &mut State, pod: &Pod) {
    let name = (pod.namespace.clone(), pod.name.clone());
    state.names.entry(name).or_insert_with(|| Vec::with_capacity(1)).push(pod.uid);
}

/// Books the pod as a user of every object that its desired volumes show. It stays one for as long as anything of it shows
/// the object, a retained volume included (kubelet-volumes I13).
fn subscribe(state: &mut State, uid: PodUid, pod: &Pod) {
    for volume in &pod.spec.volumes {
        for source in volume.source.objects() {
            let object = &source.object;
            match state.objects.get_mut(object) {
                Some(known) => {
                    known.users.insert(uid);
                }
                None => {
                    let users = BTreeSet::from([uid]);
                    state.objects.insert(object.clone(), ObjectRecord { users, ..ObjectRecord::default() });
                    state.objects_changed.push(object.clone());
                }
            }
        }
    }
}

/// Gives up objects that nothing of the pod shows any more. What nobody shows is not remembered: its next user mounts
/// the newest content, and is told of every change after that.
pub(crate) fn unsubscribe(state: &mut State, uid: PodUid) {
    let Some(pod) = state.pods.get(&uid).filter(|p| !p.let_go.is_empty()) else { return };
    let gone: Vec<ObjectRef> = pod.let_go.iter().filter(|o| !pod.refers_to(o)).cloned().collect();
    if let Some(pod) = state.pod_mut(uid) {
        pod.let_go.clear();
    }
    for object in gone {
        give_up(state, uid, &object);
    }
}

fn give_up(state: &mut State, uid: PodUid, object: &ObjectRef) {
    let Some(record) = state.objects.get_mut(object) else { return };
    record.users.remove(&uid);
    if record.users.is_empty() {
        state.objects.remove(object);
        state.objects_changed.push(object.clone());
    }
}

/// Graceful deletion, or a shorter grace for one under way.
fn delete(pod: &mut PodState, deletion: Deletion, now: Time, out: &mut Commands) {
    let grace = deletion.grace.max(MINIMUM_POD_GRACE);
    terminate(pod, TerminationCause::Deleted, now, now.after(grace), out);
}

/// Begins a termination, or moves its deadline earlier (case 92, B24). Terminated is absorbing (B2).
pub(crate) fn terminate(
    pod: &mut PodState,
    cause: TerminationCause,
    now: Time,
    deadline: Time,
    out: &mut Commands,
) {
    let from = pod.label();
    match &mut pod.lifecycle {
        Lifecycle::Waiting | Lifecycle::Active => {
            pod.lifecycle = Lifecycle::Terminating(Termination { cause, since: now, deadline });
            pod.pending = None;
            pod.in_progress = None;
            // Another sandbox was what waited; what there is stops at once.
            pod.sandbox_retry.clear();
            pod.changed();
            let (pod, subject, to) = (pod.pod.uid, Subject::Pod, pod.label().into());
            out.transitions.push(Transition { pod, subject, from: from.into(), to });
        }
        Lifecycle::Terminating(termination) => {
            termination.deadline = termination.deadline.min(deadline);
        }
        Lifecycle::Terminated => {}
    }
}

pub(super) fn pod_removed(r: &mut Recording<'_>, uid: PodUid) {
    let now = r.state.now;
    if r.pod_unchanged(uid).is_some()
        && let Some(pod) = r.state.pod_mut(uid)
    {
        object_gone(pod, now, r.out);
    }
}

/// The object vanished: force-deleted (grace 1, kubelet-pods §3.6), its file removed (its own grace), or released.
pub(super) fn object_gone(pod: &mut PodState, now: Time, out: &mut Commands) {
    pod.object_gone = true;
    if let Some(again) = pod.again.take() {
        again.spec.volumes.iter().for_each(|volume| pod.let_go_of(volume));
    }
    pod.releasing = None;
    let grace = match pod.pod.source {
        Source::Api => MINIMUM_POD_GRACE,
        Source::File => pod.termination_grace().max(MINIMUM_POD_GRACE),
    };
    terminate(pod, TerminationCause::ObjectGone, now, now.after(grace), out);
}

pub(super) fn object_changed(r: &mut Recording<'_>, object: &ObjectRef, version: Option<&ObjectVersion>) {
    r.state.objects_changed.push(object.clone());
    let record = r.state.objects.entry(object.clone()).or_default();
    record.version = version.cloned();
    record.gone = version.is_none();
    for uid in &record.users {
        r.touched.add(*uid);
    }
    let users: Vec<PodUid> = record.users.iter().copied().collect();
    if version.is_none() && record.users.is_empty() {
        r.state.objects.remove(object);
        return;
    }
    for uid in users {
        let Some(pod) = r.state.pod_mut(uid) else { continue };
        pod.content_changed = true;
        if version.is_none() {
            continue;
        }
        // Whoever waits for this object need not wait for the end of a back-off.
        for volume in pod.volumes.iter_mut().filter(|v| v.removed.is_none()) {
            let shows =
                volume.spec.as_ref().is_some_and(|s| s.source.objects().iter().any(|o| o.object == *object));
            if shows {
                volume.retry.clear();
                volume.upkeep.change(|upkeep| upkeep.refresh_retry.clear());
            }
        }
    }
}

pub(super) fn node_changed(r: &mut Recording<'_>, node: &NodeFacts) {
    if r.state.config.node == *node {
        return;
    }
    r.state.config.node = node.clone();
    // Gates and allocatable change what may be allocated and what is shown; both are rare.
    let all: Vec<PodUid> = r.state.pods.keys().copied().collect();
    for uid in all {
        r.touched.add(uid);
        let Some(pod) = r.state.pod_mut(uid) else { continue };
        pod.changed();
        if pod.is_active() && pod.pending.is_some() {
            r.state.queue.insert(uid);
        }
    }
    let now = r.state.now;
    r.state.wake_allocator(now, crate::context::Why::CapacityFreed);
}

pub(super) fn readiness_gate(r: &mut Recording<'_>, uid: PodUid, condition: &Name, met: bool) {
    let Some(pod) = r.pod(uid) else { return };
    match (pod.gates_met.binary_search(condition), met) {
        (Err(at), true) => pod.gates_met.insert(at, condition.clone()),
        (Ok(at), false) => {
            pod.gates_met.remove(at);
        }
        (Ok(_), true) | (Err(_), false) => {}
    }
}

pub(super) fn status_written(r: &mut Recording<'_>, op: OpId, uid: PodUid) {
    let Some(pod) = r.pod_unchanged(uid) else { return };
    if pod.publication.writing != Some(op) {
        return r.stale(uid, op);
    }
    pod.publication.writing = None;
    pod.publication.retry.clear();
    // Nothing was derived while the write was in flight, so what was sent is what was derived last.
    let Some(sent) = pod.publication.current.as_mut().filter(|_| pod.publication.sent.is_some()) else {
        return;
    };
    pod.publication.terminal_acknowledged |= sent.is_terminal;
    // An end that people have seen as `state` may move on to `lastState`.
    for id in core::mem::take(&mut sent.ends) {
        if let Some(container) = pod.container_of(&id)
            && container.last.as_ref().is_some_and(|e| e.attempt == id.attempt)
            && !container.end_shown
        {
            container.end_shown = true;
            // Only a wait takes the place of an end.
            if container.start_failure.is_some() {
                pod.changed();
            }
        }
    }
}

pub(super) fn status_write_failed(r: &mut Recording<'_>, op: OpId, uid: PodUid) {
    let (now, timing) = (r.state.now, r.state.config.timing.clone());
    let Some(pod) = r.pod_unchanged(uid) else { return };
    if pod.publication.writing != Some(op) {
        return r.stale(uid, op);
    }
    pod.publication.writing = None;
    pod.publication.sent = None;
    pod.publication.retry.fail(now, timing.retry_backoff_initial, timing.retry_backoff_max);
}

pub(super) fn release_failed(r: &mut Recording<'_>, op: OpId, uid: PodUid) {
    let (now, timing) = (r.state.now, r.state.config.timing.clone());
    let Some(pod) = r.pod_unchanged(uid) else { return };
    if pod.releasing != Some(op) {
        return r.stale(uid, op);
    }
    pod.releasing = None;
    pod.release_retry.fail(now, timing.retry_backoff_initial, timing.retry_backoff_max);
}

/// Forgets a pod of which nothing is left anywhere, and begins its next life if one was asked for meanwhile (B6).
/// Returns who is to be looked at next: whoever waited for the name, or for its own next life. `wake_now` says when.
pub(crate) fn forget_if_over(state: &mut State, uid: PodUid, out: &mut Commands) -> Vec<PodUid> {
    let Some(pod) = state.pods.get(&uid) else { return Vec::new() };
    let host_known = pod.born == state.epoch || (state.recovery.runtime.seen && state.recovery.mounts.seen);
    let over = pod.object_gone
        && pod.is_terminated()
        && host_known
        && !pod.has_instances()
        && pod.volumes.is_empty()
        && pod.sandbox.is_none()
        && pod.old_sandboxes.is_empty()
        && pod.containers.iter().all(|c| c.dead.is_empty());
    if !over {
        return Vec::new();
    }
    let pod = pod.clone();
    state.pods.remove(&uid);
    state.queue.remove(&uid);
    if let Some((at, why)) = pod.wake {
        state.wakes.remove(&(at, uid, why));
    }
    state.observations.retain(|_, of| *of != uid);
    let name = (pod.pod.namespace.clone(), pod.pod.name.clone());
    if let Some(uids) = state.names.get_mut(&name) {
        uids.retain(|other| *other != uid);
        if uids.is_empty() {
            state.names.remove(&name);
        }
    }
    if let Some(record) = state.mirrors.get_mut(&name)
        && let Some(seen) = record.seen.as_ref().filter(|seen| seen.of == uid)
    {
        record.outdated = Some(seen.uid);
    }
    for shown in pod.pod.spec.volumes.iter().flat_map(|v| v.source.objects()) {
        give_up(state, uid, &shown.object);
    }
    out.transitions.push(Transition {
        pod: uid,
        subject: Subject::Pod,
        from: pod.label().into(),
        to: "".into(),
    });
    let mut woken = state.names.get(&name).cloned().unwrap_or_default();
    if let Some(again) = &pod.again {
        let mut next = PodState::new((**again).clone(), state.events, state.epoch);
        next.applied_in = pod.applied_in;
        // The UID is the same; no id of the former life comes twice (S6, S14).
        let containers = pod.containers.iter().map(|c| c.incarnation.saturating_add(1));
        next.incarnation_floor = containers.fold(pod.incarnation_floor, u32::max);
        next.generation_floor = pod.generation_floor;
        next.next_sandbox = pod.next_sandbox;
        // Of an orphan no name was known, and a file may be renamed: the next life has a name of its own.
        enter_name(state, &next.pod);
        subscribe(state, uid, &next.pod);
        out.transitions.push(Transition {
            pod: uid,
            subject: Subject::Pod,
            from: "".into(),
            to: next.label().into(),
        });
        state.pods.insert(uid, Arc::new(next));
        woken.push(uid);
    }
    woken
}

/// Books a wake-up of the pod at once. Not before all that an event touched is settled: each pod's own look at its deadlines
/// takes the place of what was booked before.
pub(crate) fn wake_now(state: &mut State, uid: PodUid) {
    let now = state.now;
    let Some(pod) = state.pod_mut(uid) else { return };
    let wanted = (now, crate::context::Why::CapacityFreed);
    let before = pod.wake.replace(wanted);
    if let Some((at, why)) = before {
        state.wakes.remove(&(at, uid, why));
    }
    state.wakes.insert((now, uid, wanted.1));
}

/// A phase that the node itself decides, once (B10: never changed afterwards).
pub(crate) fn fail_with(pod: &mut PodState, reason: &str, message: Name) {
    if pod.terminal.is_none() {
        pod.terminal = Some(TerminalPhase::Failed);
        pod.end_reason = Some(Box::new((reason.into(), message)));
        pod.changed();
    }
}
