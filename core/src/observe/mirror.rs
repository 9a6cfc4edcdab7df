//! Facts about mirror pods: what the API has under a static pod's name, and how the node's own creates and deletes ended.

use super::Recording;
use crate::event::{Mirror, OpError};
use crate::ids::{OpId, PodUid, Source};
use crate::publish::mirror::{FullName, MirrorState};
use alloc::vec::Vec;

/// The watch shows the object as it is now.
pub(super) fn seen(r: &mut Recording<'_>, name: FullName, mirror: &Mirror) {
    let record = r.state.mirrors.entry(name.clone()).or_default();
    record.seen = Some(mirror.clone());
    touch(r, name);
}

/// The watch, or the first list, says that the object is gone.
pub(super) fn gone(r: &mut Recording<'_>, name: FullName, uid: PodUid) {
    if let Some(record) = r.state.mirrors.get_mut(&name) {
        is_gone(record, uid);
    }
    touch(r, name);
}

/// A create was acknowledged.
pub(super) fn created(r: &mut Recording<'_>, op: OpId, name: FullName, mirror: &Mirror) {
    let Some(record) = answered(r, op, mirror.of, &name) else { return };
    record.retry.clear();
    // What was made for this life shows it, and be it called as the former one's was: else it would be deleted and made for ever.
    record.outdated = record.outdated.filter(|outdated| *outdated != mirror.uid);
    record.seen = Some(mirror.clone());
    touch(r, name);
}

/// A delete was acknowledged, or there was nothing to delete.
pub(super) fn deleted(r: &mut Recording<'_>, op: OpId, name: FullName, uid: PodUid) {
    let Some(record) = answered(r, op, uid, &name) else { return };
    record.retry.clear();
    is_gone(record, uid);
    touch(r, name);
}

/// A create or a delete was refused or lost.
pub(super) fn failed(r: &mut Recording<'_>, op: OpId, name: FullName, uid: PodUid, error: &OpError) {
    let (now, timing) = (r.state.now, r.state.config.timing.clone());
    let Some(record) = answered(r, op, uid, &name) else { return };
    let first = record.retry.failures() == 0;
    record.retry.fail(now, timing.retry_backoff_initial, timing.retry_backoff_max);
    if first && r.state.pods.contains_key(&uid) {
        r.tell(uid, true, "FailedMirror", (&error.message).into(), None);
    }
    touch(r, name);
}

fn is_gone(record: &mut MirrorState, uid: PodUid) {
    if record.seen.as_ref().is_some_and(|seen| seen.uid == uid) {
        record.seen = None;
    }
}

/// The record whose operation this answers.
fn answered<'a>(
    r: &'a mut Recording<'_>,
    op: OpId,
    uid: PodUid,
    name: &FullName,
) -> Option<&'a mut MirrorState> {
    let awaited = r.state.mirrors.get(name).is_some_and(|record| record.doing == Some(op));
    if !awaited {
        r.stale(uid, op);
        return None;
    }
    let record = r.state.mirrors.get_mut(name)?;
    record.doing = None;
    Some(record)
}

/// The static pods of that name have somebody to tell, or no longer.
fn touch(r: &mut Recording<'_>, name: FullName) {
    let uids = r.state.names.get(&name).cloned().unwrap_or_default();
    for uid in uids {
        if r.state.pods.get(&uid).is_some_and(|pod| pod.pod.source == Source::File) {
            r.touched.add(uid);
        }
    }
    r.touched.add_mirror(name);
}

/// No operation of the former epoch will be answered, and the API's list tells what is there.
pub(super) fn forget_all(r: &mut Recording<'_>) {
    for record in r.state.mirrors.values_mut() {
        *record = MirrorState { outdated: record.outdated, ..MirrorState::default() };
    }
}

/// Every source has delivered its list: each name may be looked at.
pub(super) fn touch_all(r: &mut Recording<'_>) {
    let names: Vec<FullName> = r.state.mirrors.keys().cloned().collect();
    names.into_iter().for_each(|name| r.touched.add_mirror(name));
}
