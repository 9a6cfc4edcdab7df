//! What the journal remembers: the node's state, and the store and the history with their latest changes, so that watches go on
//! from their version. All three begin with what was kept beside it and fold what came later.

use super::files::StaticFiles;
use super::kept::{HistoryState, Keeper, StoreState};
use super::node::Link;
use super::recorder::Recorder;
use super::{API_STREAM, Host, Hub, HubSettings, Listener, take_in};
use crate::driver::Driver;
use crate::fault::Fault;
use crate::server::history::archive::Archive;
use crate::server::history::{Entry, HISTORY_STREAM};
use crate::server::limits::Limits;
use crate::server::metrics::Metrics;
use crate::server::vault::Vault;
use crate::server::watch::WatchCache;
use nodefold_api::authorize::rbac::Rbac;
use nodefold_api::{ApiConfig, ApiEvent};
use nodefold_core::config::NodeFacts;
use nodefold_core::ids::Source;
use nodefold_core::{Config, Node};
use nodefold_journal::{Error, Files, Options, Position, Reader, Record, Writer, resume};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The hub, and what it was found in.
pub struct Opened {
    /// Ready to run.
    pub hub: Hub,
    /// How many requests of earlier lives were folded again: those that came after the store was kept.
    pub requests: u64,
}

impl Hub {
    /// Opens the journal, or begins one, and folds it.
    pub fn open(
        settings: HubSettings,
        limits: &Limits,
        durable: bool,
        host: Box<dyn Host>,
        metrics: Arc<Metrics>,
        listener: &mut dyn Listener,
    ) -> Result<Opened, Fault> {
        let wrong = |error: Error| Fault::refused(error.to_string());
        let config = Config {
            node_name: settings.node_name.clone(),
            node: NodeFacts { allocatable: host.allocatable()?, ..NodeFacts::default() },
            sources: vec![Source::Api, Source::File],
            ..Config::default()
        };
        let storage = Files::at(settings.layout.journal());
        let options = Options { sync: durable, ..Options::default() };
        let api_config = ApiConfig {
            gates: config.node.gates,
            node_name: settings.node_name.clone(),
            // The loop takes changes up after each request; the watch cache keeps them.
            changes_kept: 64,
            disabled_pod_subresources: settings.disabled_pod_subresources.clone(),
            ..ApiConfig::default()
        };
        let vault = Vault::open(&settings.layout.data().join("secrets"))?;
        let cache = |kept| WatchCache::new(kept, limits.watch_queue, limits.watchers);
        let (node, writer) = match resume::<Node>(storage.clone(), options.clone()) {
            Err(Error::NotAJournal { .. }) => {
                let mut node = Node::new(config.clone());
                let writer = Writer::create(storage.clone(), options, &config, &mut node).map_err(wrong)?;
                (node, writer)
            }
            Err(error) => return Err(wrong(error)),
            Ok(resumed) => {
                if let Some(difference) = resumed.difference() {
                    let what = "this version folds the journal otherwise than the one that wrote it";
                    listener.told(&format!("{what}: {difference}"));
                }
                if let Some(cut) = &resumed.report.cut {
                    listener.told(&format!("the journal's end was torn by a crash and is cut: {cut}"));
                }
                (resumed.fold, resumed.writer)
            }
        };
        let changes = cache(limits.changes_kept);
        let mut store = StoreState::open(&storage, api_config, changes, &vault, listener)?;
        let changes = cache(limits.changes_kept / 5);
        let mut archive = Archive::open(&settings.layout.journal())?;
        let mut history = HistoryState::open(&storage, &archive, limits.history_kept, changes, listener)?;
        let (mut requests, mut told) = (0, 0);
        let from = Position::Record(store.records.min(history.records) + 1);
        for entry in Reader::open_at(&storage, from).map_err(wrong)? {
            let entry = entry.map_err(wrong)?;
            let Record::Foreign(foreign) = entry.record else { continue };
            if foreign.stream == API_STREAM && entry.number > store.records {
                let event = ApiEvent::from_bytes(&foreign.bytes)
                    .map_err(|error| Fault::refused(format!("a request in the journal: {error}")))?;
                store.fold(&event, entry.number, &vault);
                requests += 1;
            } else if foreign.stream == HISTORY_STREAM && entry.number > history.records {
                let change = Entry::from_bytes(&foreign.bytes).map_err(|error| {
                    Fault::refused(format!("a record of the history in the journal: {error}"))
                })?;
                take_in(&mut history.history, &mut history.past, &change);
                archive.take(&mut history.history)?;
                told += 1;
            }
        }
        // Without syncs a machine's end may take more of the journal than of the archive.
        archive.cut(history.history.version())?;
        metrics.opened(requests);
        let StoreState { api, graph, window, cache, at, .. } = store;
        let HistoryState { history, past, .. } = history;
        let folded = node.event_count().0;
        let files = StaticFiles::watch(&settings, host.waker())?;
        let hub = Hub {
            settings,
            seen: api.resource_version(),
            api,
            rbac: Rbac::default(),
            graph,
            window,
            driver: Driver::new(node, writer, folded),
            host,
            link: Link::default(),
            vault,
            cache,
            recorder: Recorder::default(),
            history,
            archive,
            past,
            metrics,
            files,
            keeper: Keeper::new(requests + told),
            inbox: Vec::new(),
            untold: Vec::new(),
            untold_past: Vec::new(),
            unanswered: Vec::new(),
            noted: BTreeMap::new(),
            due: Vec::new(),
            now: at,
        };
        Ok(Opened { hub, requests })
    }
}
