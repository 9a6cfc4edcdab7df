//! The history as it is kept beside the journal: all that is remembered, and its latest changes, so that watches go on from
//! their version.

use super::super::watch::{WatchCache, WatchEvent};
use super::{Detail, History, Place, Subject};
use nodefold_api::ChangeType;
use nodefold_core::ids::Name;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The document's form. Another one gets another name, and those of the former are passed over.
pub const HISTORY_FORM: &str = "history 1";

/// The document.
#[derive(Serialize, Deserialize)]
pub struct HistoryImage {
    /// What is remembered.
    pub history: History,
    /// Changes up to this version are not among these.
    pub since: u64,
    /// The latest changes.
    pub told: Vec<Told>,
}

impl HistoryImage {
    /// Of the history as it is.
    pub fn of(history: &History, past: &WatchCache) -> HistoryImage {
        let told = past.events().map(|event| Told::of(event)).collect();
        HistoryImage { history: history.clone(), since: past.forgotten(), told }
    }
}

/// A change of the history as its watchers see it.
#[derive(Serialize, Deserialize)]
pub struct Told {
    /// The history's version that it made.
    pub version: u64,
    /// Of which kind.
    pub kind: Name,
    /// What happened.
    pub change: ChangeType,
    /// The object after it; before it, if deleted.
    pub object: Arc<Value>,
    /// The object before it.
    pub old: Option<Arc<Value>>,
}

impl Told {
    fn of(event: &WatchEvent) -> Told {
        let WatchEvent { version, kind, change, object, old, .. } = event;
        Told {
            version: *version,
            kind: kind.clone(),
            change: *change,
            object: object.clone(),
            old: old.clone(),
        }
    }
}

impl History {
    /// As it was before it was written: what follows from the rest is not in the document. Remembers so many of each kind.
    pub fn restored(mut self, kept: usize) -> History {
        self.kept = kept;
        // Episodes of a pod share its name.
        let mut places: BTreeSet<Arc<Place>> = self.pods.values().map(|known| known.place.clone()).collect();
        for shelf in self.shelves.values_mut() {
            let mut ended = Vec::new();
            for episode in shelf.episodes.values_mut() {
                match places.get(&episode.place) {
                    Some(place) => episode.place = place.clone(),
                    None => _ = places.insert(episode.place.clone()),
                }
                match episode.ended {
                    Some((_, version)) => ended.push((version, episode.born)),
                    None => {
                        let subject = match &episode.detail {
                            Detail::Container { id, .. } => Subject::Container(id.clone()),
                            Detail::Volume { id, .. } => Subject::Volume(id.clone()),
                            Detail::Allocation { .. } => Subject::Pod,
                        };
                        self.open.entry(episode.pod).or_default().insert(subject, episode.born);
                    }
                }
            }
            ended.sort_unstable();
            shelf.ended = ended.into_iter().map(|(_, born)| born).collect();
        }
        self
    }
}
