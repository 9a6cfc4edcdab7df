//! The bytes that the core never sees: secrets, configMaps and trust bundles, kept where they can be forgotten (S13).

use nodefold_core::ids::{ObjectKind, ObjectRef};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The newest version of each object that somebody told of. Shared between whoever hears of objects and the workers that
/// write them into volumes.
#[derive(Clone, Default)]
pub struct Objects {
    known: Arc<Mutex<BTreeMap<ObjectRef, Arc<Value>>>>,
}

impl Objects {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectRef, Arc<Value>>> {
        // The map is whole after each call: a panic elsewhere does not spoil it.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An object exists, in this version.
    pub fn put(&self, object: ObjectRef, value: Arc<Value>) {
        self.lock().insert(object, value);
    }

    /// An object does not exist any more.
    pub fn forget(&self, object: &ObjectRef) {
        self.lock().remove(object);
    }

    /// Every trust bundle that exists, by name.
    pub fn trust_bundles(&self) -> Vec<Arc<Value>> {
        let known = self.lock();
        let bundles = known.iter().filter(|(object, _)| object.kind == ObjectKind::ClusterTrustBundle);
        bundles.map(|(_, value)| value.clone()).collect()
    }

    /// The object, if it exists.
    pub fn get(&self, object: &ObjectRef) -> Option<Arc<Value>> {
        self.lock().get(object).cloned()
    }
}
