//! The watch cache: the latest changes in order, and who waits for more. The node's loop writes to each watcher's queue and
//! never waits for one: whose queue is full is cut off and told 410, so that it lists anew.

use super::failure::Failure;
use bytes::Bytes;
use nodefold_api::{Change, ChangeType};
use nodefold_core::ids::Name;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::mpsc;

/// A change as watchers see it.
#[derive(Debug)]
pub struct WatchEvent {
    /// The store's version that it made.
    pub version: u64,
    /// Of which kind.
    pub kind: Name,
    /// What happened.
    pub change: ChangeType,
    /// The object after it; before it, if deleted.
    pub object: Arc<Value>,
    /// The object before it.
    pub old: Option<Arc<Value>>,
    /// The frame for whoever wants the object as it is: written once for all.
    frame: OnceLock<Bytes>,
}

impl WatchEvent {
    /// The frame that says it.
    pub fn frame(&self) -> Bytes {
        self.frame.get_or_init(|| frame(self.change.as_str(), &self.object)).clone()
    }
}

/// A frame of a watch: one line.
pub fn frame(kind: &str, object: &Value) -> Bytes {
    let mut text = format!("{{\"type\":\"{kind}\",\"object\":{object}}}");
    text.push('\n');
    Bytes::from(text)
}

/// An object's kind, namespace and name.
pub type Place = (Name, Name, Name);

/// What watchers are told from.
#[derive(Debug)]
pub struct WatchCache {
    events: VecDeque<Arc<WatchEvent>>,
    kept: usize,
    /// Changes up to this version are not kept any more.
    forgotten: u64,
    last: BTreeMap<Place, Arc<Value>>,
    watchers: Vec<Watcher>,
    queue: usize,
    most_watchers: usize,
    /// How many were cut off.
    pub dropped: u64,
}

#[derive(Debug)]
struct Watcher {
    kind: &'static str,
    namespace: String,
    name: Option<String>,
    queue: mpsc::Sender<Arc<WatchEvent>>,
    behind: Arc<AtomicBool>,
}

/// A watcher's side.
#[derive(Debug)]
pub struct Subscription {
    /// What comes first: the objects there are, if it asked for them, or the changes since its version.
    pub first: Vec<First>,
    /// The store's version when it was subscribed.
    pub version: u64,
    /// Changes to come.
    pub queue: mpsc::Receiver<Arc<WatchEvent>>,
    behind: Arc<AtomicBool>,
    /// A bookmark ends what comes first.
    pub marked: bool,
}

/// What a watch begins with.
#[derive(Clone, Debug)]
pub enum First {
    /// An object that is there.
    There(Arc<Value>),
    /// A change that it has not seen.
    Changed(Arc<WatchEvent>),
}

impl Subscription {
    /// Its queue was full once: it has missed something.
    pub fn is_behind(&self) -> bool {
        self.behind.load(Ordering::SeqCst)
    }
}

/// Whom a watch is for.
#[derive(Clone, Debug)]
pub struct Interest {
    /// Which kind.
    pub kind: &'static str,
    /// In this namespace; empty: in all.
    pub namespace: String,
    /// Only the object of this name.
    pub name: Option<String>,
}

impl Interest {
    /// The object is one of them.
    pub fn takes(&self, object: &Value) -> bool {
        let metadata = &object["metadata"];
        let in_place = self.namespace.is_empty() || metadata["namespace"] == *self.namespace;
        in_place && self.name.as_ref().is_none_or(|name| metadata["name"] == **name)
    }
}

impl WatchCache {
    /// One that keeps so many changes, gives each watcher a queue of that length, and takes so many watchers.
    pub fn new(kept: usize, queue: usize, most_watchers: usize) -> WatchCache {
        WatchCache {
            events: VecDeque::new(),
            kept,
            forgotten: 0,
            last: BTreeMap::new(),
            watchers: Vec::new(),
            queue,
            most_watchers,
            dropped: 0,
        }
    }

    /// Goes on from what there was at that version, before the changes that are kept.
    pub fn begin(&mut self, version: u64, there: impl Iterator<Item = (Place, Arc<Value>)>) {
        self.forgotten = version;
        self.last = there.collect();
    }

    /// How many changes it keeps.
    pub fn most(&self) -> usize {
        self.kept
    }

    /// The version of the newest change that is kept no more.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The changes that are kept.
    pub fn events(&self) -> impl Iterator<Item = &Arc<WatchEvent>> {
        self.events.iter()
    }

    /// Keeps a change. `object` is as watchers may see it.
    pub fn keep(&mut self, change: &Change, object: Arc<Value>) -> Arc<WatchEvent> {
        let text = |field: &str| Name::from(object["metadata"][field].as_str().unwrap_or_default());
        let place = (change.kind.clone(), text("namespace"), text("name"));
        let old = match change.change {
            ChangeType::Added | ChangeType::Modified => self.last.insert(place, object.clone()),
            ChangeType::Deleted => self.last.remove(&place),
        };
        self.push(change.resource_version, change.kind.clone(), change.change, object, old)
    }

    /// Keeps a change of which is known what was before it.
    pub fn push(
        &mut self,
        version: u64,
        kind: Name,
        change: ChangeType,
        object: Arc<Value>,
        old: Option<Arc<Value>>,
    ) -> Arc<WatchEvent> {
        let event = Arc::new(WatchEvent { version, kind, change, object, old, frame: OnceLock::new() });
        self.events.push_back(event.clone());
        while self.events.len() > self.kept {
            self.forgotten = self.events.pop_front().map_or(self.forgotten, |gone| gone.version);
        }
        event
    }

    /// The objects of a kind as they were at that version, from what they are now: what came later is undone.
    pub fn as_of(
        &self,
        kind: &str,
        version: u64,
        now: impl Iterator<Item = Arc<Value>>,
    ) -> Result<Vec<Arc<Value>>, Failure> {
        if version < self.forgotten {
            return Err(Failure::expired(version, self.forgotten));
        }
        let place = |object: &Value| {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            (text("namespace"), text("name"))
        };
        let mut objects: BTreeMap<(String, String), Arc<Value>> =
            now.map(|object| (place(&object), object)).collect();
        let later = self.events.iter().rev().take_while(|event| event.version > version);
        for event in later.filter(|event| *event.kind == *kind) {
            match &event.old {
                Some(old) => objects.insert(place(old), old.clone()),
                None => objects.remove(&place(&event.object)),
            };
        }
        Ok(objects.into_values().collect())
    }

    /// Tells a change to whoever waits for it.
    pub fn tell(&mut self, event: &Arc<WatchEvent>) {
        let mut dropped = 0;
        self.watchers.retain(|watcher| {
            let interest = *watcher.kind == *event.kind
                && (watcher.namespace.is_empty()
                    || event.object["metadata"]["namespace"] == *watcher.namespace)
                && watcher.name.as_ref().is_none_or(|name| event.object["metadata"]["name"] == **name);
            if !interest {
                return true;
            }
            match watcher.queue.try_send(event.clone()) {
                Ok(()) => true,
                Err(mpsc::error::TrySendError::Closed(_)) => false,
                Err(mpsc::error::TrySendError::Full(_)) => {
                    watcher.behind.store(true, Ordering::SeqCst);
                    dropped += 1;
                    false
                }
            }
        });
        self.dropped += dropped;
    }

    /// A watch from a version on.
    pub fn subscribe(
        &mut self,
        interest: Interest,
        from: Option<u64>,
        version: u64,
    ) -> Result<Subscription, Failure> {
        self.watchers.retain(|watcher| !watcher.queue.is_closed());
        if self.watchers.len() >= self.most_watchers {
            return Err(Failure::too_many_requests("too many watches are open, please try again later", 1));
        }
        let first = match from {
            Some(from) if from < self.forgotten => return Err(Failure::expired(from, self.forgotten)),
            Some(from) => {
                let since = self.events.partition_point(|event| event.version <= from);
                let missed = self.events.iter().skip(since);
                let of_interest =
                    missed.filter(|event| *event.kind == *interest.kind && interest.takes(&event.object));
                of_interest.cloned().map(First::Changed).collect()
            }
            None => Vec::new(),
        };
        let (sender, queue) = mpsc::channel(self.queue);
        let behind = Arc::new(AtomicBool::new(false));
        let Interest { kind, namespace, name } = interest;
        self.watchers.push(Watcher { kind, namespace, name, queue: sender, behind: behind.clone() });
        Ok(Subscription { first, version, queue, behind, marked: false })
    }

    /// How many watch.
    pub fn watchers(&self) -> usize {
        self.watchers.iter().filter(|watcher| !watcher.queue.is_closed()).count()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn change(version: u64, name: &str) -> Change {
        let object = Arc::new(json!({"kind": "Pod", "metadata": {"name": name, "namespace": "default"}}));
        Change { resource_version: version, kind: "Pod".into(), change: ChangeType::Added, object }
    }

    fn all_pods() -> Interest {
        Interest { kind: "Pod", namespace: String::new(), name: None }
    }

    #[test]
    fn a_watcher_that_does_not_read_is_cut_off_and_the_others_are_not() {
        let mut cache = WatchCache::new(100, 2, 10);
        let mut slow = cache.subscribe(all_pods(), Some(0), 0).unwrap();
        let mut quick = cache.subscribe(all_pods(), Some(0), 0).unwrap();
        for version in 1..=3 {
            let made = change(version, "web");
            let event = cache.keep(&made, made.object.clone());
            cache.tell(&event);
            assert_eq!(quick.queue.try_recv().unwrap().version, version);
        }
        assert!(slow.is_behind() && !quick.is_behind());
        assert_eq!((cache.watchers(), cache.dropped), (1, 1));
        assert_eq!(slow.queue.try_recv().unwrap().version, 1, "what it was told stays");
    }

    #[test]
    fn a_version_that_is_no_longer_kept_has_expired() {
        let mut cache = WatchCache::new(2, 10, 10);
        for version in 1..=4 {
            let made = change(version, "web");
            cache.keep(&made, made.object.clone());
        }
        assert_eq!(cache.subscribe(all_pods(), Some(1), 4).unwrap_err().code, 410);
        let since = cache.subscribe(all_pods(), Some(2), 4).unwrap();
        assert_eq!(since.first.len(), 2);
    }

    #[test]
    fn an_earlier_version_is_what_it_was() {
        let mut cache = WatchCache::new(3, 10, 10);
        let object = |name: &str, n: u64| {
            Arc::new(json!({"kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "n": n}))
        };
        let changes = [
            (1, "a", ChangeType::Added),
            (2, "b", ChangeType::Added),
            (3, "a", ChangeType::Modified),
            (4, "b", ChangeType::Deleted),
        ];
        for (version, name, change) in changes {
            let object = object(name, version);
            let made = Change { resource_version: version, kind: "Pod".into(), change, object };
            cache.keep(&made, made.object.clone());
        }
        let as_of = |version: u64| {
            let now = std::iter::once(object("a", 3));
            cache
                .as_of("Pod", version, now)
                .map(|objects| objects.iter().map(|o| o["n"].clone()).collect::<Vec<_>>())
        };
        assert_eq!(as_of(4).unwrap(), [3]);
        assert_eq!(as_of(3).unwrap(), [3, 2]);
        assert_eq!(as_of(2).unwrap(), [1, 2]);
        assert_eq!(as_of(1).unwrap(), [1]);
        assert_eq!(as_of(0).unwrap_err().code, 410);
    }

    #[test]
    fn watchers_are_limited() {
        let mut cache = WatchCache::new(2, 10, 1);
        let first = cache.subscribe(all_pods(), None, 0).unwrap();
        assert_eq!(cache.subscribe(all_pods(), None, 0).unwrap_err().code, 429);
        drop(first);
        assert!(cache.subscribe(all_pods(), None, 0).is_ok());
    }
}
