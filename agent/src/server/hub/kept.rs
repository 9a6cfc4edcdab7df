//! What is kept beside the journal, so that the next start need not fold every request there was: the store with its latest
//! changes, and the history. Both are documents of JSON (their objects are), packed by the journal, each for the place in the
//! log up to which it is; what came later is folded on top. They are written by a thread of their own: they share the
//! objects with the loop, which none of them ever changes.

use super::super::history::archive::Archive;
use super::super::history::image::{HISTORY_FORM, HistoryImage};
use super::super::history::{HISTORY_STREAM, History};
use super::super::watch::{Place, WatchCache};
use super::{API_STREAM, Hub, Listener};
use crate::fault::Fault;
use crate::server::vault::Vault;
use nodefold_api::authorize::node_graph::NodeGraph;
use nodefold_api::{Api, ApiConfig, ApiEvent, Change, ChangeType, Stored};
use nodefold_core::ids::Name;
use nodefold_core::time::Time;
use nodefold_journal::{Error, Kept, Mark, Refused, Storage, kept};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::sync::Arc;
use std::thread::JoinHandle;

/// After so many requests and changes of the history both are written anew: less than a second of folding.
const OFTEN: u64 = 10_000;
/// The document's form. Another one gets another name, and those of the former are passed over.
const STORE_FORM: &str = "store 1";

/// The latest changes of the store, and what was stored before them.
#[derive(Clone, Debug)]
pub(super) struct Window {
    most: usize,
    /// The version of the newest change that has left.
    since: u64,
    before: BTreeMap<Place, Arc<Value>>,
    changes: VecDeque<Change>,
}

impl Window {
    pub fn new(most: usize) -> Window {
        Window { most, since: 0, before: BTreeMap::new(), changes: VecDeque::new() }
    }

    pub fn push(&mut self, change: Change) {
        self.changes.push_back(change);
        while self.changes.len() > self.most {
            let Some(oldest) = self.changes.pop_front() else { return };
            self.since = oldest.resource_version;
            let (place, object) = (place(&oldest.kind, &oldest.object), oldest.object);
            match oldest.change {
                ChangeType::Added | ChangeType::Modified => self.before.insert(place, object),
                ChangeType::Deleted => self.before.remove(&place),
            };
        }
    }

    /// What is stored after all of it.
    fn objects(&self) -> Vec<Arc<Value>> {
        let mut objects: BTreeMap<Place, &Arc<Value>> =
            self.before.iter().map(|(place, object)| (place.clone(), object)).collect();
        for change in &self.changes {
            match change.change {
                ChangeType::Added | ChangeType::Modified => {
                    objects.insert(place(&change.kind, &change.object), &change.object)
                }
                ChangeType::Deleted => objects.remove(&place(&change.kind, &change.object)),
            };
        }
        objects.into_values().cloned().collect()
    }
}

fn place(kind: &Name, object: &Value) -> Place {
    let text = |field: &str| Name::from(object["metadata"][field].as_str().unwrap_or_default());
    (kind.clone(), text("namespace"), text("name"))
}

/// The store's document.
#[derive(Serialize, Deserialize)]
struct StoreImage {
    stored: Stored,
    graph: NodeGraph,
    /// The latest time that a request had.
    at: Time,
    since: u64,
    before: Vec<(Name, Arc<Value>)>,
    changes: VecDeque<Change>,
}

impl StoreImage {
    fn of(api: &Api, graph: NodeGraph, window: Window, at: Time) -> StoreImage {
        let Window { since, before, changes, .. } = window;
        let before = before.into_iter().map(|((kind, ..), object)| (kind, object)).collect();
        StoreImage { stored: api.stored(), graph, at, since, before, changes }
    }
}

/// What the journal's requests make.
pub(super) struct StoreState {
    /// The store.
    pub api: Api,
    /// What the node may read.
    pub graph: NodeGraph,
    /// Its latest changes, as they are kept.
    pub window: Window,
    /// The same for watchers.
    pub cache: WatchCache,
    /// The latest time that a request had.
    pub at: Time,
    /// Records up to this one are in it.
    pub records: u64,
}

impl StoreState {
    /// The newest that was kept and can be used; otherwise that of a journal without requests. `cache` is empty, and keeps so
    /// many changes.
    pub fn open(
        storage: &Arc<dyn Storage>,
        config: ApiConfig,
        cache: WatchCache,
        vault: &Vault,
        listener: &mut dyn Listener,
    ) -> Result<StoreState, Fault> {
        let most = cache.most();
        let new = |cache| StoreState {
            api: Api::new(config.clone()),
            graph: NodeGraph::new(),
            window: Window::new(most),
            cache,
            at: Time(0),
            records: 0,
        };
        let Some((image, records)) = newest::<StoreImage>(storage, API_STREAM, STORE_FORM, listener)? else {
            return Ok(new(cache));
        };
        let StoreImage { stored, graph, at, since, before, changes } = image;
        let mut window = Window { since, ..Window::new(most) };
        window.before = before.into_iter().map(|(kind, object)| (place(&kind, &object), object)).collect();
        window.changes = changes;
        match Api::from_stored(config.clone(), &stored, window.objects()) {
            Ok(api) => {
                let mut cache = cache;
                cache
                    .begin(window.since, window.before.iter().map(|(of, o)| (of.clone(), vault.unsealed(o))));
                for change in &window.changes {
                    keep(&mut cache, change, vault);
                }
                Ok(StoreState { api, graph, window, cache, at, records })
            }
            Err(reason) => {
                listener.told(&format!("the store that was kept at record {records} is not used: {reason}"));
                Ok(new(cache))
            }
        }
    }

    /// A request of the journal, by its record.
    pub fn fold(&mut self, event: &ApiEvent, record: u64, vault: &Vault) {
        let seen = self.api.resource_version();
        self.at = event.at.max(self.at);
        self.records = record;
        self.api.apply(event);
        for change in self.api.watch_from(seen).into_iter().flatten() {
            self.graph.changed(change);
            keep(&mut self.cache, change, vault);
            self.window.push(change.clone());
        }
    }
}

fn keep(cache: &mut WatchCache, change: &Change, vault: &Vault) {
    let shown = match change.change {
        ChangeType::Deleted => change.object.clone(),
        ChangeType::Added | ChangeType::Modified => vault.unsealed(&change.object),
    };
    cache.keep(change, shown);
}

/// What the journal's records of the history make.
pub(super) struct HistoryState {
    /// The history.
    pub history: History,
    /// Its latest changes, for watchers.
    pub past: WatchCache,
    /// Records up to this one are in it.
    pub records: u64,
}

impl HistoryState {
    /// The newest that was kept and can be used, if the archive has what it does not remember; otherwise that of a journal
    /// without a history. `past` is empty.
    pub fn open(
        storage: &Arc<dyn Storage>,
        archive: &Archive,
        kept: usize,
        mut past: WatchCache,
        listener: &mut dyn Listener,
    ) -> Result<HistoryState, Fault> {
        match newest::<HistoryImage>(storage, HISTORY_STREAM, HISTORY_FORM, listener)? {
            Some((image, records)) if archive.covers(&image.history) => {
                past.begin(image.since, std::iter::empty());
                for told in image.told {
                    past.push(told.version, told.kind, told.change, told.object, told.old);
                }
                Ok(HistoryState { history: image.history.restored(kept), past, records })
            }
            Some(_) | None => Ok(HistoryState { history: History::new(kept), past, records: 0 }),
        }
    }
}

/// The newest document that can be used, and up to which record it is.
fn newest<D: DeserializeOwned>(
    storage: &Arc<dyn Storage>,
    stream: &str,
    form: &str,
    listener: &mut dyn Listener,
) -> Result<Option<(D, u64)>, Fault> {
    let (found, refused) = kept(storage, stream, form).map_err(|error| Fault::refused(error.to_string()))?;
    for Refused { file, reason } in refused {
        listener.told(&format!("{file} is not used, so that more of the journal is folded: {reason}"));
    }
    let Some(Kept { records, bytes }) = found else { return Ok(None) };
    match serde_json::from_slice(&bytes) {
        Ok(document) => Ok(Some((document, records))),
        Err(error) => {
            listener.told(&format!("what was kept of {stream:?} at record {records} can't be read: {error}"));
            Ok(None)
        }
    }
}

/// What waits to be kept, and what is being written.
#[derive(Default)]
pub(super) struct Keeper {
    /// So many requests and changes of the history are not in what was kept last.
    since: u64,
    writing: Option<JoinHandle<Result<(), String>>>,
}

impl Keeper {
    /// So many have to be folded by the next start if nothing is kept before.
    pub fn new(since: u64) -> Keeper {
        Keeper { since, writing: None }
    }

    /// One more has.
    pub fn one_more(&mut self) {
        self.since += 1;
    }

    /// Waits for what is being written.
    fn finish(&mut self, listener: &mut dyn Listener) {
        let Some(writing) = self.writing.take() else { return };
        let why = match writing.join() {
            Ok(Ok(())) => return,
            Ok(Err(why)) => why,
            Err(_) => "its thread panicked".to_owned(),
        };
        listener
            .told(&format!("what the journal makes was not kept, and the next start takes longer: {why}"));
    }
}

impl Hub {
    /// Keeps both, if it is time. Everything so far is durable.
    pub(super) fn keep_often(&mut self, listener: &mut dyn Listener) {
        if self.keeper.since >= OFTEN && self.keeper.writing.as_ref().is_none_or(JoinHandle::is_finished) {
            self.keeper.finish(listener);
            self.keep(listener);
        }
    }

    /// Keeps both at the end.
    pub(super) fn keep_last(&mut self, listener: &mut dyn Listener) {
        self.keeper.finish(listener);
        if self.keeper.since > 0 {
            self.keep(listener);
            self.keeper.finish(listener);
        }
    }

    fn keep(&mut self, listener: &mut dyn Listener) {
        let Some(mark) = self.driver.log_mut().mark() else { return };
        self.keeper.since = 0;
        let (api, graph, window, at) = (self.api.clone(), self.graph.clone(), self.window.clone(), self.now);
        let history = HistoryImage::of(&self.history, &self.past);
        let archive = self.archive.files();
        let write = move || {
            // What the history does not remember must not get lost after it.
            for file in archive {
                file.sync_data().map_err(|error| error.to_string())?;
            }
            let store = StoreImage::of(&api, graph, window, at);
            write_both(&mark, &store, &history).map_err(|error| error.to_string())
        };
        match std::thread::Builder::new().name("keeper".to_owned()).spawn(write) {
            Ok(writing) => self.keeper.writing = Some(writing),
            Err(error) => listener.told(&format!("what the journal makes is not kept: {error}")),
        }
    }
}

fn write_both(mark: &Mark, store: &StoreImage, history: &HistoryImage) -> Result<(), Error> {
    mark.keep(HISTORY_STREAM, HISTORY_FORM, |out| write(history, out))?;
    mark.keep(API_STREAM, STORE_FORM, |out| write(store, out))
}

fn write(document: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(out, document).map_err(io::Error::from)
}

#[cfg(test)]
mod tests;
