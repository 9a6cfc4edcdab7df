//! What the digest costs: hashes of entries are kept, so that it costs what changed. Not state: any of it can be computed
//! anew.

use crate::codec;
use crate::ids::{ObjectRef, PodUid};
use crate::node::{Digest, State};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// See the file's head.
#[derive(Clone, Default)]
pub(crate) struct DigestCache {
    pods: BTreeMap<PodUid, Digest>,
    dirty: Marks,
    reported: BTreeSet<PodUid>,
    objects: BTreeMap<ObjectRef, Digest>,
    dirty_objects: BTreeSet<ObjectRef>,
    /// Of both kinds of entries.
    sum: u128,
    /// Of everything else; `None` if that changed since.
    head: Option<Digest>,
}

impl DigestCache {
    /// That of a state which was not folded here. Nothing counts as touched.
    #[cfg(feature = "rkyv")]
    pub(crate) fn of(state: &State) -> DigestCache {
        let mut cache = DigestCache::default();
        state.pods.keys().for_each(|uid| cache.pod(state, *uid));
        state.objects.keys().for_each(|object| cache.object(state, object.clone()));
        cache
    }
    /// An event touched the pod.
    pub(crate) fn pod_touched(&mut self, pod: PodUid) {
        self.dirty.add(pod);
    }
    /// Something else is remembered of the object, or nothing any more.
    pub(crate) fn object_changed(&mut self, object: ObjectRef) {
        self.dirty_objects.insert(object);
    }
    /// Something that belongs to no entry changed, as with every event.
    pub(crate) fn head_changed(&mut self) {
        self.head = None;
    }

    /// See `Node::digest`.
    pub(crate) fn digest(&mut self, state: &State) -> Digest {
        for uid in self.dirty.take() {
            self.reported.insert(uid);
            self.pod(state, uid);
        }
        while let Some(object) = self.dirty_objects.pop_first() {
            self.object(state, object);
        }
        let head = *self.head.get_or_insert_with(|| head(state));
        Digest(self.sum.wrapping_add(head.0))
    }

    fn pod(&mut self, state: &State, uid: PodUid) {
        let fresh = state.pods.get(&uid).map(|pod| codec::hash(&(uid, &**pod)));
        exchange(&mut self.pods, &mut self.sum, uid, fresh);
    }

    fn object(&mut self, state: &State, object: ObjectRef) {
        // Its users are left out: they follow from what the pods show.
        let fresh = state.objects.get(&object).map(|r| codec::hash(&(&object, &r.version, r.gone)));
        exchange(&mut self.objects, &mut self.sum, object, fresh);
    }

    /// See `Node::take_touched`.
    pub(crate) fn take_touched(&mut self, state: &State) -> Vec<(PodUid, Digest)> {
        self.digest(state);
        core::mem::take(&mut self.reported)
            .into_iter()
            .map(|uid| (uid, self.pods.get(&uid).copied().unwrap_or_default()))
            .collect()
    }
}

/// Puts an entry's hash in place of the one before, in the sum too.
fn exchange<K: Ord>(kept: &mut BTreeMap<K, Digest>, sum: &mut u128, key: K, fresh: Option<Digest>) {
    let stale = match fresh {
        None => kept.remove(&key),
        Some(fresh) => kept.insert(key, fresh),
    };
    let rest = sum.wrapping_sub(stale.unwrap_or_default().0);
    *sum = rest.wrapping_add(fresh.unwrap_or_default().0);
}

/// Everything that belongs to no pod and no object.
fn head(s: &State) -> Digest {
    let clock = (s.now, s.events, s.next_op, s.epoch, s.boot_id);
    let allocator = (&s.queue, &s.preemptors, &s.charged, s.allocator_wake);
    let host = (&s.sources_ready, &s.recovery, &s.observations, &s.mirrors);
    codec::hash(&(&s.config, clock, host, allocator, &s.anomalies))
}

/// Pods to come back to. A mark costs a push; doubles go when they are half of it.
#[derive(Clone, Default)]
struct Marks {
    marked: Vec<PodUid>,
    /// How many there were without doubles when those went last.
    different: usize,
}

impl Marks {
    /// Fewer are not sorted.
    const FEW: usize = 64;

    fn add(&mut self, pod: PodUid) {
        if self.marked.last() == Some(&pod) {
            return;
        }
        if self.marked.len() >= 2 * self.different.max(Marks::FEW) {
            self.sort_out();
        }
        self.marked.push(pod);
    }
    fn sort_out(&mut self) {
        self.marked.sort_unstable();
        self.marked.dedup();
        self.different = self.marked.len();
    }
    /// Each once, in order; then there are none.
    fn take(&mut self) -> Vec<PodUid> {
        self.sort_out();
        self.different = 0;
        core::mem::take(&mut self.marked)
    }
}
