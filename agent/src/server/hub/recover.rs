//! What the journal remembers: the node's state, and the store with its latest changes, so that watches go on from their
//! version. The store's requests are folded again from the first one.

use super::node::Link;
use super::recorder::Recorder;
use super::{API_STREAM, Host, Hub, HubSettings, Listener, take_in};
use crate::driver::Driver;
use crate::fault::Fault;
use crate::server::history::{Entry, HISTORY_STREAM, History};
use crate::server::limits::Limits;
use crate::server::metrics::Metrics;
use crate::server::vault::Vault;
use crate::server::watch::WatchCache;
use nodefold_api::authorize::node_graph::NodeGraph;
use nodefold_api::authorize::rbac::Rbac;
use nodefold_api::{Api, ApiConfig, ApiEvent, ChangeType};
use nodefold_core::config::NodeFacts;
use nodefold_core::ids::Source;
use nodefold_core::time::Time;
use nodefold_core::{Config, Node};
use nodefold_journal::{Error, Files, Options, Reader, Record, Writer, resume};
use std::sync::Arc;

/// The hub, and what it was found in.
pub struct Opened {
    /// Ready to run.
    pub hub: Hub,
    /// How many requests of earlier lives were folded again.
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
            sources: vec![Source::Api],
            ..Config::default()
        };
        let storage = Files::at(settings.layout.journal());
        let options = Options { sync: durable, ..Options::default() };
        let mut api = Api::new(ApiConfig {
            gates: config.node.gates,
            node_name: settings.node_name.clone(),
            // The loop takes changes up after each request; the watch cache keeps them.
            changes_kept: 64,
            disabled_pod_subresources: settings.disabled_pod_subresources.clone(),
            ..ApiConfig::default()
        });
        let vault = Vault::open(&settings.layout.data().join("secrets"))?;
        let mut cache = WatchCache::new(limits.changes_kept, limits.watch_queue, limits.watchers);
        let mut graph = NodeGraph::new();
        let mut history = History::new(limits.history_kept);
        let mut past = WatchCache::new(limits.changes_kept / 5, limits.watch_queue, limits.watchers);
        let (mut seen, mut requests, mut now) = (0, 0, Time(0));
        let (node, writer) = match resume::<Node>(storage.clone(), options.clone()) {
            Err(Error::NotAJournal { .. }) => {
                let mut node = Node::new(config.clone());
                let writer = Writer::create(storage, options, &config, &mut node).map_err(wrong)?;
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
                for entry in Reader::open(&storage).map_err(wrong)? {
                    let foreign = match entry.map_err(wrong)?.record {
                        Record::Foreign(foreign) if foreign.stream == API_STREAM => foreign,
                        Record::Foreign(foreign) if foreign.stream == HISTORY_STREAM => {
                            let entry = Entry::from_bytes(&foreign.bytes).map_err(|error| {
                                Fault::refused(format!("a record of the history in the journal: {error}"))
                            })?;
                            take_in(&mut history, &mut past, &entry);
                            continue;
                        }
                        Record::Foreign(_)
                        | Record::Fact(_)
                        | Record::Header(_)
                        | Record::BatchEnd(_)
                        | Record::Snapshot(_)
                        | Record::Skipped(_)
                        | Record::Note(_) => continue,
                    };
                    let event = ApiEvent::from_bytes(&foreign.bytes)
                        .map_err(|error| Fault::refused(format!("a request in the journal: {error}")))?;
                    now = event.at.max(now);
                    requests += 1;
                    api.apply(&event);
                    for change in api.watch_from(seen).into_iter().flatten() {
                        graph.changed(change);
                        let shown = match change.change {
                            ChangeType::Deleted => change.object.clone(),
                            ChangeType::Added | ChangeType::Modified => vault.unsealed(&change.object),
                        };
                        cache.keep(change, shown);
                    }
                    seen = api.resource_version();
                }
                (resumed.fold, resumed.writer)
            }
        };
        let folded = node.event_count().0;
        let hub = Hub {
            settings,
            api,
            rbac: Rbac::default(),
            graph,
            driver: Driver::new(node, writer, folded),
            host,
            link: Link::default(),
            vault,
            cache,
            recorder: Recorder::default(),
            history,
            past,
            metrics,
            seen,
            inbox: Vec::new(),
            untold: Vec::new(),
            untold_past: Vec::new(),
            unanswered: Vec::new(),
            due: Vec::new(),
            now,
        };
        Ok(Opened { hub, requests })
    }
}
