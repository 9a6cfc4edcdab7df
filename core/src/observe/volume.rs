//! Facts about volumes: the error table of kubelet-volumes §1.8, and usage.

use super::Recording;
use crate::command::Subject;
use crate::context::sentence;
use crate::event::{ErrorClass, OpError, UsageOf};
use crate::ids::{Name, OpId, PodUid, VolumeId};
use crate::state::{Lifecycle, TerminationCause, VolumePhase};
use crate::time::{Nanos, Time};

/// A credential is not renewed more often.
const LEAST_BETWEEN_RENEWALS: Nanos = Nanos::secs(60);

pub(super) fn mounted(
    r: &mut Recording<'_>,
    op: OpId,
    uid: PodUid,
    id: &VolumeId,
    renew_at: Option<Time>,
    image_digest: &Option<Name>,
) {
    let now = r.state.now;
    let Some(pod) = r.pod(uid) else { return };
    let Some(volume) =
        pod.volume_of(id).filter(|v| matches!(v.phase, VolumePhase::Mounting { op: o } if o == op))
    else {
        return r.stale(uid, op);
    };
    volume.phase = VolumePhase::Mounted;
    volume.retry.clear();
    volume.reconstructed = false;
    volume.upkeep.change(|upkeep| {
        upkeep.error = None;
        upkeep.renew_at = renew_at.map(|at| no_sooner(at, now));
        upkeep.image_digest = image_digest.clone();
    });
    pod.content_changed = true;
    newer_than_look(r, uid, id);
    r.moved(uid, Subject::Volume(id.clone()), "Mounting", "Mounted");
}

/// A mount table that is on its way may have been read before this mount: that it lacks the volume says nothing.
fn newer_than_look(r: &mut Recording<'_>, uid: PodUid, id: &VolumeId) {
    if !r.state.recovery.mounts.seen {
        r.state.recovery.mounted_meanwhile.push((uid, id.clone()));
    }
}

pub(super) fn mount_failed(r: &mut Recording<'_>, op: OpId, uid: PodUid, id: &VolumeId, error: &OpError) {
    let (now, timing) = (r.state.now, r.state.config.timing.clone());
    let Some(pod) = r.pod(uid) else { return };
    let Some(volume) =
        pod.volume_of(id).filter(|v| matches!(v.phase, VolumePhase::Mounting { op: o } if o == op))
    else {
        return r.stale(uid, op);
    };
    // The table of kubelet-volumes §1.8. `Mounted` never gets here: a live volume is refreshed, not mounted again.
    volume.phase = match (error.class, volume.reconstructed) {
        (ErrorClass::Uncertain, _) => VolumePhase::Uncertain,
        (ErrorClass::Transient, false) => VolumePhase::Failed,
        // A final answer clears a timeout's uncertainty, but not what was found on the host (#96635, case 17).
        (ErrorClass::Final, false) => VolumePhase::Failed,
        (ErrorClass::Final | ErrorClass::Transient, true) => VolumePhase::Uncertain,
    };
    let to = volume.phase.label();
    volume.upkeep.change(|upkeep| upkeep.error = Some(error.message.clone()));
    volume.retry.fail(now, timing.volume_backoff_initial, timing.volume_backoff_max);
    let frozen = volume.removed.is_some();
    newer_than_look(r, uid, id);
    r.moved(uid, Subject::Volume(id.clone()), "Mounting", to);
    if !frozen {
        let message =
            sentence(format_args!("MountVolume.SetUp failed for volume \"{}\" : {}", id.name, error.message));
        r.tell(uid, true, "FailedMount", message, None);
    }
}

pub(super) fn unmounted(r: &mut Recording<'_>, op: OpId, uid: PodUid, id: &VolumeId) {
    let Some(pod) = r.pod(uid) else { return };
    let in_flight =
        |v: &crate::state::VolumeState| matches!(v.phase, VolumePhase::Unmounting { op: o } if o == op);
    if !pod.volume_of(id).is_some_and(|v| in_flight(v)) {
        return r.stale(uid, op);
    }
    // Only now is it gone: the record was its undo data (kubelet-volumes I7).
    for gone in pod.volumes.extract_if(.., |v| v.id == *id).collect::<alloc::vec::Vec<_>>() {
        if let Some(spec) = &gone.spec {
            pod.let_go_of(spec);
        }
    }
    pod.generation_floor = pod.generation_floor.max(id.generation + 1);
    r.moved(uid, Subject::Volume(id.clone()), "Unmounting", "");
}

pub(super) fn unmount_failed(r: &mut Recording<'_>, op: OpId, uid: PodUid, id: &VolumeId, error: &OpError) {
    let (now, timing) = (r.state.now, r.state.config.timing.clone());
    let Some(pod) = r.pod(uid) else { return };
    let Some(volume) =
        pod.volume_of(id).filter(|v| matches!(v.phase, VolumePhase::Unmounting { op: o } if o == op))
    else {
        return r.stale(uid, op);
    };
    // Half undone is uncertain (PR #100183), and is told, which a kubelet doesn't (I14, D13).
    volume.phase = VolumePhase::Uncertain;
    volume.upkeep.change(|upkeep| upkeep.error = Some(error.message.clone()));
    volume.retry.fail(now, timing.volume_backoff_initial, timing.volume_backoff_max);
    r.moved(uid, Subject::Volume(id.clone()), "Unmounting", "Uncertain");
    let message = sentence(format_args!(
        "UnmountVolume.TearDown failed for volume \"{}\" : {}",
        id.name, error.message
    ));
    r.tell(uid, true, "FailedUnmount", message, None);
}

pub(super) fn refreshed(r: &mut Recording<'_>, op: OpId, uid: PodUid, id: &VolumeId, renew_at: Option<Time>) {
    let now = r.state.now;
    let Some(pod) = r.pod_unchanged(uid) else { return };
    let Some(volume) = pod.volume_of(id).filter(|v| v.upkeep.refreshing == Some(op)) else {
        return r.stale(uid, op);
    };
    volume.upkeep.change(|upkeep| {
        upkeep.refreshing = None;
        upkeep.refresh_retry.clear();
        upkeep.renew_at = renew_at.map(|at| no_sooner(at, now));
    });
    pod.content_changed = true;
}

/// A credential that is due for renewal when it comes (this host's clock may be ahead of its issuer's by more than its life)
/// is renewed once a minute, as often as a kubelet looks at a pod (L4).
fn no_sooner(renew_at: Time, now: Time) -> Time {
    renew_at.max(now.after(LEAST_BETWEEN_RENEWALS))
}

pub(super) fn refresh_failed(r: &mut Recording<'_>, op: OpId, uid: PodUid, id: &VolumeId, error: &OpError) {
    let (now, timing) = (r.state.now, r.state.config.timing.clone());
    let Some(pod) = r.pod_unchanged(uid) else { return };
    let Some(volume) = pod.volume_of(id).filter(|v| v.upkeep.refreshing == Some(op)) else {
        return r.stale(uid, op);
    };
    // The old content is intact (I6, D12): the phase stays, and the digest of what it shows is forgotten so that the
    // refresh is due again.
    volume.content = crate::node::Digest::default();
    let first = volume.upkeep.change(|upkeep| {
        upkeep.refreshing = None;
        let first = upkeep.refresh_retry.failures() == 0;
        upkeep.refresh_retry.fail(now, timing.volume_backoff_initial, timing.volume_backoff_max);
        first
    });
    let frozen = volume.removed.is_some();
    pod.content_changed = true;
    // Once per run of failures, and never for a volume that is going (D11).
    if first && !frozen {
        let message =
            sentence(format_args!("MountVolume.SetUp failed for volume \"{}\" : {}", id.name, error.message));
        r.tell(uid, true, "FailedMount", message, None);
    }
}

pub(super) fn usage_reported(r: &mut Recording<'_>, uid: PodUid, of: &UsageOf, bytes: u64) {
    let now = r.state.now;
    if r.pod_unchanged(uid).is_none() {
        return;
    }
    let Some(pod) = r.state.pod_mut(uid) else { return };
    let known = match of {
        UsageOf::Volume(id) => {
            let volume = pod.volume_of(id);
            volume.map(|v| v.upkeep.change(|upkeep| upkeep.usage = Some(bytes))).is_some()
        }
        UsageOf::Container(id) => pod.container_of(id).map(|c| c.usage = Some(bytes)).is_some(),
    };
    if !known {
        return r.unknown_instance(uid, "usage of something that is not there".into());
    }
    if !matches!(pod.lifecycle, Lifecycle::Active) || crate::allocate::preempt::is_critical(&pod.pod) {
        return;
    }
    let Some(message) = crate::allocate::limits::exceeded(pod) else { return };
    super::spec::fail_with(pod, "Evicted", message.clone());
    // One second of grace, as the kubelet gives for a local storage limit (kubelet-volumes §2.2).
    let deadline = now.after(crate::time::Nanos::secs(1));
    super::spec::terminate(pod, TerminationCause::Evicted, now, deadline, r.out);
    r.tell(uid, true, "Evicted", (&message).into(), None);
}
