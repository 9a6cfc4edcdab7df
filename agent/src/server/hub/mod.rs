//! The node's loop behind the API: one thread that owns `Api`, the node's fold, the journal and what executes commands.
//! Requests come in through a channel. What a turn of the loop changes becomes durable in one write; only then is it seen:
//! answers, watches, the node's facts and their commands (write-ahead, DESIGN §8).

mod audit;
mod authorize;
mod begin;
mod change;
mod files;
mod kept;
mod node;
mod perform;
mod read;
mod recorder;
mod recover;

use super::ask::{Ask, How, Reply};
use super::failure::Failure;
use super::history::archive::Archive;
use super::history::{Entry, HISTORY_STREAM, History, What, derive};
use super::metrics::Metrics;
use super::vault::Vault;
use super::watch::{WatchCache, WatchEvent};
use crate::clock;
use crate::driver::Driver;
use crate::fault::Fault;
use crate::layout::Layout;
use crossbeam_channel::{Receiver, TryRecvError};
use files::StaticFiles;
use kept::{Keeper, Window};
use node::Link;
use nodefold_api::admission::attributes::User;
use nodefold_api::authorize::node_graph::NodeGraph;
use nodefold_api::authorize::rbac::Rbac;
use nodefold_api::{Api, ApiEvent, Change, ChangeType, Performed, Request, Response};
use nodefold_core::Backend;
use nodefold_core::command::Command;
use nodefold_core::config::FeatureGates;
use nodefold_core::event::Fact;
use nodefold_core::ids::{Name, ObjectRef, PodUid};
use nodefold_core::resources::ResourceList;
use nodefold_core::status::PodStatus;
use nodefold_core::time::{Nanos, Time};
use nodefold_journal::Writer;
use recorder::Recorder;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::oneshot;

pub use authorize::{MASTERS, path_allowed};

/// The stream of the API's requests among a journal's foreign records.
pub const API_STREAM: &str = "api";
/// The stream of what was asked, by whom, and whether it was allowed.
pub const AUDIT_STREAM: &str = "audit";

/// Requests that wait together become durable together, no more than this many.
const MOST_AT_ONCE: usize = 256;
/// How many turns in a row also take what the host has to tell.
const HEARS_BETWEEN: usize = 8;
/// Without anything else to wait for, the loop looks up this often.
const LONGEST_WAIT: Nanos = Nanos::secs(60);

/// What executes a node's commands behind a served API: this host, or a simulated one.
pub trait Host: Backend {
    /// Wakes `receive`, from any thread: it gives a `Tick` then.
    fn waker(&self) -> Waker;

    /// Which boot of the host this is: another one means that nothing runs any more.
    fn boot_id(&self) -> Result<u128, Fault>;

    /// An object that pods of this node may refer to: its bytes, or that it is not there (for this node).
    fn stored(&mut self, object: &ObjectRef, value: Option<&Arc<Value>>);

    /// What it has to give to pods.
    fn allocatable(&self) -> Result<ResourceList, Fault>;

    /// Adds to a status what containers left as their last words, which no fact carries.
    fn tell_last_words(&self, _pod: PodUid, _status: &mut PodStatus) {}

    /// The process that runs a program in a container; none if this host can't do that.
    fn exec(
        &self,
        _pod: PodUid,
        _container: &str,
        _command: Vec<String>,
        _tty: bool,
    ) -> Option<Result<std::process::Command, Fault>> {
        None
    }

    /// Nothing of a pod is left but what it wrote.
    fn left(&mut self, _namespace: &str, _name: &str, _pod: PodUid) {}

    /// What executes, in a word: `linux`, `sim`.
    fn name(&self) -> &'static str;

    /// Ends. What runs goes on, where it can.
    fn end(self: Box<Self>);
}

/// Wakes the loop.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// Hears what the node's loop does.
pub trait Listener {
    /// A fact was folded in.
    fn folded(&mut self, folded: &crate::driver::Folded);
    /// A request was answered: by whom, what, the status code.
    fn asked(&mut self, user: &str, what: &str, code: u16);
    /// Something that people should know and that is no fact.
    fn told(&mut self, text: &str);
}

/// What the loop is set up with.
#[derive(Clone, Debug)]
pub struct HubSettings {
    /// The node's directory.
    pub layout: Layout,
    /// The node's name.
    pub node_name: Name,
    /// Subresources of pods that are switched off.
    pub disabled_pod_subresources: Vec<Name>,
    /// The two KEPs' gates.
    pub gates: FeatureGates,
    /// Keys the digests that stand for secrets' bytes.
    pub content_key: [u8; 32],
    /// The version that the node reports.
    pub version: String,
    /// Where manifests of static pods are.
    pub manifests: Option<PathBuf>,
}

/// Who asks, and how it is to be taken.
#[derive(Copy, Clone)]
struct By<'a> {
    user: &'a User,
    how: &'a How,
}

/// The loop's state.
pub struct Hub {
    settings: HubSettings,
    api: Api,
    rbac: Rbac,
    graph: NodeGraph,
    driver: Driver<Writer>,
    host: Box<dyn Host>,
    link: Link,
    vault: Vault,
    cache: WatchCache,
    /// The store's latest changes, as they are kept beside the journal.
    window: Window,
    keeper: Keeper,
    /// Manifests of static pods.
    files: Option<StaticFiles>,
    recorder: Recorder,
    history: History,
    /// What it remembers no longer.
    archive: Archive,
    /// The history's latest changes, by its own version.
    past: WatchCache,
    metrics: Arc<Metrics>,
    /// Changes up to this version were taken up.
    seen: u64,
    /// Facts for the node, at the next turn.
    inbox: Vec<Fact>,
    /// Changes that watchers see when they are durable.
    untold: Vec<Arc<WatchEvent>>,
    /// The same of the history.
    untold_past: Vec<Arc<WatchEvent>>,
    /// Answers that are given when what they say is durable.
    unanswered: Vec<(oneshot::Sender<Reply>, Reply)>,
    /// What handlers add to the record of the request that is being answered.
    noted: BTreeMap<String, String>,
    /// Commands of this turn's facts.
    due: Vec<Command>,
    /// The latest time that was given to anything.
    now: Time,
}

impl Hub {
    /// Runs until somebody asks it to end.
    pub fn run(
        mut self,
        asks: &Receiver<Ask>,
        stop: &AtomicBool,
        listener: &mut dyn Listener,
    ) -> Result<(), Fault> {
        self.begin(listener)?;
        self.settle(listener)?;
        while !stop.load(Ordering::SeqCst) {
            let mut asked = 0;
            while asked < MOST_AT_ONCE {
                match asks.try_recv() {
                    Ok(ask) => self.ask(ask, listener)?,
                    Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
                }
                asked += 1;
            }
            self.read_files(listener)?;
            let idle = asked == 0 && self.inbox.is_empty();
            self.hear(if idle { self.longest_wait() } else { Nanos::ZERO });
            self.settle(listener)?;
        }
        self.driver.commit_beside().map_err(|error| Fault::uncertain(format!("the journal: {error}")))?;
        self.keep_last(listener);
        // Every watch ends.
        self.cache = WatchCache::new(0, 1, 0);
        self.past = WatchCache::new(0, 1, 0);
        self.host.end();
        let (mut node, writer) = self.driver.into_parts();
        writer.stop(&mut node).map(drop).map_err(|error| Fault::uncertain(error.to_string()))
    }

    fn longest_wait(&self) -> Nanos {
        let now = clock::now();
        self.driver.next_deadline().map_or(LONGEST_WAIT, |at| Nanos(at.since(now).0.min(LONGEST_WAIT.0)))
    }

    /// Takes what the host has to tell; waits no longer than this for the first of it.
    fn hear(&mut self, wait: Nanos) {
        let mut next = self.host.receive(wait);
        let mut heard = 0;
        while let Some(fact) = next {
            // Its wake-ups are no facts: a deadline of the node's own is.
            if fact != Fact::Tick {
                self.inbox.push(fact);
            }
            heard += 1;
            next = if heard < MOST_AT_ONCE { self.host.receive(Nanos::ZERO) } else { None };
        }
    }

    /// Until nothing follows from what was asked and heard: makes it durable, folds it, lets it be seen, executes.
    fn settle(&mut self, listener: &mut dyn Listener) -> Result<(), Fault> {
        for turn in 0.. {
            let now = clock::now().max(self.now);
            self.now = now;
            let mut facts = Vec::new();
            // A driver ticks before it tells (ARCHITECTURE, decision 3).
            if self.driver.next_deadline().is_some_and(|at| at <= now.max(self.driver.node().now())) {
                facts.push(Fact::Tick);
            }
            facts.append(&mut self.inbox);
            let failed = |error| Fault::uncertain(format!("the journal: {error}"));
            let (mut touched, mut exits) = (BTreeSet::new(), derive::Exits::new());
            if facts.is_empty() {
                self.driver.commit_beside().map_err(failed)?;
            } else {
                for folded in self.driver.tell(facts).map_err(failed)? {
                    self.metrics.folded(&folded.event.fact);
                    touched.extend(folded.touched.iter().copied());
                    derive::exit_of(&folded.event, &mut exits);
                    listener.folded(&folded);
                    self.due.extend(folded.commands);
                }
            }
            self.archive.take(&mut self.history)?;
            self.keep_often(listener);
            self.show();
            self.write_history(&touched, &exits)?;
            for command in std::mem::take(&mut self.due) {
                self.execute(command)?;
            }
            // What came meanwhile becomes durable with what follows from this turn; who asks waits for a few turns of it only.
            if turn < HEARS_BETWEEN {
                self.hear(Nanos::ZERO);
            }
            if self.inbox.is_empty() && self.untold.is_empty() && self.untold_past.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// What is durable may be seen.
    fn show(&mut self) {
        for event in std::mem::take(&mut self.untold) {
            self.cache.tell(&event);
        }
        for event in std::mem::take(&mut self.untold_past) {
            self.past.tell(&event);
        }
        for (reply, answer) in std::mem::take(&mut self.unanswered) {
            // Whoever asked may have gone.
            reply.send(answer).ok();
        }
        let watchers = self.cache.watchers() + self.past.watchers();
        self.metrics.watchers(watchers, self.cache.dropped + self.past.dropped);
    }

    /// What these pods' states tell that was not told yet. It is seen when it is durable: with the next turn's write.
    fn write_history(&mut self, touched: &BTreeSet<PodUid>, exits: &derive::Exits) -> Result<(), Fault> {
        let node = self.driver.node();
        let news = derive::news(&self.history, node, touched, exits, node.now());
        for what in news {
            // Whose object is still there may come again.
            if let What::Left { pod } = &what
                && self.api.pod_by_uid(*pod).is_some()
            {
                continue;
            }
            self.tell_history(what)?;
        }
        Ok(())
    }

    fn tell_history(&mut self, what: What) -> Result<(), Fault> {
        if let What::Left { pod } = &what
            && let Some((namespace, name)) = self.history.place(*pod)
        {
            self.host.left(&namespace, &name, *pod);
        }
        let entry = Entry { at: self.now, what };
        self.driver
            .log_mut()
            .append_foreign(self.now, HISTORY_STREAM, &entry.to_bytes())
            .map_err(|error| Fault::uncertain(error.to_string()))?;
        self.keeper.one_more();
        let told = take_in(&mut self.history, &mut self.past, &entry);
        self.untold_past.extend(told);
        Ok(())
    }

    fn ask(&mut self, ask: Ask, listener: &mut dyn Listener) -> Result<(), Fault> {
        self.now = clock::now().max(self.now);
        let Ask { user, impersonator, target, what, how, reply } = ask;
        if let super::ask::What::Refused { .. } = &what {
            let entry = audit::Entry::of(self.now, &user, None, &target, &what);
            listener.asked(&user.name, &entry.line(), entry.code);
            return self.record_asked(&entry);
        }
        let mut entry = audit::Entry::of(self.now, &user, impersonator.as_ref(), &target, &what);
        let kept = self.api.has_webhooks().then(|| what.clone());
        let answer = match self.authorized(&user, impersonator.as_ref(), &target, &what) {
            Ok(by) => {
                entry.by = by;
                entry.allowed = true;
                self.perform(By { user: &user, how: &how }, &target, what)?
            }
            Err(refused) => Reply::Refused(refused),
        };
        // Nothing is decided yet: it comes again, and then there is something to record.
        let answer = match (answer, kept) {
            (Reply::Refused(Failure { call: Some(call), .. }), Some(what)) => {
                // Whoever asked may have gone.
                reply.send(Reply::Call(Box::new((*call, what)))).ok();
                return Ok(());
            }
            (answer, _) => answer,
        };
        entry.code = audit::code_of(&answer);
        entry.annotations = std::mem::take(&mut self.noted);
        listener.asked(&user.name, &entry.line(), entry.code);
        self.record_asked(&entry)?;
        self.unanswered.push((reply, answer));
        Ok(())
    }

    fn record_asked(&mut self, entry: &audit::Entry) -> Result<(), Fault> {
        self.driver
            .log_mut()
            .append_foreign(self.now, AUDIT_STREAM, entry.to_json().as_bytes())
            .map_err(|error| Fault::uncertain(error.to_string()))
    }

    /// Lets a request change the store, and takes up what that changes.
    fn apply(&mut self, user: &str, request: Request) -> Result<Response, Fault> {
        self.take(&ApiEvent::new(self.now, request, user)).map(|performed| performed.response)
    }

    /// The same of a request as it came.
    fn take(&mut self, event: &ApiEvent) -> Result<Performed, Fault> {
        // The store holds no secret's bytes: live and folded again it is the same (S13).
        let sealed = event.sealed(&self.settings.content_key);
        let secret = match &event.request {
            Request::Create { object, .. } | Request::Update { object } => Some(object),
            Request::Dynamic { .. }
            | Request::Resize { .. }
            | Request::Ephemeral { .. }
            | Request::Delete { .. }
            | Request::Status { .. }
            | Request::PatchStatus { .. }
            | Request::Release { .. }
            | Request::NodeGates(_) => None,
        };
        let whole = secret.filter(|object| object["kind"] == "Secret").map(|secret| {
            let mut whole = secret.clone();
            nodefold_k8s::default_object(&mut whole);
            whole
        });
        let performed = self.api.perform(&sealed);
        let response = &performed.response;
        if response.is_ok() && !event.dry_run {
            // The bytes are kept before the record that says so is durable: a crash between leaves bytes of no secret.
            if let (Some(mut whole), Response::Ok { object, .. }) = (whole, response) {
                whole["metadata"]["name"] = object["metadata"]["name"].clone();
                whole["metadata"]["namespace"] = object["metadata"]["namespace"].clone();
                self.vault.put(&whole)?;
            }
            self.driver
                .log_mut()
                .append_foreign(self.now, API_STREAM, &sealed.to_bytes())
                .map_err(|error| Fault::uncertain(error.to_string()))?;
            self.keeper.one_more();
            if let Response::Ok { object, .. } = &response
                && asks_for_more(&sealed.request)
                && object["kind"] == "Pod"
                && let Some(what) = self.history.asked(&event.user.name, object)
            {
                self.tell_history(what)?;
            }
            self.take_up()?;
        }
        Ok(performed)
    }

    /// What changed in the store since the last time: for watchers, for the node, for roles.
    fn take_up(&mut self) -> Result<(), Fault> {
        let changes: Vec<Change> =
            self.api.watch_from(self.seen).map(|changes| changes.cloned().collect()).unwrap_or_default();
        self.seen = self.api.resource_version();
        for change in &changes {
            self.graph.changed(change);
            self.window.push(change.clone());
            let shown = self.vault.unsealed(&change.object);
            let event = self.cache.keep(change, shown);
            self.untold.push(event);
            if change.change == ChangeType::Deleted && &*change.kind == "Secret" {
                self.vault.forget(&change.object);
            }
            if matches!(&*change.kind, "Role" | "RoleBinding" | "ClusterRole" | "ClusterRoleBinding") {
                self.read_roles();
            }
            self.tell_node(change);
            // One that the node never heard of leaves nothing behind.
            if change.change == ChangeType::Deleted && &*change.kind == "Pod" {
                let pod =
                    nodefold_k8s::pod_uid(change.object["metadata"]["uid"].as_str().unwrap_or_default());
                if self.driver.node().pod(pod).is_none() && self.history.knows(pod) {
                    self.tell_history(What::Left { pod })?;
                }
            }
        }
        Ok(())
    }

    fn read_roles(&mut self) {
        let kinds = ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];
        self.rbac = Rbac::read(kinds.iter().flat_map(|kind| self.api.list(kind)).map(|object| &**object));
    }

    /// A UID that nobody had before.
    pub(super) fn new_uid() -> Result<PodUid, Fault> {
        let mut bytes = [0; 16];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
            .map_err(|error| Fault::transient(format!("draw a UID: {error}")))?;
        let bits = u128::from_be_bytes(bytes);
        // The version and variant bits of a random UUID.
        Ok(PodUid(bits & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62))
    }
}

/// A record of the history becomes part of it, and of what its watchers are told from.
fn take_in(history: &mut History, past: &mut WatchCache, entry: &Entry) -> Vec<Arc<WatchEvent>> {
    let changed = history.fold(entry).into_iter();
    changed
        .map(|changed| {
            let (object, old) = (Arc::new(changed.object), changed.old.map(Arc::new));
            past.push(changed.version, changed.kind.as_str().into(), changed.change, object, old)
        })
        .collect()
}

/// The request may want a pod to be otherwise than it was.
fn asks_for_more(request: &Request) -> bool {
    match request {
        Request::Create { .. }
        | Request::Update { .. }
        | Request::Dynamic { .. }
        | Request::Resize { .. }
        | Request::Ephemeral { .. } => true,
        Request::Delete { .. }
        | Request::Status { .. }
        | Request::PatchStatus { .. }
        | Request::Release { .. }
        | Request::NodeGates(_) => false,
    }
}
