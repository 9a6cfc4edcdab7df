//! A node agent over a directory of manifests: facts from files, from the backend and from time; journal; fold; commands.
//! It may be killed at any moment: the next one folds the journal, finds what runs, and goes on.

use crate::backend::Linux;
use crate::clock;
use crate::credentials::LocalKey;
use crate::doctor::Allowed;
use crate::driver::{Driver, Folded, boot_id};
use crate::fault::{Attempt, Fault};
use crate::housekeeping::Habits;
use crate::images::Images;
use crate::layout::Layout;
use crate::manifests::Manifests;
use crate::objects::Objects;
use crate::runtime::Parts;
use crossbeam_channel::Sender;
use nodefold_core::api_write::ApiWrite;
use nodefold_core::command::Command;
use nodefold_core::config::NodeFacts;
use nodefold_core::event::{Fact, Mirror};
use nodefold_core::ids::{PodUid, Source};
use nodefold_core::resources::{ResourceList, ResourceName};
use nodefold_core::time::Nanos;
use nodefold_core::{Backend, Config, Node};
use nodefold_journal::{Files, Options, Writer, resume};
use rustix::fs::inotify;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Facts that wait together become durable together, no more than this many.
const MOST_AT_ONCE: usize = 256;
/// Without anything else to wait for, the loop looks up this often.
const LONGEST_WAIT: Nanos = Nanos::secs(60);

/// What an agent is started with.
pub struct Settings {
    /// The node's directory.
    pub layout: Layout,
    /// Its name.
    pub node_name: String,
    /// Where the manifests are.
    pub manifests: PathBuf,
    /// How it keeps house.
    pub habits: Habits,
    /// Directories, layouts and archives that stand for images.
    pub images: BTreeMap<String, PathBuf>,
    /// The program that is started as a shim.
    pub shim_program: PathBuf,
    /// That this process may be a node.
    pub allowed: Allowed,
}

/// Whoever wants the agent to end asks here.
#[derive(Clone)]
pub struct Stopper {
    asked: Arc<AtomicBool>,
    wake: Sender<Fact>,
}

impl Stopper {
    /// Ends the loop soon. What runs goes on.
    pub fn stop(&self) {
        self.asked.store(true, Ordering::SeqCst);
        // Time is a fact at any moment: it only wakes the loop.
        self.wake.send(Fact::Tick).ok();
    }
}

/// The agent.
pub struct Daemon {
    settings: Settings,
    driver: Driver<Writer>,
    backend: Linux,
    objects: Objects,
    manifests: Manifests,
    content_key: [u8; 32],
    /// The directory of manifests changed.
    files_changed: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    listed: bool,
    /// The statuses that are in files.
    written: BTreeMap<PodUid, String>,
}

/// Hears what the agent does.
pub trait Listener {
    /// A fact was folded in.
    fn folded(&mut self, folded: &Folded);
    /// Something that people should know and that is no fact.
    fn told(&mut self, text: &str);
}

impl Daemon {
    /// Opens the journal (or begins one), folds it, and connects to what runs.
    pub fn open(settings: Settings, listener: &mut dyn Listener) -> Result<Daemon, Fault> {
        let data = settings.layout.data();
        fs::create_dir_all(data).attempt(|| format!("make {}", data.display()))?;
        let config = Config {
            node_name: settings.node_name.as_str().into(),
            node: NodeFacts { allocatable: host_resources()?, ..NodeFacts::default() },
            sources: vec![Source::File],
            ..Config::default()
        };
        let (node, writer) = open_journal(&settings.layout, &config, listener)?;
        let objects = Objects::default();
        let parts = Parts {
            layout: settings.layout.clone(),
            node_name: config.node_name.clone(),
            allocatable: config.node.allocatable.clone(),
            images: Arc::new(Images::new(&settings.layout, settings.images.clone())),
            habits: settings.habits,
            issuer: Arc::new(LocalKey::at(settings.layout.data())),
            objects: objects.clone(),
            shim_program: settings.shim_program.clone(),
            allowed: settings.allowed.clone(),
        };
        let backend = Linux::open(parts, objects.clone())?;
        let content_key = content_key(data)?;
        let files_changed = Arc::new(AtomicBool::new(true));
        let wake = backend.sender();
        watch_files(&settings.manifests, files_changed.clone(), move || wake.send(Fact::Tick).is_ok())?;
        let folded = node.event_count().0;
        Ok(Daemon {
            settings,
            driver: Driver::new(node, writer, folded),
            backend,
            objects,
            manifests: Manifests::default(),
            content_key,
            files_changed,
            stop: Arc::default(),
            listed: false,
            written: BTreeMap::new(),
        })
    }

    /// How to end it from elsewhere.
    pub fn stopper(&self) -> Stopper {
        Stopper { asked: self.stop.clone(), wake: self.backend.sender() }
    }

    /// Runs until somebody asks it to end. The journal is then complete, and what runs goes on.
    pub fn run(mut self, listener: &mut dyn Listener) -> Result<(), Fault> {
        let boot_id = boot_id(&self.settings.layout)?;
        // With its first list of files, so that what the start makes due finds the objects that it needs.
        if let Ok(statuses) = crate::beneath::open_root(&self.settings.layout.data().join("status")) {
            crate::volumes::remove_drafts(&statuses)?;
        }
        self.write_statuses(self.pods_with_status())?;
        let mut first = vec![Fact::AgentStarted { boot_id }];
        self.files_changed.store(false, Ordering::SeqCst);
        self.read_files(&mut first, listener)?;
        self.tell(first, listener)?;
        while !self.stop.load(Ordering::SeqCst) {
            let mut facts = Vec::new();
            let now = clock::now().max(self.driver.node().now());
            let deadline = self.driver.next_deadline();
            // What is due is decided before anything new is told (ARCHITECTURE, "The hunt").
            if deadline.is_some_and(|at| at <= now) {
                facts.push(Fact::Tick);
            }
            if self.files_changed.swap(false, Ordering::SeqCst) {
                self.read_files(&mut facts, listener)?;
            }
            if facts.is_empty() {
                let wait = deadline.map_or(LONGEST_WAIT, |at| Nanos(at.since(now).0.min(LONGEST_WAIT.0)));
                facts.extend(self.backend.receive(wait));
            }
            while facts.len() < MOST_AT_ONCE {
                match self.backend.receive(Nanos::ZERO) {
                    Some(fact) => facts.push(fact),
                    None => break,
                }
            }
            if !facts.is_empty() {
                self.tell(facts, listener)?;
            }
        }
        self.backend.abandon();
        let (mut node, writer) = self.driver.into_parts();
        writer.stop(&mut node).map(drop).map_err(|error| Fault::uncertain(error.to_string()))
    }

    fn read_files(&mut self, facts: &mut Vec<Fact>, listener: &mut dyn Listener) -> Result<(), Fault> {
        let changes = self.manifests.read(&self.settings.manifests, &self.objects, &self.content_key)?;
        for problem in &changes.problems {
            listener.told(problem);
        }
        facts.extend(changes.facts);
        if !self.listed {
            self.listed = true;
            facts.push(Fact::SourceReady { source: Source::File });
        }
        Ok(())
    }

    /// Facts become durable, then folded, then their commands are executed.
    fn tell(&mut self, facts: Vec<Fact>, listener: &mut dyn Listener) -> Result<(), Fault> {
        // A handle that failed is poisoned: the agent ends, and is started again from disk (DESIGN §8).
        let done =
            self.driver.tell(facts).map_err(|error| Fault::uncertain(format!("the journal: {error}")))?;
        for folded in &done {
            listener.folded(folded);
        }
        for command in done.iter().flat_map(|folded| &folded.commands) {
            self.execute(command)?;
        }
        let of_facts = done.iter().filter_map(|folded| folded.event.fact.pod());
        let of_commands = done.iter().flat_map(|folded| folded.commands.iter().map(|command| command.pod));
        let of_moves = done.iter().flat_map(|folded| folded.transitions.iter().map(|moved| moved.pod));
        self.write_statuses(of_facts.chain(of_commands).chain(of_moves).collect())
    }

    fn execute(&mut self, command: &Command) -> Result<(), Fault> {
        let (op, pod) = (command.op, command.pod);
        match command.action.api_write() {
            // There is no API server: what people see is kept in files, below.
            Some(ApiWrite::Status { .. }) => {
                self.backend.sender().send(Fact::StatusWritten { op, pod }).ok();
            }
            // A static pod has no object that could be deleted: its file is gone already.
            Some(ApiWrite::Release) => {}
            // Where there is no API server, the status file is the mirror.
            Some(ApiWrite::CreateMirror { pod: shown }) => {
                let (namespace, name) = (shown.namespace.clone(), shown.name.clone());
                let uid = PodUid(nodefold_core::codec::hash(&(shown.uid, "mirror")).0);
                let mirror = Mirror { uid, of: shown.uid, deleting: false };
                self.backend.sender().send(Fact::MirrorCreated { op, namespace, name, mirror }).ok();
            }
            Some(ApiWrite::DeleteMirror { namespace, name }) => {
                let (namespace, name) = (namespace.clone(), name.clone());
                self.backend.sender().send(Fact::MirrorDeleted { op, namespace, name, mirror: pod }).ok();
            }
            Some(ApiWrite::Event(_)) | None => self.backend.submit(command),
        }
        Ok(())
    }

    /// The pods of which an earlier agent left a status.
    fn pods_with_status(&self) -> BTreeSet<PodUid> {
        let entries =
            fs::read_dir(self.settings.layout.data().join("status")).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter_map(|name| PodUid::parse_uuid(name.strip_suffix(".json")?)).collect()
    }

    /// What people see of the pods that something was told of, for `ps`: there is no API server to keep it.
    fn write_statuses(&mut self, touched: BTreeSet<PodUid>) -> Result<(), Fault> {
        let dir = self.settings.layout.data().join("status");
        for uid in touched {
            let file = format!("{uid}.json");
            let node = self.driver.node();
            let (Some(pod), Some(mut status)) = (node.desired(uid), node.status(uid)) else {
                // Written by this agent or by one before it.
                self.written.remove(&uid);
                fs::remove_file(dir.join(&file)).ok();
                continue;
            };
            self.backend.runtime().tell_last_words(uid, &mut status);
            let object = serde_json::json!({
                "metadata": {"namespace": &*pod.namespace, "name": &*pod.name, "uid": uid.to_string()},
                "status": nodefold_k8s::status_to_json(&status, uid),
            });
            let text = object.to_string();
            if self.written.get(&uid) != Some(&text) {
                fs::create_dir_all(&dir).attempt(|| format!("make {}", dir.display()))?;
                crate::volumes::write_whole(&crate::beneath::open_root(&dir)?, &file, text.as_bytes())?;
                self.written.insert(uid, text);
            }
        }
        Ok(())
    }
}

fn open_journal(
    layout: &Layout,
    config: &Config,
    listener: &mut dyn Listener,
) -> Result<(Node, Writer), Fault> {
    let dir = layout.journal();
    let wrong = |error: nodefold_journal::Error| Fault::refused(error.to_string());
    let storage = Files::at(&dir);
    let resumed = match resume::<Node>(storage.clone(), Options::default()) {
        // The first start, or one that died before its first record.
        Err(nodefold_journal::Error::NotAJournal { .. }) => {
            let mut node = Node::new(config.clone());
            let writer = Writer::create(storage, Options::default(), config, &mut node).map_err(wrong)?;
            return Ok((node, writer));
        }
        resumed => resumed.map_err(wrong)?,
    };
    if let Some(difference) = resumed.difference() {
        listener.told(&format!(
            "this version folds the journal otherwise than the one that wrote it: {difference}"
        ));
    }
    if let Some(cut) = &resumed.report.cut {
        listener.told(&format!("the journal's end was torn by a crash and is cut: {cut}"));
    }
    Ok((resumed.fold, resumed.writer))
}

/// What this host has to give: its processors and memory.
pub(crate) fn host_resources() -> Result<ResourceList, Fault> {
    let cpus = std::thread::available_parallelism().attempt(|| "count the processors")?.get() as u64;
    let text = fs::read_to_string("/proc/meminfo").attempt(|| "read /proc/meminfo")?;
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok())
        .ok_or_else(|| Fault::refused("/proc/meminfo does not tell MemTotal"))?;
    let pairs =
        [(ResourceName::Cpu, cpus * 1000), (ResourceName::Memory, kib * 1024), (ResourceName::Pods, 110)];
    Ok(ResourceList::from_pairs(pairs))
}

/// The key of the digests that stand for secrets' bytes in the journal: made once for a node, and nobody else's.
pub(crate) fn content_key(data: &Path) -> Result<[u8; 32], Fault> {
    let dir = crate::beneath::open_root(data)?;
    let path = data.join("content.key");
    if let Ok(bytes) = fs::read(&path)
        && let Ok(key) = bytes.try_into()
    {
        return Ok(key);
    }
    let mut key = [0; 32];
    rustix::rand::getrandom(&mut key, rustix::rand::GetRandomFlags::empty()).attempt(|| "draw a key")?;
    crate::volumes::write_whole(&dir, "content.key", &key)?;
    Ok(key)
}

/// Wakes the loop whenever a manifest changes.
pub(crate) fn watch_files(
    dir: &Path,
    changed: Arc<AtomicBool>,
    wake: impl Fn() -> bool + Send + 'static,
) -> Result<(), Fault> {
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC).attempt(|| "watch the manifests")?;
    let what = inotify::WatchFlags::CLOSE_WRITE
        | inotify::WatchFlags::MOVED_TO
        | inotify::WatchFlags::MOVED_FROM
        | inotify::WatchFlags::DELETE;
    inotify::add_watch(&watch, dir, what).attempt(|| format!("watch {}", dir.display()))?;
    let run = move || {
        let mut buffer = [0; 4096];
        while rustix::io::read(&watch, &mut buffer).is_ok() {
            changed.store(true, Ordering::SeqCst);
            if !wake() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("manifests".into()).spawn(run).map(drop).attempt(|| "start a thread")
}
