//! What the API server made of requests before: in a search the same request comes to the same stored objects by many
//! paths, and whole pods are long to read and copy. Owns no rule: what is remembered is what the API answered.
//!
//! Objects are the same when they are one and the same in memory, so what is remembered keeps them alive.

use super::part::Part;
use nodefold_api::{Api, Response};
use nodefold_core::Digest;
use nodefold_core::spec::Pod;
use nodefold_model::DynamicRules;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Requests remembered before all are forgotten: each holds the objects of its pods.
const MOST_KEPT: usize = 20_000;

/// See the file's head. Clones share what they know.
#[derive(Clone, Default)]
pub(super) struct Memo(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    answers: BTreeMap<Asked, Answered>,
    /// Pods by where their objects are in memory.
    pods: BTreeMap<usize, (Arc<Value>, Arc<Pod>)>,
}

/// The store and what was judged of it, by their places in memory; and the request.
type Asked = (usize, usize, Digest);

/// What a request meets: the store, and what later requests are judged by (S16).
#[derive(Clone)]
pub(super) struct Met {
    pub(super) api: Part<Api>,
    pub(super) rules: Part<DynamicRules>,
}

/// What became of a request.
#[derive(Clone)]
pub(super) struct Answered {
    /// As it was before: as long as it lives, nothing else has its place.
    before: Met,
    /// As it is after it.
    pub(super) after: Met,
    /// The answer.
    pub(super) response: Response,
    /// What is wrong with that.
    pub(super) wrong: Option<String>,
}

impl Memo {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What became of this very request before.
    pub(super) fn recall(&self, met: &Met, request: Digest) -> Option<Answered> {
        let place = (met.api.place(), met.rules.place(), request);
        let same = |known: &&Answered| known.before.api.is(&met.api) && known.before.rules.is(&met.rules);
        self.known().answers.get(&place).filter(same).cloned()
    }

    /// Remembers it.
    pub(super) fn keep(
        &self,
        before: Met,
        request: Digest,
        after: Met,
        response: Response,
        wrong: Option<String>,
    ) {
        let mut known = self.known();
        if known.answers.len() >= MOST_KEPT {
            *known = Known::default();
        }
        let place = (before.api.place(), before.rules.place(), request);
        known.answers.insert(place, Answered { before, after, response, wrong });
    }

    /// What was read from this very object before.
    pub(super) fn pod(&self, object: &Arc<Value>) -> Option<Arc<Pod>> {
        let known = self.known();
        let (of, pod) = known.pods.get(&Arc::as_ptr(object).addr())?;
        Arc::ptr_eq(of, object).then(|| pod.clone())
    }

    /// Remembers what was read from it.
    pub(super) fn keep_pod(&self, object: &Arc<Value>, pod: &Arc<Pod>) {
        self.known().pods.insert(Arc::as_ptr(object).addr(), (object.clone(), pod.clone()));
    }
}
