//! What the API server made of status writes before: in a search the same write comes to the same stored objects by many
//! paths, and whole pods are long to read and copy. Owns no rule: what is remembered is what the API answered.
//!
//! Objects are the same when they are one and the same in memory, so what is remembered keeps them alive.

use super::part::Part;
use nodefold_api::{Api, Response};
use nodefold_core::Digest;
use nodefold_core::ids::PodUid;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Writes remembered before all are forgotten: each holds the objects of its pods.
const MOST_KEPT: usize = 20_000;

/// See the file's head. Clones share what they know.
#[derive(Clone, Default)]
pub(super) struct Memo {
    known: Arc<Mutex<BTreeMap<Asked, Answered>>>,
}

/// The store, by its place in memory; whose status; and which.
type Asked = (usize, PodUid, Digest);

/// What became of a write.
#[derive(Clone)]
pub(super) struct Answered {
    /// The store before: as long as it lives, nothing else has its place.
    before: Part<Api>,
    /// The store after.
    pub(super) after: Part<Api>,
    /// The answer.
    pub(super) response: Response,
}

impl Memo {
    /// What became of this very write before.
    pub(super) fn recall(&self, api: &Part<Api>, pod: PodUid, status: Digest) -> Option<Answered> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(api.place(), pod, status)).filter(|answered| answered.before.is(api)).cloned()
    }

    /// Remembers it.
    pub(super) fn keep(
        &self,
        before: Part<Api>,
        pod: PodUid,
        status: Digest,
        after: Part<Api>,
        response: Response,
    ) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_KEPT {
            known.clear();
        }
        known.insert((before.place(), pod, status), Answered { before, after, response });
    }
}
