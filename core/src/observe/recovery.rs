//! Facts about the agent's own life: a new epoch makes every operation in flight unknown, and observations make the
//! unknown known again (DESIGN §3 "Restart"). Absence counts only in a list that is complete.

use super::Recording;
use super::container::{note_restart_all, note_surplus, runs, stamped, vanished};
use super::sandbox::{find, forget};
use crate::anomaly::AnomalyKind;
use crate::command::{Action, Subject};
use crate::context::{Why, text};
use crate::event::{OpError, SeenContainer, SeenMount, SeenSandbox, SeenState};
use crate::ids::{OpId, PodUid, Source, VolumeId};
use crate::node::{Look, Recovery};
use crate::spec::{Container, VolumeMount};
use crate::state::{
    ContainerKind, ContainerState, HookState, Instance, InstancePhase, Lifecycle, PodState, Probes, Retry,
    Sandbox, SandboxPhase, Shared, TerminationCause, VolumePhase, VolumeState,
};
use crate::time::Nanos;
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

pub(super) fn agent_started(r: &mut Recording<'_>, boot_id: u128) {
    let rebooted = r.state.boot_id.is_some_and(|before| before != boot_id);
    r.state.boot_id = Some(boot_id);
    r.state.epoch.0 += 1;
    r.state.sources_ready.clear();
    r.state.observations.clear();
    let all: Vec<PodUid> = r.state.pods.keys().copied().collect();
    for uid in all {
        if let Some(pod) = r.pod(uid) {
            forget_operations(pod, rebooted);
        }
    }
    super::mirror::forget_all(r);
    let mounts = r.look(Action::ObserveMounts);
    let runtime = r.look(Action::ObserveRuntime);
    r.state.recovery = Recovery {
        mounts: Look { asked: Some(mounts), ..Look::default() },
        runtime: Look { asked: Some(runtime), ..Look::default() },
        ..Recovery::default()
    };
}

/// No operation of the former epoch will be answered: what each was doing is now unknown.
fn forget_operations(pod: &mut PodState, rebooted: bool) {
    pod.content_changed = true;
    for volume in &mut pod.volumes {
        volume.upkeep.change(|upkeep| upkeep.refreshing = None);
        volume.content = crate::node::Digest::default();
        volume.phase = match volume.phase {
            VolumePhase::Mounting { .. } | VolumePhase::Unmounting { .. } => VolumePhase::Uncertain,
            // A reboot voids mounts: set up again before trusting it (#117513).
            VolumePhase::Mounted if rebooted => VolumePhase::Uncertain,
            other @ (VolumePhase::Pending
            | VolumePhase::Mounted
            | VolumePhase::Failed
            | VolumePhase::Uncertain) => other,
        };
    }
    for container in &mut pod.containers {
        container.pulling = None;
        for dead in &mut container.dead {
            dead.removing = None;
        }
        let Some(instance) = &mut container.instance else { continue };
        instance.resizing = None;
        if let HookState::Running { .. } = instance.post_start {
            instance.post_start = HookState::Done;
        }
        // The probers died with the agent, their results did not (B18, B37).
        instance.probes.asked = [false; 3];
        instance.phase = match instance.phase {
            InstancePhase::Running if !rebooted => InstancePhase::Running,
            InstancePhase::Created if !rebooted => InstancePhase::Created,
            InstancePhase::Running
            | InstancePhase::Created
            | InstancePhase::Creating { .. }
            | InstancePhase::Starting { .. }
            | InstancePhase::Discarding { .. }
            | InstancePhase::Unknown
            | InstancePhase::Lost => InstancePhase::Unknown,
        };
        if let Some(stop) = &mut instance.stop {
            // The hook may or may not have run; running it twice is worse than not knowing.
            if let HookState::Running { .. } = stop.pre_stop {
                stop.pre_stop = HookState::Done;
            }
            if let Some((sent, _)) = &mut stop.sent {
                *sent = None;
            }
            stop.kill = None;
        }
    }
    for surplus in &mut pod.surplus {
        surplus.kill = None;
    }
    for sandbox in pod.sandbox.iter_mut().chain(pod.old_sandboxes.iter_mut()) {
        sandbox.phase = match sandbox.phase {
            SandboxPhase::Ready if !rebooted => SandboxPhase::Ready,
            SandboxPhase::Stopped => SandboxPhase::Stopped,
            SandboxPhase::Stopping { .. } => SandboxPhase::Stopping { op: None },
            SandboxPhase::Removing { .. } => SandboxPhase::Stopped,
            SandboxPhase::Ready
            | SandboxPhase::Dead
            | SandboxPhase::Creating { .. }
            | SandboxPhase::Unknown => SandboxPhase::Unknown,
        };
    }
    pod.cgroup_resizing = None;
    pod.observing = None;
    pod.newer_than_look.clear();
    pod.publication.writing = None;
    pod.publication.sent = None;
    pod.releasing = None;
}

pub(super) fn source_ready(r: &mut Recording<'_>, source: Source) {
    if r.state.sources_ready.contains(&source) {
        return;
    }
    r.state.sources_ready.push(source);
    r.state.sources_ready.sort();
    let (epoch, now) = (r.state.epoch, r.state.now);
    let all: Vec<PodUid> = r.state.pods.keys().copied().collect();
    for uid in all {
        r.touched.add(uid);
        let Some(pod) = r.state.pod_mut(uid) else { continue };
        pod.changed();
        // The list is whole, and this pod is not in it: neither what lives nor what was to follow it.
        let wanted = match &pod.again {
            Some(again) => Some(again.source),
            None => (!pod.object_gone).then_some(pod.pod.source),
        };
        if wanted == Some(source) && pod.applied_in != epoch {
            super::spec::object_gone(pod, now, r.out);
        }
    }
    if r.state.sources_ready() {
        adopt_orphans(r);
        super::mirror::touch_all(r);
        r.state.wake_allocator(now, Why::CapacityFreed);
    }
}

/// What was found on the host and was named by no source belongs to nobody: it is stopped with a grace of one second
/// and unmounted (case 89).
fn adopt_orphans(r: &mut Recording<'_>) {
    let containers = core::mem::take(&mut r.state.recovery.unclaimed_containers);
    let sandboxes = core::mem::take(&mut r.state.recovery.unclaimed_sandboxes);
    let mounts = core::mem::take(&mut r.state.recovery.unclaimed_mounts);
    let owners = containers
        .iter()
        .map(|c| c.pod)
        .chain(sandboxes.iter().map(|s| s.pod))
        .chain(mounts.iter().map(|m| m.pod));
    let mut uids: Vec<PodUid> = owners.filter(|uid| uid.0 != 0).collect();
    uids.sort();
    uids.dedup();
    let (epoch, now, events) = (r.state.epoch, r.state.now, r.state.events);
    for uid in uids {
        let orphan = crate::spec::Pod::orphan(uid);
        let mut pod = PodState::new(Shared::new(Arc::new(orphan)), events, epoch);
        pod.object_gone = true;
        r.moved(uid, Subject::Pod, "", pod.label());
        super::spec::terminate(&mut pod, TerminationCause::Orphan, now, now.after(Nanos::secs(1)), r.out);
        r.state.recovery.unclaimed_containers = containers.iter().filter(|c| c.pod == uid).cloned().collect();
        r.state.recovery.unclaimed_sandboxes = sandboxes.iter().filter(|s| s.pod == uid).cloned().collect();
        r.state.recovery.unclaimed_mounts = mounts.iter().filter(|m| m.pod == uid).cloned().collect();
        super::spec::insert(r, pod);
    }
    r.state.recovery.unclaimed_containers.clear();
    r.state.recovery.unclaimed_sandboxes.clear();
    r.state.recovery.unclaimed_mounts.clear();
}

/// Gives a pod that was just named what was found of it before.
pub(super) fn claim(r: &mut Recording<'_>, uid: PodUid) {
    let take = |of: PodUid| of == uid;
    let (containers, rest): (Vec<_>, Vec<_>) =
        core::mem::take(&mut r.state.recovery.unclaimed_containers).into_iter().partition(|c| take(c.pod));
    r.state.recovery.unclaimed_containers = rest;
    let (sandboxes, rest): (Vec<_>, Vec<_>) =
        core::mem::take(&mut r.state.recovery.unclaimed_sandboxes).into_iter().partition(|s| take(s.pod));
    r.state.recovery.unclaimed_sandboxes = rest;
    let (mounts, rest): (Vec<_>, Vec<_>) =
        core::mem::take(&mut r.state.recovery.unclaimed_mounts).into_iter().partition(|m| take(m.pod));
    r.state.recovery.unclaimed_mounts = rest;
    for seen in &sandboxes {
        sandbox_seen(r, uid, seen);
    }
    for seen in &containers {
        container_found(r, uid, seen);
    }
    for seen in &mounts {
        mount_found(r, uid, seen);
    }
}

/// No life has a number beyond this one: nothing was ever made two thousand million times.
const MAX_PLAUSIBLE: u32 = u32::MAX / 2;

/// Leaves out what is listed with absurd numbers, and says so: to go on counting from them would be to run out of ids.
fn plausible<'a, T: Clone>(
    r: &mut Recording<'_>,
    list: &'a [T],
    numbers: impl Fn(&T) -> (PodUid, [u32; 2]),
) -> Cow<'a, [T]> {
    let absurd = |seen: &T| numbers(seen).1.iter().any(|n| *n > MAX_PLAUSIBLE);
    if !list.iter().any(absurd) {
        return Cow::Borrowed(list);
    }
    for seen in list.iter().filter(|seen| absurd(seen)) {
        r.unknown_instance(numbers(seen).0, "something with an absurd number was listed".into());
    }
    Cow::Owned(list.iter().filter(|seen| !absurd(seen)).cloned().collect())
}

pub(super) fn mounts_observed(r: &mut Recording<'_>, op: OpId, mounts: &[SeenMount]) {
    if r.state.recovery.mounts.asked != Some(op) {
        return r.stale(PodUid(0), op);
    }
    r.state.recovery.mounts = Look { asked: None, seen: true, retry: Retry::default() };
    let meanwhile = core::mem::take(&mut r.state.recovery.mounted_meanwhile);
    let mounts = &*plausible(r, mounts, |m| (m.pod, [m.volume.generation, 0]));
    let all: Vec<PodUid> = r.state.pods.keys().copied().collect();
    let epoch = r.state.epoch;
    for uid in all {
        let Some(pod) = r.pod(uid) else { continue };
        if pod.born == epoch {
            continue;
        }
        for volume in &mut pod.volumes {
            let there = mounts.iter().any(|m| m.pod == uid && m.volume == volume.id);
            // The host is right about what it holds, whatever the record says was tried (I2).
            if there && matches!(volume.phase, VolumePhase::Pending) {
                volume.phase = VolumePhase::Uncertain;
                volume.reconstructed = true;
            }
            // Lost, as an observation says: the one way back to Pending (S10). A removed one is torn down all the
            // same, for remains (D8); so is one whose mount failed, which may have been tried after the list was read.
            let newer = meanwhile.iter().any(|(pod, id)| *pod == uid && *id == volume.id);
            if !there && !newer && volume.removed.is_none() {
                volume.phase = match volume.phase {
                    VolumePhase::Mounted | VolumePhase::Uncertain => VolumePhase::Pending,
                    other @ (VolumePhase::Pending
                    | VolumePhase::Failed
                    | VolumePhase::Mounting { .. }
                    | VolumePhase::Unmounting { .. }) => other,
                };
            }
        }
    }
    for seen in mounts {
        if r.state.pods.contains_key(&seen.pod) {
            let known = r.state.pod_mut(seen.pod).is_some_and(|p| p.volume_of(&seen.volume).is_some());
            if !known {
                mount_found(r, seen.pod, seen);
            }
        } else {
            r.state.recovery.unclaimed_mounts.push(seen.clone());
        }
    }
    if r.state.sources_ready() {
        adopt_orphans(r);
    }
}

/// A mount that no record owns: retained, so that it is taken down once nothing can hold it. What is known to be
/// possibly mounted is never forgotten (I2).
fn mount_found(r: &mut Recording<'_>, uid: PodUid, seen: &SeenMount) {
    let now = r.state.now;
    let Some(pod) = r.pod(uid) else { return };
    if pod.volume_of(&seen.volume).is_some() {
        return;
    }
    let mut volume = VolumeState::new(seen.volume.clone(), None);
    volume.phase = VolumePhase::Uncertain;
    volume.reconstructed = true;
    // Before admission it may turn out to be the allocated one; admission takes it over by name.
    volume.removed = Some(now);
    pod.volumes.push(volume);
    r.moved(uid, Subject::Volume(seen.volume.clone()), "", "Uncertain");
}

pub(super) fn runtime_observed(
    r: &mut Recording<'_>,
    op: OpId,
    complete: bool,
    sandboxes: &[SeenSandbox],
    containers: &[SeenContainer],
) {
    let sandboxes = &*plausible(r, sandboxes, |s| (s.pod, [s.attempt, 0]));
    let containers = &*plausible(r, containers, |c| (c.pod, [c.container.incarnation, c.container.attempt]));
    let only = r.state.observations.remove(&op);
    match only {
        Some(uid) => {
            let (now, timing) = (r.state.now, r.state.config.timing.clone());
            let Some(pod) = r.pod(uid) else { return };
            if pod.observing != Some(op) {
                return r.stale(uid, op);
            }
            pod.observing = None;
            if complete {
                pod.observe_retry.clear();
            } else {
                pod.observe_retry.fail(now, timing.retry_backoff_initial, timing.retry_backoff_max);
            }
        }
        None if r.state.recovery.runtime.asked == Some(op) => {
            if complete {
                r.state.recovery.runtime = Look { asked: None, seen: true, retry: Retry::default() };
            } else {
                // What it shows is true; what it doesn't show is not known. Look again, but not in a busy loop (L4).
                let (now, timing) = (r.state.now, r.state.config.timing.clone());
                let look = &mut r.state.recovery.runtime;
                look.asked = None;
                look.retry.fail(now, timing.retry_backoff_initial, timing.retry_backoff_max);
                if let Some(at) = look.retry.until() {
                    r.state.wake_allocator(at, Why::ObserveRetry);
                }
            }
        }
        None => return r.stale(PodUid(0), op),
    }
    let scope: Vec<PodUid> = match only {
        Some(uid) => alloc::vec![uid],
        None => r.state.pods.keys().copied().collect(),
    };
    for seen in sandboxes.iter().filter(|s| only.is_none_or(|uid| s.pod == uid)) {
        if r.state.pods.contains_key(&seen.pod) {
            sandbox_seen(r, seen.pod, seen);
        } else if !r.state.recovery.unclaimed_sandboxes.contains(seen) {
            r.state.recovery.unclaimed_sandboxes.push(seen.clone());
        }
    }
    for seen in containers.iter().filter(|c| only.is_none_or(|uid| c.pod == uid)) {
        if r.state.pods.contains_key(&seen.pod) {
            container_seen(r, seen.pod, seen);
        } else if !r.state.recovery.unclaimed_containers.contains(seen) {
            r.state.recovery.unclaimed_containers.push(seen.clone());
        }
    }
    if complete {
        for &uid in &scope {
            absent(r, uid, only.is_some(), sandboxes, containers);
        }
    }
    for uid in scope {
        if let Some(pod) = r.state.pod_mut(uid) {
            pod.newer_than_look.clear();
        }
    }
    if r.state.sources_ready() {
        adopt_orphans(r);
    }
}

fn sandbox_seen(r: &mut Recording<'_>, uid: PodUid, seen: &SeenSandbox) {
    let Some(pod) = r.pod(uid) else { return };
    if let Some(sandbox) = find(pod, seen.attempt) {
        let from = sandbox.phase.label();
        sandbox.phase = match (sandbox.phase.clone(), seen.ready) {
            (SandboxPhase::Unknown, true) => SandboxPhase::Ready,
            (SandboxPhase::Unknown | SandboxPhase::Ready, false) => SandboxPhase::Dead,
            (SandboxPhase::Stopping { op: None }, false) => SandboxPhase::Stopped,
            (SandboxPhase::Stopped, true) => SandboxPhase::Stopping { op: None },
            (
                same @ (SandboxPhase::Creating { .. }
                | SandboxPhase::Ready
                | SandboxPhase::Dead
                | SandboxPhase::Stopping { .. }
                | SandboxPhase::Stopped
                | SandboxPhase::Removing { .. }),
                _,
            ) => same,
        };
        if seen.ip.is_some() {
            sandbox.ip = seen.ip.clone();
        }
        let to = sandbox.phase.label();
        r.moved(uid, Subject::Sandbox(seen.attempt), from, to);
        return;
    }
    let phase = if seen.ready { SandboxPhase::Ready } else { SandboxPhase::Dead };
    let label = phase.label();
    let found = Sandbox { attempt: seen.attempt, phase, ip: seen.ip.clone() };
    pod.next_sandbox = pod.next_sandbox.max(seen.attempt.saturating_add(1));
    match &pod.sandbox {
        Some(current) if current.attempt > found.attempt => pod.old_sandboxes.push(found),
        Some(_) | None => {
            let older = pod.sandbox.replace(found);
            pod.old_sandboxes.extend(older);
        }
    }
    r.moved(uid, Subject::Sandbox(seen.attempt), "", label);
}

/// Compares a listed container with what is known of it.
fn container_seen(r: &mut Recording<'_>, uid: PodUid, seen: &SeenContainer) {
    let (now, behind, timing) = (r.state.now, r.behind, r.state.config.timing.clone());
    let id = &seen.container;
    let Some(pod) = r.pod(uid) else { return };
    let newer = pod.newer_than_look.contains(id);
    let Some(container) = pod.container_of(id) else {
        return container_found(r, uid, seen);
    };
    let from = container.label();
    if newer && !matches!(seen.state, SeenState::Exited(_)) {
        return;
    }
    let Some(instance) = container.instance_mut(id.attempt) else {
        let ended = container.last.iter().chain(&container.previous).any(|e| e.attempt == id.attempt)
            || container.dead.iter().any(|d| d.attempt == id.attempt);
        match (&seen.state, ended) {
            (SeenState::Exited(_), true) => {}
            _ => container_found(r, uid, seen),
        }
        return;
    };
    match (&seen.state, instance.phase) {
        // An operation of this epoch is in flight: its completion says more than a list does.
        (
            SeenState::Created | SeenState::Running { .. },
            InstancePhase::Creating { .. } | InstancePhase::Starting { .. },
        )
        | (_, InstancePhase::Discarding { .. }) => {}
        (SeenState::Created, _) => instance.phase = InstancePhase::Created,
        (SeenState::Running { started_at }, _) => runs(container, id.attempt, *started_at),
        (SeenState::Exited(exit), _) => {
            super::end_instance(container, stamped(exit, now, behind), "".into(), &timing);
            note_restart_all(pod, id);
        }
        (SeenState::Unknown, _) => {
            instance.phase = InstancePhase::Lost;
        }
    }
    let to = pod.container_of(id).map_or("", |c| c.label());
    r.moved(uid, Subject::Container(id.clone()), from, to);
}

/// A listed container that no instance stands for.
fn container_found(r: &mut Recording<'_>, uid: PodUid, seen: &SeenContainer) {
    let id = seen.container.clone();
    let Some(pod) = r.pod(uid) else { return };
    // A pod that was just named finds its own containers running: they are taken over, as made from the spec that it
    // came with, to run on or to be stopped with its grace. Two live ones of a name are not (S6).
    let adoptable =
        pod.allocated.is_none() && !pod.is_terminated() && !pod.containers.iter().any(|c| c.name == id.name);
    let spec = pod.pod.spec.clone();
    if adoptable {
        let known = crate::allocate::commit::definition(&spec, &id.name);
        let known = known.map(|(definition, kind)| (definition.clone(), kind));
        // Of an orphan's containers nothing is known but the name (case 89).
        let orphan =
            matches!(&pod.lifecycle, Lifecycle::Terminating(t) if t.cause == TerminationCause::Orphan);
        let bare = || (Arc::new(Container::unknown(id.name.clone())), ContainerKind::Main);
        if let Some((definition, kind)) = known.or_else(|| orphan.then(bare)) {
            let mut container = ContainerState::new(Shared::new(definition.clone()), kind, id.incarnation);
            container.next_attempt = id.attempt.saturating_add(1);
            container.restarts = id.attempt;
            let life = |m: &VolumeMount| VolumeId { name: m.name.clone(), generation: 0 };
            container.instance = Some(Box::new(Instance {
                attempt: id.attempt,
                phase: InstancePhase::Unknown,
                spec: Shared::new(definition.clone()),
                leases: definition.mounts.iter().map(life).collect(),
                image_id: "".into(),
                sandbox: pod.sandbox.as_ref().map_or(0, |s| s.attempt),
                started_at: None,
                resources: definition.resources.clone(),
                resizing: None,
                resize_retry: Retry::default(),
                post_start: HookState::Done,
                probes: Probes::default(),
                stop: None,
            }));
            pod.containers.push(container);
            r.moved(uid, Subject::Container(id), "", "Unknown");
            return container_seen(r, uid, seen);
        }
    }
    match &seen.state {
        SeenState::Created | SeenState::Running { .. } | SeenState::Unknown => note_surplus(r, uid, &id),
        SeenState::Exited(_) => {
            // Remains. A record to hold them lets them be removed; without one they go with the sandbox.
            if let Some(container) = pod.container_of(&id) {
                container.dead.push(crate::state::Dead {
                    attempt: id.attempt,
                    sandbox: 0,
                    removing: None,
                    retry: Retry::default(),
                });
                container.dead.sort_by_key(|d| d.attempt);
                container.next_attempt = container.next_attempt.max(id.attempt.saturating_add(1));
            }
        }
    }
}

/// What a complete list does not show is not there.
fn absent(
    r: &mut Recording<'_>,
    uid: PodUid,
    own_look: bool,
    sandboxes: &[SeenSandbox],
    containers: &[SeenContainer],
) {
    let (now, timing, epoch) = (r.state.now, r.state.config.timing.clone(), r.state.epoch);
    let Some(pod) = r.pod(uid) else { return };
    if pod.born == epoch && !own_look {
        // Made after the look was asked for: the list may be older than it.
        return;
    }
    let listed = |id: &crate::ids::ContainerId| containers.iter().any(|c| c.pod == uid && c.container == *id);
    // Absence from a list that may have been read before it was made says nothing.
    let newer = core::mem::take(&mut pod.newer_than_look);
    let listed = |id: &crate::ids::ContainerId| listed(id) || newer.contains(id);
    pod.surplus.retain(|s| listed(&s.id));
    let (mut gone, mut moved) = (Vec::new(), Vec::new());
    for container in &mut pod.containers {
        let ids: Vec<(u32, crate::ids::ContainerId)> =
            container.dead.iter().map(|d| (d.attempt, container.id(d.attempt))).collect();
        for (attempt, id) in ids {
            if !listed(&id) {
                container.dead.retain(|d| d.attempt != attempt || d.removing.is_some());
            }
        }
        let Some(id) = container.instance_id().filter(|id| !listed(id)) else { continue };
        let Some(instance) = &container.instance else { continue };
        let from = container.label();
        match instance.phase {
            InstancePhase::Creating { .. }
            | InstancePhase::Starting { .. }
            | InstancePhase::Discarding { .. } => continue,
            // It never came to be, as far as anyone knows: nothing ran, nothing is shown.
            InstancePhase::Unknown | InstancePhase::Created if instance.started_at.is_none() => {
                container.instance = None
            }
            InstancePhase::Created
            | InstancePhase::Running
            | InstancePhase::Unknown
            | InstancePhase::Lost => {
                vanished(container, now, &timing);
                gone.push(id.clone());
            }
        }
        let to = container.label();
        moved.push((Subject::Container(id), from, to));
    }
    for id in &gone {
        note_restart_all(pod, id);
    }
    let missing: Vec<u32> = pod
        .sandbox
        .iter()
        .chain(&pod.old_sandboxes)
        .filter(|s| !sandboxes.iter().any(|seen| seen.pod == uid && seen.attempt == s.attempt))
        .filter(|s| match s.phase {
            SandboxPhase::Creating { .. } | SandboxPhase::Removing { .. } => false,
            SandboxPhase::Ready
            | SandboxPhase::Dead
            | SandboxPhase::Stopping { .. }
            | SandboxPhase::Stopped
            | SandboxPhase::Unknown => true,
        })
        .map(|s| s.attempt)
        .collect();
    for attempt in missing {
        forget(pod, attempt);
    }
    for (subject, from, to) in moved {
        r.moved(uid, subject, from, to);
    }
}

pub(super) fn observe_failed(r: &mut Recording<'_>, op: OpId, error: &OpError) {
    let (now, timing) = (r.state.now, r.state.config.timing.clone());
    if let Some(uid) = r.state.observations.remove(&op) {
        let Some(pod) = r.pod(uid) else { return };
        if pod.observing == Some(op) {
            pod.observing = None;
            pod.newer_than_look.clear();
            pod.observe_retry.fail(now, timing.retry_backoff_initial, timing.retry_backoff_max);
        }
        return;
    }
    let recovery = &mut r.state.recovery;
    let look = if recovery.mounts.asked == Some(op) {
        &mut recovery.mounts
    } else if recovery.runtime.asked == Some(op) {
        &mut recovery.runtime
    } else {
        return r.stale(PodUid(0), op);
    };
    look.asked = None;
    look.retry.fail(now, timing.retry_backoff_initial, timing.retry_backoff_max);
    if let Some(at) = look.retry.until() {
        r.state.wake_allocator(at, Why::ObserveRetry);
    }
    r.state.anomaly(
        AnomalyKind::StaleCompletion,
        None,
        text(format_args!("observation failed: {}", error.message)),
    );
}

/// Looks again at what could not be seen, once its back-off is over. A look that is not due yet is booked anew, since the
/// wake-up that led here took the place of its own.
pub(crate) fn look_again(r: &mut Recording<'_>) {
    let now = r.state.now;
    let wanted = |look: &Look| look.retry.until().filter(|_| !look.seen && look.asked.is_none());
    let (mounts, runtime) = (wanted(&r.state.recovery.mounts), wanted(&r.state.recovery.runtime));
    for at in [mounts, runtime].into_iter().flatten().filter(|at| *at > now) {
        r.state.wake_allocator(at, Why::ObserveRetry);
    }
    if mounts.is_some_and(|at| at <= now) {
        let op = r.look(Action::ObserveMounts);
        r.state.recovery.mounts.asked = Some(op);
    }
    if runtime.is_some_and(|at| at <= now) {
        let op = r.look(Action::ObserveRuntime);
        r.state.recovery.runtime.asked = Some(op);
    }
}
