//! The stored objects: one monotone counter of versions, and the latest changes for watchers.
//!
//! Owns resourceVersions. Knows no rule about what may change.

use crate::hold::Holds;
use crate::seal;
use nodefold_core::codec;
use nodefold_core::ids::Name;
use nodefold_core::node::Digest;
use nodefold_k8s::canonical;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};

/// Which object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub kind: Name,
    pub namespace: Name,
    pub name: Name,
}

/// A stored object, and what the API remembers beside it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub object: Arc<Value>,
    pub holds: Holds,
    digest: OnceLock<Digest>,
}

/// What happened to an object.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeType {
    /// It is new.
    Added,
    /// It is another version.
    Modified,
    /// It is gone; the change carries its last version.
    Deleted,
}

impl ChangeType {
    /// As a watch spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            ChangeType::Added => "ADDED",
            ChangeType::Modified => "MODIFIED",
            ChangeType::Deleted => "DELETED",
        }
    }
}

/// One change, as a watch shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The store's version that it made.
    pub resource_version: u64,
    /// The object's kind.
    pub kind: Name,
    /// What happened.
    pub change: ChangeType,
    /// The object after it (before it, if deleted), with this resourceVersion.
    pub object: Arc<Value>,
}

/// A watch asked for changes that are no longer kept: list anew (HTTP 410, reason Expired).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Expired {
    /// The oldest version from which a watch can start.
    pub oldest: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Store {
    objects: BTreeMap<Key, Entry>,
    version: u64,
    changes: VecDeque<Change>,
    changes_kept: usize,
}

impl Store {
    pub fn new(changes_kept: usize) -> Store {
        Store { objects: BTreeMap::new(), version: 0, changes: VecDeque::new(), changes_kept }
    }

    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn get(&self, key: &Key) -> Option<&Entry> {
        self.objects.get(key)
    }

    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = (&'a Key, &'a Entry)> {
        let first = Key { kind: kind.into(), namespace: "".into(), name: "".into() };
        self.objects.range(first..).take_while(move |(key, _)| &*key.kind == kind)
    }

    /// Stores an object under the next version. Returns it with that version in it.
    pub fn put(&mut self, key: Key, mut object: Value, holds: Holds) -> Arc<Value> {
        let change = if self.objects.contains_key(&key) { ChangeType::Modified } else { ChangeType::Added };
        self.stamp(&mut object);
        let object = Arc::new(object);
        self.record(key.kind.clone(), change, object.clone());
        self.objects.insert(key, Entry { object: object.clone(), holds, digest: OnceLock::new() });
        object
    }

    /// All that is stored.
    pub fn all(&self) -> impl Iterator<Item = (&Key, &Entry)> {
        self.objects.iter()
    }

    /// An object as it was stored already: it takes no version and is no change.
    pub fn restore(&mut self, key: Key, object: Arc<Value>, holds: Holds) {
        self.objects.insert(key, Entry { object, holds, digest: OnceLock::new() });
    }

    /// The next version is the one after this.
    pub fn go_on_from(&mut self, version: u64) {
        self.version = version;
    }

    /// Removes an object, which takes a version too.
    pub fn remove(&mut self, key: &Key) -> Option<Arc<Value>> {
        let mut object = Value::clone(&self.objects.remove(key)?.object);
        self.stamp(&mut object);
        let object = Arc::new(object);
        self.record(key.kind.clone(), ChangeType::Deleted, object.clone());
        Some(object)
    }

    /// What happened after this version.
    pub fn changes_after(&self, version: u64) -> Result<impl Iterator<Item = &Change>, Expired> {
        let oldest = self.changes.front().map_or(self.version, |c| c.resource_version - 1);
        if version < oldest {
            return Err(Expired { oldest });
        }
        let from = self.changes.partition_point(|c| c.resource_version <= version);
        Ok(self.changes.iter().skip(from))
    }

    /// Over what is stored, not over the changes kept for watchers: those decide nothing.
    pub fn digest(&self) -> u128 {
        let entries = self.objects.iter().map(|(key, entry)| entry.digest(key).0);
        entries.fold(codec::hash(&self.version).0, u128::wrapping_add)
    }

    fn stamp(&mut self, object: &mut Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
    }

    fn record(&mut self, kind: Name, change: ChangeType, object: Arc<Value>) {
        self.changes.push_back(Change { resource_version: self.version, kind, change, object });
        while self.changes.len() > self.changes_kept {
            self.changes.pop_front();
        }
    }
}

impl Entry {
    fn digest(&self, key: &Key) -> Digest {
        *self.digest.get_or_init(|| {
            let Key { kind, namespace, name } = key;
            let object =
                if &**kind == "Secret" { seal::open_part(&self.object) } else { canonical(&self.object) };
            codec::hash(&(&**kind, &**namespace, &**name, object, self.holds.parts()))
        })
    }
}
