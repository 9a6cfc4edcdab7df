//! The core follows a trace: it is fed the facts, and each completion is given the operation that the core itself had
//! asked for. What comes out is a list of events that folds (a journal of a foreign node), and where the two part: what the
//! node did and the core would not, what the core asked for and the node never did.

mod answers;
mod spec;

use crate::evidence::{Payload, Witness};
use crate::judge::View;
use crate::stamp::{Moment, SECOND};
use crate::trace::{ContainerIx, Entry, PodIx, Trace};
use crate::verb::Verb;
use answers::{Asked, What};
use nodefold_core::command::Commands;
use nodefold_core::event::{ErrorClass, Event, Exit, Fact, OpError, ProbeKind};
use nodefold_core::ids::{ContainerId, Name, OpId, PodUid, Source, VolumeId};
use nodefold_core::spec::{Deletion, Pod};
use nodefold_core::time::{Nanos, Time};
use nodefold_core::{Config, Node};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Who did what the other would not.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The node did it, the core would not have.
    Node,
    /// The core asked for it, the node never did it.
    Core,
}

/// Where node and core part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parting {
    /// When.
    pub at: Moment,
    /// Who.
    pub side: Side,
    /// In which pod.
    pub pod: PodIx,
    /// What, in a few words.
    pub what: String,
    /// The node's entry, if it was the node.
    pub entry: Option<usize>,
}

/// What following made.
#[derive(Debug)]
pub struct Followed {
    /// The configuration that the events fold under.
    pub config: Config,
    /// The facts, in order, each completion with the core's own operation.
    pub events: Vec<Event>,
    /// Where the two part.
    pub partings: Vec<Parting>,
    /// Pods of which no object is in the evidence: their specs were made up from what happened to them.
    pub without_spec: usize,
}

/// A container as the runtime would list it.
#[derive(Clone, Debug)]
enum Stage {
    Created,
    Running(Time),
    Exited(Exit),
}

struct Follower<'a> {
    trace: &'a Trace,
    view: View<'a>,
    node: Node,
    out: Commands,
    events: Vec<Event>,
    now: Time,
    /// Asked by the core, not yet done by the node.
    asked: BTreeMap<(PodUid, What), Asked>,
    /// Done by the node before the core asked.
    early: BTreeMap<(PodUid, What), usize>,
    /// Pods of which an operation failed: both sides try again, each after its own back-off, and the rest follows.
    failed: BTreeSet<PodUid>,
    /// Pods that the core saw go.
    gone: BTreeSet<PodIx>,
    due: VecDeque<Fact>,
    pods: BTreeMap<PodUid, PodIx>,
    desired: BTreeMap<PodIx, Arc<Pod>>,
    mounted: BTreeMap<(PodUid, Name), VolumeId>,
    sandboxes: BTreeMap<PodUid, (u32, bool)>,
    containers: BTreeMap<(PodUid, Name), (ContainerId, Stage)>,
    ended: BTreeSet<ContainerIx>,
    runs: BTreeSet<(u32, u64)>,
    with_objects: BTreeSet<PodIx>,
    without_spec: BTreeSet<PodIx>,
}

/// Lets the core follow a trace.
pub fn follow(trace: &Trace) -> Followed {
    let config = Config::default();
    let mut f = Follower {
        trace,
        view: View::new(trace),
        node: Node::new(config.clone()),
        out: Commands::default(),
        events: Vec::new(),
        now: Time(0),
        asked: BTreeMap::new(),
        early: BTreeMap::new(),
        failed: BTreeSet::new(),
        gone: BTreeSet::new(),
        due: VecDeque::new(),
        pods: BTreeMap::new(),
        desired: BTreeMap::new(),
        mounted: BTreeMap::new(),
        sandboxes: BTreeMap::new(),
        containers: BTreeMap::new(),
        ended: BTreeSet::new(),
        runs: BTreeSet::new(),
        with_objects: BTreeSet::new(),
        without_spec: BTreeSet::new(),
    };
    for entry in &trace.entries {
        if let (Some(pod), Payload::Object(object)) = (entry.pod, &*entry.payload)
            && object.pod.is_some()
        {
            f.with_objects.insert(pod);
        }
    }
    // Events are late and compressed: what they tell finer witnesses tell better.
    let told = |e: &Entry| !e.untimed && e.witness != Witness::Events;
    for (i, entry) in trace.entries.iter().enumerate().filter(|(_, e)| told(e)) {
        f.begin(entry);
        f.entry(i, entry);
    }
    f.finish(config)
}

fn error(message: &Payload) -> OpError {
    let text = message.text().cloned().unwrap_or_else(|| "".into());
    OpError { class: ErrorClass::Transient, reason: None, message: text }
}

impl Follower<'_> {
    fn uid(&mut self, pod: PodIx) -> PodUid {
        let life = self.trace.pod(pod);
        let text = match &life.uid {
            Some(uid) => uid.to_string(),
            // A pod without a UID in view gets one of its own: its name's, and its place among the pods.
            None => format!("{}#{}", self.trace.pod_name(pod), pod.0),
        };
        let uid = nodefold_k8s::pod_uid(&text);
        self.pods.insert(uid, pod);
        uid
    }

    /// Gives the core a fact, and answers what it asks for because of it.
    fn fact(&mut self, fact: Fact) {
        /// One entry brings about a few answers; a loop would be the core's bug and must not be ours.
        const MOST: usize = 10_000;
        self.due.push_back(fact);
        let mut given = 0;
        while let Some(fact) = self.due.pop_front() {
            let event = Event { at: self.now, fact };
            self.out.clear();
            self.node.apply(&event, &mut self.out);
            self.events.push(event);
            for command in std::mem::take(&mut self.out.commands) {
                self.answer(&command);
            }
            given += 1;
            if given > MOST {
                self.due.clear();
            }
        }
    }

    /// Time goes on, and a new run of the kubelet is a new epoch.
    fn begin(&mut self, entry: &Entry) {
        self.now = self.now.max(Time(u64::try_from(entry.at.0).unwrap_or(0)));
        let first = self.events.is_empty();
        let new_run =
            entry.witness == Witness::Kubelet && entry.pid != 0 && self.runs.insert((entry.host, entry.pid));
        let again = new_run && self.runs.len() > 1;
        if !first && !again {
            return;
        }
        self.asked.clear();
        self.fact(Fact::AgentStarted { boot_id: 1 });
        for pod in self.desired.values().cloned().collect::<Vec<_>>() {
            self.fact(Fact::PodApplied(pod));
        }
        self.fact(Fact::SourceReady { source: Source::Api });
        self.fact(Fact::SourceReady { source: Source::File });
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "names the few verbs it reads; the others say nothing to it"
    )]
    fn entry(&mut self, i: usize, entry: &Entry) {
        let Some(pod) = entry.pod else { return };
        let uid = self.uid(pod);
        self.desire(pod, entry);
        if !self.desired.contains_key(&pod) {
            // Leftovers of a life before the evidence: nobody could follow that. But nothing may start for a pod that
            // the core saw go.
            self.after_the_end(i, entry, pod, uid);
            return;
        }
        match entry.verb {
            Verb::PodRemoved | Verb::PodDeleted => {
                // The API's word is the node's only where the node's own is not in the evidence.
                let own = entry.verb == Verb::PodRemoved || self.trace.runs.is_empty();
                if own && self.desired.remove(&pod).is_some() {
                    self.fact(Fact::PodRemoved { pod: uid });
                    self.gone.insert(pod);
                    self.over(uid);
                }
            }
            Verb::Mounted => self.volume(i, entry, uid, What::Mount),
            Verb::Unmounted => self.volume(i, entry, uid, What::Unmount),
            Verb::MountFailed | Verb::UnmountFailed => self.volume_failed(entry, uid),
            // Several words for one deed: the first counts.
            Verb::SandboxCreated | Verb::SandboxStarted | Verb::SandboxRunning
                if !self.sandboxes.get(&uid).is_some_and(|(_, ready)| *ready) =>
            {
                self.done(i, uid, What::Sandbox);
            }
            Verb::SandboxDead | Verb::SandboxExited | Verb::SandboxStopped => self.sandbox_over(uid),
            Verb::ContainerCreated => self.container(i, entry, uid, What::Create),
            Verb::ContainerStarted | Verb::ContainerRunning => {
                self.container(i, entry, uid, What::Create);
                self.container(i, entry, uid, What::Start);
            }
            Verb::ContainerDead | Verb::ContainerExited | Verb::StopReturned => self.exited(entry, uid),
            Verb::KillPlanned
                if entry.payload.text().is_some_and(|t| t.contains("failed liveness probe")) =>
            {
                self.liveness(entry, uid);
            }
            _ => {}
        }
    }

    /// What the entry says of the pod's desired state.
    fn desire(&mut self, pod: PodIx, entry: &Entry) {
        let object = entry.payload.object().filter(|_| entry.verb != Verb::PodDeleted);
        let told = object.and_then(|o| o.pod.clone());
        if let Some(told) = told {
            let changed = self.desired.get(&pod).is_none_or(|old| {
                told.generation >= old.generation && (old.spec != told.spec || old.deletion != told.deletion)
            });
            let gone =
                !self.desired.contains_key(&pod) && told.deletion.is_some_and(|d| d.grace == Nanos::ZERO);
            if changed && !gone {
                self.desired.insert(pod, told.clone());
                self.fact(Fact::PodApplied(told));
            }
            return;
        }
        if self.with_objects.contains(&pod) {
            return;
        }
        let gone = matches!(entry.verb, Verb::PodRemoved | Verb::PodReleased | Verb::PodDeleted);
        let comes =
            [Verb::PodAdded, Verb::PodReceived, Verb::FirstSync, Verb::MountStarted, Verb::CreateStarted];
        if !self.desired.contains_key(&pod)
            && !gone
            && self.view.story(pod).first(&self.view, &comes).is_some()
            && entry.witness == Witness::Kubelet
            && entry.verb != Verb::ContainerGone
        {
            let uid = self.uid(pod);
            let made = Arc::new(spec::made_up(&self.view, pod, uid, self.now));
            self.without_spec.insert(pod);
            self.desired.insert(pod, made.clone());
            self.fact(Fact::PodApplied(made));
        }
        if entry.verb == Verb::DeleteSeen
            && let Some(known) = self.desired.get(&pod).filter(|p| p.deletion.is_none())
        {
            let mut ending = Pod::clone(known);
            ending.generation += 1;
            ending.deletion = Some(Deletion { requested_at: self.now, grace: ending.spec.termination_grace });
            let ending = Arc::new(ending);
            self.desired.insert(pod, ending.clone());
            self.fact(Fact::PodApplied(ending));
        }
    }

    fn after_the_end(&mut self, i: usize, entry: &Entry, pod: PodIx, uid: PodUid) {
        let Some(c) = entry.container.filter(|c| self.gone.contains(&pod) && !self.ended.contains(c)) else {
            return;
        };
        if entry.verb == Verb::ContainerStarted
            && let Some(name) = self.trace.container(c).name.clone()
        {
            self.early.entry((uid, What::Start(name))).or_insert(i);
        }
    }

    /// A pod is gone: what was asked for it is moot, and what the node did sooner than the core's back-off is no parting.
    fn over(&mut self, pod: PodUid) {
        self.asked.retain(|(uid, _), _| *uid != pod);
        if self.failed.remove(&pod) {
            self.early.retain(|(uid, _), _| *uid != pod);
        }
    }

    /// The node did something: the core's operation is done, or will be as soon as it asks.
    fn done(&mut self, i: usize, pod: PodUid, what: What) {
        match self.asked.remove(&(pod, what.clone())) {
            Some(asked) => {
                if let Some(fact) = self.completion(pod, &what, asked) {
                    self.fact(fact);
                }
            }
            None => {
                self.early.entry((pod, what)).or_insert(i);
            }
        }
    }

    fn volume(&mut self, i: usize, entry: &Entry, pod: PodUid, what: fn(Name) -> What) {
        let Some(name) = entry.volume.and_then(|v| self.trace.volume(v).name.clone()) else { return };
        let mounted = self.mounted.contains_key(&(pod, name.clone()));
        let mounts = entry.verb == Verb::Mounted;
        // A refresh is told in the words of a mount, and an unmount of what isn't there says nothing new.
        if mounts != mounted {
            self.done(i, pod, what(name));
        }
    }

    fn volume_failed(&mut self, entry: &Entry, pod: PodUid) {
        let Some(name) = entry.volume.and_then(|v| self.trace.volume(v).name.clone()) else { return };
        let mounts = entry.verb == Verb::MountFailed;
        let what = if mounts { What::Mount(name) } else { What::Unmount(name) };
        self.failed.insert(pod);
        if let Some(Asked { op, volume: Some(volume), .. }) = self.asked.remove(&(pod, what)) {
            let error = error(&entry.payload);
            self.fact(if mounts {
                Fact::VolumeMountFailed { op, pod, volume, error }
            } else {
                Fact::VolumeUnmountFailed { op, pod, volume, error }
            });
        }
    }

    fn sandbox_over(&mut self, pod: PodUid) {
        if let Some((attempt, ready)) = self.sandboxes.get(&pod).copied()
            && ready
        {
            self.sandboxes.insert(pod, (attempt, false));
            self.asked.remove(&(pod, What::StopSandbox));
            self.fact(Fact::SandboxStopped { pod, attempt });
        }
    }

    fn container(&mut self, i: usize, entry: &Entry, pod: PodUid, what: fn(Name) -> What) {
        let Some(c) = entry.container else { return };
        let Some(name) = self.trace.container(c).name.clone() else { return };
        if self.ended.contains(&c) {
            return;
        }
        let stage = self.containers.get(&(pod, name.clone())).map(|(_, s)| s.clone());
        let news = match (what(name.clone()), stage) {
            (What::Create(_), Some(Stage::Created | Stage::Running(_)))
            | (What::Start(_), Some(Stage::Running(_))) => false,
            // Several words for one deed: the first counts.
            (w, _) => !self.early.contains_key(&(pod, w)),
        };
        if news {
            self.done(i, pod, what(name));
        }
    }

    fn exited(&mut self, entry: &Entry, pod: PodUid) {
        let Some(c) = entry.container.filter(|c| self.ended.insert(*c)) else { return };
        let life = self.trace.container(c);
        let Some(name) = life.name.clone() else { return };
        self.early.remove(&(pod, What::Create(name.clone())));
        self.early.remove(&(pod, What::Start(name.clone())));
        let Some((id, stage)) = self.containers.get(&(pod, name.clone())).cloned() else { return };
        let started_at = match stage {
            Stage::Running(at) => Some(at),
            Stage::Created => None,
            Stage::Exited(_) => return,
        };
        let code = match entry.payload.exit_code() {
            Some(code) => i32::try_from(code).unwrap_or(137),
            None => self.exit_code(c).unwrap_or(137),
        };
        let reason = if code == 0 { "Completed" } else { "Error" };
        let at = life.finished_at.map_or(self.now, |m| Time(u64::try_from(m.0).unwrap_or(0)).min(self.now));
        let exit = Exit { code, signal: None, reason: reason.into(), started_at, finished_at: at };
        self.containers.insert((pod, name.clone()), (id.clone(), Stage::Exited(exit.clone())));
        self.asked.remove(&(pod, What::Stop(name)));
        self.fact(Fact::ContainerExited { pod, container: id, exit });
    }

    /// The exit code that any line tells of this instance.
    fn exit_code(&self, c: ContainerIx) -> Option<i32> {
        let own = self.view.of_container(c).iter().map(|i| &*self.trace.entries[*i].payload);
        own.filter_map(Payload::exit_code).map(|c| i32::try_from(c).unwrap_or(137)).next()
    }

    fn liveness(&mut self, entry: &Entry, pod: PodUid) {
        let Some(name) = entry.container.and_then(|c| self.trace.container(c).name.clone()) else { return };
        if let Some((container, Stage::Running(_))) = self.containers.get(&(pod, name)).cloned() {
            let message = entry.payload.text().cloned().unwrap_or_else(|| "".into());
            self.fact(Fact::ProbeResult {
                pod,
                container,
                probe: ProbeKind::Liveness,
                passed: false,
                message,
            });
        }
    }

    /// What is left over is where the two part.
    fn finish(mut self, config: Config) -> Followed {
        /// What was asked for just before the end may be under way.
        const PATIENCE: i64 = 5 * SECOND;
        let mut partings = Vec::new();
        for ((uid, what), i) in std::mem::take(&mut self.early) {
            let Some(pod) = self.pods.get(&uid).copied() else { continue };
            let entry = &self.trace.entries[i];
            partings.push(Parting {
                at: entry.at,
                side: Side::Node,
                pod,
                what: what.describe(),
                entry: Some(i),
            });
        }
        for ((uid, what), asked) in std::mem::take(&mut self.asked) {
            let Some(pod) = self.pods.get(&uid).copied() else { continue };
            let at = Moment(i64::try_from(asked.at.0).unwrap_or(i64::MAX));
            if self.view.end.since(at) > PATIENCE {
                partings.push(Parting { at, side: Side::Core, pod, what: what.describe(), entry: None });
            }
        }
        partings.sort_by(|a, b| (a.at, a.pod, &a.what).cmp(&(b.at, b.pod, &b.what)));
        Followed { config, events: self.events, partings, without_spec: self.without_spec.len() }
    }
}

/// The operation of a fact that nobody asked for.
const NOBODY: OpId = OpId(0);
