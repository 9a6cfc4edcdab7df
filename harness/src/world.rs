//! The simulated world (DESIGN §6): clock, API server, runtime, mount table, images, operations in flight and the agent
//! with its node. At each step it lists its enabled choices; a chooser picks one; the world does it. Nothing is drawn
//! inside a step, and time jumps to the next thing due.

mod agent;
mod canonical;
mod choice;
mod commute;
mod content;
mod crash;
mod effect;
mod environment;
mod execute;
mod fault;
mod images;
mod inflight;
mod label;
mod latency;
mod leftovers;
mod memo;
mod mounts;
mod part;
mod process;
mod rulebook;
mod rules;
mod runtime;
mod server;
mod usage;
mod writes;

pub use canonical::Renaming;
pub(crate) use canonical::without_times;
pub use choice::{Choice, Chooser, Earliest, Enabled};
pub use fault::{CrashPoint, Fault};
pub use inflight::{OpKey, OpKind};
pub use label::{object_name, probe_name};
pub use latency::AGENT_RESTART;
pub use rulebook::Answers;
pub use rules::{Failure, Operation, Rules, Scope, TargetKind};
pub use runtime::Ending;
pub use server::{Server, Stirred, Undeliverable};

use crate::brain::{Brain, NewBrain};
use crate::log::{FactLog, LogError};
use crate::record::Record;
use crate::scenario::{NodeChange, NodeSpec, PodRef, Used};
use agent::Agent;
use canonical::NodeKey;
use fault::Faults;
use images::Images;
use inflight::{InFlight, Operations, Phase};
use mounts::MountTable;
use nodefold_api::{ApiEvent, Request, Response};
use nodefold_core::Config;
use nodefold_core::Digest;
use nodefold_core::command::Command;
use nodefold_core::config::NodeFacts;
use nodefold_core::event::{Event, Fact};
use nodefold_core::ids::{ContainerId, Name, PodUid, Source};
use nodefold_core::spec::Pod;
use nodefold_core::time::{Nanos, Time};
use nodefold_model::refine::Refinement;
use part::Part;
use runtime::Runtime;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// When a simulated world begins: 2026-01-01T00:00:00Z.
pub const BEGINNING: Time = Time(1_767_225_600_000_000_000);

/// This many steps without time passing is a busy loop (L4), not work.
const MOST_STEPS_AT_ONE_MOMENT: u32 = 200_000;

/// More wake-ups in a row than any chain of them has.
const MOST_TICKS_FIRST: u32 = 64;

/// Why a world can't go on.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// The journal failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The API accepted a pod that the node's boundary can't read.
    #[error("the API accepted a pod that the node can't be given: {0}")]
    Undeliverable(String),
    /// A real host can't do what a stage needs.
    #[error("{0}")]
    Host(String),
}

impl From<Undeliverable> for WorldError {
    fn from(error: Undeliverable) -> WorldError {
        WorldError::Undeliverable(error.0)
    }
}

/// Everything around a node, and the node.
pub struct World {
    now: Time,
    server: Part<Server>,
    runtime: Part<Runtime>,
    mounts: Part<MountTable>,
    images: Images,
    rules: Rules,
    inflight: Operations,
    /// What is due besides operations and deliveries.
    pending: Part<BTreeMap<Choice, Time>>,
    /// Probes that the agent runs, and what each reported last.
    probes: BTreeMap<process::ProbeKey, Option<bool>>,
    faults: Faults,
    /// What takes up how many bytes on the host, as far as the story said.
    usage: BTreeMap<(PodUid, Used), u64>,
    agent: Agent,
    /// What the node's steps are compared with the specification by, where they are.
    refinement: Option<Part<Refinement>>,
    node_name: Name,
    /// What the agent was told last of the node's own facts.
    told: Arc<NodeFacts>,
    facts: Arc<NodeFacts>,
    boots: u32,
    steps: u64,
    steps_at_this_moment: u32,
    /// Operations end when somebody picks them: none takes a time of its own.
    instant: bool,
    /// What happened since this was taken last.
    records: Vec<Record>,
    /// An invariant broke since then.
    is_broken: bool,
    node_key: RefCell<Option<NodeKey>>,
}

impl World {
    /// A world at its beginning. The agent is about to start.
    pub fn new(config: &Config, brain: NewBrain, spec: &NodeSpec, log: Box<dyn FactLog>) -> World {
        let mut images = Images::default();
        images.set(spec.images.clone());
        let server = Server::new(config.node_name.clone(), spec.facts.gates);
        World {
            now: BEGINNING,
            server: Part::new(server),
            runtime: Part::default(),
            mounts: Part::default(),
            images,
            rules: Rules::default(),
            inflight: Operations::default(),
            pending: Part::new(BTreeMap::from([(Choice::AgentStarts, BEGINNING)])),
            probes: BTreeMap::new(),
            faults: Faults::default(),
            usage: BTreeMap::new(),
            agent: Agent::new(brain, log),
            refinement: Some(Part::default()),
            node_name: config.node_name.clone(),
            told: Arc::new(config.node.clone()),
            facts: Arc::new(spec.facts.clone()),
            boots: 0,
            steps: 0,
            steps_at_this_moment: 0,
            instant: false,
            records: Vec::new(),
            is_broken: false,
            node_key: RefCell::new(None),
        }
    }

    /// The same world, beginning at another moment: for one that keeps a real clock's time.
    pub fn beginning_at(mut self, moment: Time) -> World {
        self.now = moment;
        self.pending = Part::new(BTreeMap::from([(Choice::AgentStarts, moment)]));
        self
    }

    /// Takes a command of an agent outside on, as if the one inside had given it.
    pub fn take_on(&mut self, command: Command) {
        self.accept(command);
    }

    /// A process ends so, if it runs.
    pub fn end_instance(&mut self, pod: PodUid, container: &ContainerId, ending: Ending) {
        if let Some(running) = self.runtime.containers.get_mut(&(pod, container.clone())) {
            running.ending = Some(ending);
            self.process_ends(pod, container);
        }
    }

    /// The same world once more, to go on apart from this one. Refused if its log can't be had twice.
    pub fn fork(&self) -> Result<World, WorldError> {
        Ok(World {
            now: self.now,
            server: self.server.clone(),
            runtime: self.runtime.clone(),
            mounts: self.mounts.clone(),
            images: self.images.clone(),
            rules: self.rules.clone(),
            inflight: self.inflight.clone(),
            pending: self.pending.clone(),
            probes: self.probes.clone(),
            faults: self.faults.clone(),
            usage: self.usage.clone(),
            agent: self.agent.fork()?,
            refinement: self.refinement.clone(),
            node_name: self.node_name.clone(),
            told: self.told.clone(),
            facts: self.facts.clone(),
            boots: self.boots,
            steps: self.steps,
            steps_at_this_moment: self.steps_at_this_moment,
            instant: self.instant,
            records: self.records.clone(),
            is_broken: self.is_broken,
            node_key: RefCell::new(self.node_key.borrow().clone()),
        })
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// What the node takes for the time: its host's clock, but never earlier than it was once told.
    pub fn node_now(&self) -> Time {
        self.faults.node_time(self.now).max(self.agent.heard())
    }

    /// What decides, as its log has it.
    pub fn brain(&self) -> &dyn Brain {
        self.agent.brain()
    }

    /// The node's digest.
    pub fn digest(&mut self) -> Digest {
        self.agent.digest()
    }

    /// The API store's digest.
    pub fn api_digest(&self) -> Digest {
        self.server.digest()
    }

    /// How many facts the node folded.
    pub fn facts_folded(&self) -> u64 {
        self.agent.facts()
    }

    /// How many choices were taken.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Takes what happened since this was asked last.
    pub fn take_records(&mut self) -> Vec<Record> {
        self.is_broken = false;
        std::mem::take(&mut self.records)
    }

    /// The same, without giving the memory away: appends to `out`.
    pub fn drain_records(&mut self, out: &mut Vec<Record>) {
        self.is_broken = false;
        out.append(&mut self.records);
    }

    /// Everything that may happen next, into a reused buffer.
    pub fn enabled(&self, out: &mut Vec<Enabled>) {
        out.clear();
        let listing = |source| self.server.is_listing(source);
        for (choice, due) in &self.pending {
            let waits = match choice {
                Choice::SourceListed(source) => listing(*source),
                Choice::ObjectReported(object) => {
                    self.server.watcher_of(object).is_some_and(|pod| self.is_held(Operation::Watch, pod, ""))
                }
                // A pod's condition is news only where the pod is known.
                Choice::GateReported { pod, .. } => {
                    self.server.is_on_the_way(*pod) || self.is_held(Operation::Watch, *pod, "")
                }
                Choice::ProcessEnds { .. }
                | Choice::GraceOver { .. }
                | Choice::UsageMeasured { .. }
                | Choice::Effect(_)
                | Choice::Answer(_)
                | Choice::ExitNoticed { .. }
                | Choice::SandboxNoticed { .. }
                | Choice::ProbeReported { .. }
                | Choice::Deliver { .. }
                | Choice::NodeReported
                | Choice::Reconnect
                | Choice::Permitted(_)
                | Choice::DiskFreed
                | Choice::Tick
                | Choice::AgentStarts => false,
                // Nobody hears it until an agent listens.
                Choice::Echo(_) => !self.agent.is_alive(),
            };
            if !waits {
                out.push(Enabled { choice: choice.clone(), due: *due });
            }
        }
        // A runtime ends what a dead client asked for before it lists what it has.
        let orphans = self.inflight.values().any(|op| op.orphan);
        for (key, op) in self.inflight.iter() {
            match &op.phase {
                Phase::Running { .. } if orphans && key.kind == OpKind::ObserveRuntime => {}
                Phase::Running { due } => {
                    out.push(Enabled { choice: Choice::Effect(key.clone()), due: *due })
                }
                Phase::Done { at, .. } => out.push(Enabled { choice: Choice::Answer(key.clone()), due: *at }),
                Phase::Held { .. } => {}
            }
        }
        for (source, pod, count, first, last) in self.server.on_the_way() {
            if source == Source::Api && self.is_held(Operation::Watch, pod, "") {
                continue;
            }
            out.push(Enabled { choice: Choice::Deliver { source, pod, all: false }, due: first });
            if count > 1 {
                out.push(Enabled { choice: Choice::Deliver { source, pod, all: true }, due: last });
            }
        }
        if self.instant {
            // Only time itself takes time: the node's deadlines, and the end of a grace.
            let waits = |choice: &Choice| matches!(choice, Choice::GraceOver { .. });
            out.iter_mut().filter(|e| !waits(&e.choice)).for_each(|e| e.due = e.due.min(self.now));
        }
        if let Some(due) = self.next_deadline() {
            out.push(Enabled { choice: Choice::Tick, due });
        }
    }

    /// The agent runs.
    pub fn is_agent_alive(&self) -> bool {
        self.agent.is_alive()
    }

    /// The operation will fail.
    pub fn is_doomed(&self, key: &OpKey) -> bool {
        self.inflight.get(key).is_some_and(|op| op.fate.is_some())
    }

    /// The list that the operation gives will not be whole.
    pub fn is_cut_short(&self, key: &OpKey) -> bool {
        self.inflight.get(key).is_some_and(|op| op.leaves_out.is_some())
    }

    /// Processes that run and were not told to end, by pod and container name.
    pub fn running_processes(&self) -> Vec<(PodRef, String)> {
        let runs = |c: &runtime::Container| matches!(c.state, runtime::State::Running { .. });
        let running = self.runtime.containers.iter().filter(|(_, c)| runs(c) && c.ending.is_none());
        running
            .filter_map(|((pod, id), _)| Some((self.server.name(*pod)?.clone(), id.name.to_string())))
            .collect()
    }

    /// From the beginning the node's steps are compared with the specification; or not.
    pub fn set_refined(&mut self, refined: bool) {
        self.refinement = refined.then(Part::default);
    }

    /// From now on operations end when somebody picks them, at once or after any others, and none takes time: what an
    /// exhaustive search wants, in which any may be the last.
    pub fn set_instant(&mut self, instant: bool) {
        self.instant = instant;
    }

    /// When the next thing happens by itself.
    pub fn next_due(&self) -> Option<Time> {
        let mut enabled = Vec::new();
        self.enabled(&mut enabled);
        enabled.iter().map(|e| e.due).min()
    }

    /// When the node wants a `Tick`, in the world's time.
    fn next_deadline(&self) -> Option<Time> {
        self.agent.next_deadline().map(|shown| self.faults.world_time(shown))
    }

    /// What keeps the world from being settled: what is in flight, and what is due within the time. Recurring
    /// housekeeping and held operations don't count; the retry of a failed operation does.
    pub fn unsettled(&self, within: Nanos) -> Vec<String> {
        let mut enabled = Vec::new();
        self.enabled(&mut enabled);
        let horizon = self.now.after(within);
        let mut waiting: Vec<String> = enabled
            .iter()
            .filter(|e| e.unsettles(horizon))
            .map(|e| format!("{} (due in {})", self.label(&e.choice), e.due.since(self.now)))
            .collect();
        if let Some((due, why)) = self.work_due().filter(|(due, _)| *due <= horizon) {
            waiting.push(format!("the node's {why} (due in {})", due.since(self.now)));
        }
        waiting
    }

    /// Nothing keeps it from being settled.
    pub fn is_settled(&self, within: Nanos) -> bool {
        let mut enabled = Vec::new();
        self.enabled(&mut enabled);
        let horizon = self.now.after(within);
        !enabled.iter().any(|e| e.unsettles(horizon)) && self.work_due().is_none_or(|(due, _)| due > horizon)
    }

    /// When the node has work to do by itself, and which.
    fn work_due(&self) -> Option<(Time, String)> {
        self.agent.work_due().map(|(shown, why)| (self.faults.world_time(shown), why))
    }

    /// Takes what is known to be enabled, as [`World::enabled`] listed it.
    pub fn step_enabled(&mut self, enabled: &Enabled) -> Result<(), WorldError> {
        self.take(enabled)
    }

    /// Takes a choice. Time becomes its due time, or stays where it is if that has passed. Returns false, and does
    /// nothing, if the choice is not enabled: which is what lets a recorded history shrink.
    pub fn step(&mut self, choice: &Choice) -> Result<bool, WorldError> {
        let mut enabled = Vec::new();
        self.enabled(&mut enabled);
        match enabled.iter().find(|e| e.choice == *choice) {
            Some(found) => self.take(found).map(|()| true),
            None => Ok(false),
        }
    }

    /// Lets time pass up to a moment: everything due until then happens in the chooser's order.
    pub fn run_until(&mut self, moment: Time, chooser: &mut dyn Chooser) -> Result<(), WorldError> {
        let mut enabled = Vec::new();
        while !self.is_broken {
            self.enabled(&mut enabled);
            enabled.retain(|e| e.due <= moment);
            if enabled.is_empty() {
                break;
            }
            let chosen = enabled.swap_remove(chooser.choose(&enabled));
            self.take(&chosen)?;
        }
        self.now = self.now.max(moment);
        Ok(())
    }

    /// Takes the chooser's next choice, if there is one due by the moment.
    pub fn run_one(&mut self, moment: Time, chooser: &mut dyn Chooser) -> Result<bool, WorldError> {
        let mut enabled = Vec::new();
        self.enabled(&mut enabled);
        enabled.retain(|e| e.due <= moment);
        if enabled.is_empty() {
            return Ok(false);
        }
        let chosen = enabled.swap_remove(chooser.choose(&enabled));
        self.take(&chosen)?;
        Ok(true)
    }

    fn take(&mut self, chosen: &Enabled) -> Result<(), WorldError> {
        if chosen.due > self.now {
            self.now = chosen.due;
            self.steps_at_this_moment = 0;
        }
        self.steps += 1;
        self.steps_at_this_moment += 1;
        if self.steps_at_this_moment == MOST_STEPS_AT_ONE_MOMENT {
            let last = self.label(&chosen.choice);
            self.broken(
                "L4",
                format!("{MOST_STEPS_AT_ONE_MOMENT} steps without time passing, the last of them {last}"),
            );
        }
        if self.pending.contains_key(&chosen.choice) {
            self.pending.remove(&chosen.choice);
        }
        match &chosen.choice {
            Choice::ProcessEnds { pod, container } => self.process_ends(*pod, container),
            Choice::GraceOver { pod, container } => self.kill(*pod, container),
            Choice::Effect(key) => self.effect(key)?,
            Choice::Answer(key) => self.answer(key)?,
            Choice::ExitNoticed { pod, container } => self.exit_noticed(*pod, container)?,
            Choice::SandboxNoticed { pod, attempt } => {
                self.tell(Fact::SandboxStopped { pod: *pod, attempt: *attempt })?
            }
            Choice::Echo(number) => self.echo_heard(*number)?,
            Choice::ProbeReported { pod, container, probe } => {
                self.probe_reported(*pod, container, *probe)?
            }
            Choice::Deliver { source, pod, all } => self.deliver(*source, *pod, *all)?,
            Choice::GateReported { pod, condition } => {
                let (pod, condition) = (*pod, Name::from(condition.as_str()));
                if let Some(met) = self.server.tell_gate(pod, &condition) {
                    self.tell(Fact::ReadinessGate { pod, condition, met })?;
                }
            }
            Choice::UsageMeasured { pod, subject } => self.usage_measured(*pod, subject)?,
            Choice::SourceListed(source) => self.tell(Fact::SourceReady { source: *source })?,
            Choice::ObjectReported(object) => {
                let fact = self.server.object_fact(object);
                self.tell(fact)?;
            }
            Choice::NodeReported => self.tell_node_facts()?,
            Choice::Reconnect => self.server.reconnect(self.now)?,
            Choice::Permitted(object) => {
                if self.server.permit(object) && self.server.watcher_of(object).is_some() {
                    let reported = Choice::ObjectReported(object.clone());
                    self.pending.entry(reported).or_insert(self.now.after(latency::OBJECT_GET));
                }
            }
            Choice::DiskFreed => self.faults.disk_full = false,
            Choice::Tick => self.tick(chosen.due)?,
            Choice::AgentStarts => self.agent_starts()?,
        }
        Ok(())
    }

    /// The agent hears of the node's own facts.
    fn tell_node_facts(&mut self) -> Result<(), WorldError> {
        self.told = self.facts.clone();
        self.tell(Fact::NodeChanged(NodeFacts::clone(&self.facts)))
    }

    /// The node's deadline came. A deadline that a `Tick` leaves in the past would tick for ever (L4).
    fn tick(&mut self, due: Time) -> Result<(), WorldError> {
        self.tell(Fact::Tick)?;
        match self.next_deadline() {
            Some(next) if next <= due => {
                self.broken(
                    "L4",
                    format!("a Tick at {} left a deadline at {} behind: a busy timer", due.0, next.0),
                );
            }
            Some(_) | None => {}
        }
        Ok(())
    }

    /// The agent hears a fact, makes it durable, folds it, and its commands become operations; or it dies in between.
    fn tell(&mut self, fact: Fact) -> Result<(), WorldError> {
        if self.is_of_a_namesake(&fact) {
            return Ok(());
        }
        self.tick_first(&fact)?;
        if !self.agent.is_alive() {
            return Ok(());
        }
        let event = Event { at: self.faults.node_time(self.now), fact };
        let crash = if self.faults.disk_full { None } else { self.faults.crash.take() };
        match crash {
            None => match self.fold(event)? {
                Some(commands) => commands.into_iter().for_each(|command| self.accept(command)),
                None => self.crash_agent(),
            },
            Some(CrashPoint::BeforeAppend) => self.crash_agent(),
            Some(CrashPoint::Unsynced(keep)) => {
                self.agent.fold_torn(event, keep, &mut self.records)?;
                self.crash_agent();
            }
            Some(CrashPoint::AfterAppend) => {
                drop(self.fold(event)?);
                self.crash_agent();
            }
            Some(CrashPoint::AfterDispatch(given)) => {
                for command in self.fold(event)?.into_iter().flatten().take(given as usize) {
                    self.accept(command);
                }
                self.crash_agent();
            }
        }
        Ok(())
    }

    /// A driver ticks before it tells (ARCHITECTURE, decision 3): what was due already is then decided, and seen to be
    /// decided, without the fact.
    fn tick_first(&mut self, fact: &Fact) -> Result<(), WorldError> {
        if matches!(fact, Fact::Tick | Fact::AgentStarted { .. }) {
            return Ok(());
        }
        for _ in 0..MOST_TICKS_FIRST {
            if !self.is_due() {
                break;
            }
            self.tell(Fact::Tick)?;
        }
        Ok(())
    }

    /// A timer is due. A clock that was set back leaves what was due already due.
    fn is_due(&self) -> bool {
        self.agent.next_deadline().is_some_and(|due| due <= self.node_now())
    }

    /// Where the production core decides, each step is one that the specification permits (DESIGN §7). `None`: a full disk
    /// did not take the fact.
    fn fold(&mut self, event: Event) -> Result<Option<Vec<Command>>, WorldError> {
        let timers_first = self.is_due();
        let at = event.at;
        let told = self.records.len();
        let folded = self.agent.fold(event, self.faults.disk_full, &mut self.records)?;
        let Some(commands) = folded else { return Ok(None) };
        if let (Some(node), Some(refinement), Some(Record::Fact { event, .. })) =
            (self.agent.brain().node(), &mut self.refinement, self.records.get(told))
        {
            let unpermitted = refinement.step(event, timers_first, &commands, node);
            self.records.extend(unpermitted.into_iter().map(|unpermitted| Record::InvariantBroken {
                at,
                violation: format!("refinement: {unpermitted}"),
            }));
        }
        Ok(Some(commands))
    }

    fn deliver(&mut self, source: Source, pod: PodUid, all: bool) -> Result<(), WorldError> {
        let lost = source == Source::Api && self.take_failure(Operation::Watch, pod, "").is_some();
        if lost {
            self.server.postpone(source, pod, self.now);
            return Ok(());
        }
        let Some((fact, new_objects)) = self.server.deliver(source, pod, all) else { return Ok(()) };
        for object in new_objects {
            self.pending.entry(Choice::ObjectReported(object)).or_insert(self.now.after(latency::OBJECT_GET));
        }
        self.tell(fact)
    }

    /// A client's or the node's request to the API server, as it is now.
    pub fn request(&mut self, user: &str, what: String, request: Request) -> Result<Response, WorldError> {
        let event = ApiEvent::new(self.now, request, user);
        self.agent.keep_request(&event)?;
        let (response, stirred) = self.server.request(&event, self.agent.is_alive());
        self.answered(user, what, response, stirred)
    }

    /// A request was answered.
    fn answered(
        &mut self,
        user: &str,
        what: String,
        response: Response,
        stirred: Stirred,
    ) -> Result<Response, WorldError> {
        self.name_pods();
        for object in stirred.objects {
            self.pending.entry(Choice::ObjectReported(object)).or_insert(self.now.after(latency::WATCH));
        }
        for (pod, condition) in stirred.gates {
            let reported = Choice::GateReported { pod, condition };
            self.pending.entry(reported).or_insert(self.now.after(latency::WATCH));
        }
        self.records.push(requested(self.now, user, what, &response));
        if let Some(wrong) = stirred.wrong {
            self.broken("S16", wrong);
        }
        match stirred.undeliverable {
            Some(undeliverable) => Err(undeliverable.into()),
            None => Ok(response),
        }
    }

    /// Pods are told of by name before anything else is told of them.
    fn name_pods(&mut self) {
        for uid in self.server.take_newly_named() {
            if let Some(name) = self.server.name(uid) {
                let (namespace, name) = (name.namespace.clone(), name.name.clone());
                self.records.push(Record::PodNamed { pod: uid, namespace, name });
            }
        }
    }

    /// A manifest file appears or changes on the node.
    pub fn write_file(&mut self, pod: Pod) {
        self.server.write_file(self.now, pod, self.agent.is_alive());
        self.name_pods();
    }

    /// A manifest file goes. Whether there was one.
    pub fn remove_file(&mut self, name: &PodRef) -> bool {
        self.server.remove_file(self.now, name, self.agent.is_alive())
    }

    /// The API server's side.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The API server's side, to be prepared for a request.
    pub fn server_mut(&mut self) -> &mut Server {
        &mut self.server
    }

    /// Operations in a scope hang, beginning with those that are on their way.
    pub fn hold(&mut self, scope: Scope) {
        self.rules.hold(scope);
        let keys: Vec<OpKey> = self.inflight.keys().cloned().collect();
        for key in keys {
            self.hold_if_ruled(&key);
        }
    }

    /// Wakes the agent now, at a moment at which it did not ask to be woken. Whatever that makes due was due already, and
    /// nobody would ever have come for it (L5).
    pub fn poke(&mut self) -> Result<(), WorldError> {
        if !self.agent.is_alive() || self.agent.next_deadline().is_some_and(|due| due <= self.now) {
            return Ok(());
        }
        let before = self.records.len();
        self.tell(Fact::Tick)?;
        let woken = self.records[before..].iter().find_map(|record| {
            if let Record::Command { command, .. } = record { Some(command.action.verb()) } else { None }
        });
        if let Some(verb) = woken {
            self.broken("L5", format!("a {verb} was due, and the agent never asked to be woken for it"));
        }
        Ok(())
    }

    /// Ends holds (or failures); what hung goes on. How many rules ended.
    pub fn release(&mut self, scope: &Scope) -> usize {
        let ended = self.rules.release(scope);
        let held: Vec<(OpKey, Nanos)> = self
            .inflight
            .iter()
            .filter_map(|(key, op)| match &op.phase {
                Phase::Held { remaining } => Some((key.clone(), *remaining)),
                Phase::Running { .. } | Phase::Done { .. } => None,
            })
            .collect();
        for (key, remaining) in held {
            if !self.is_op_held(&key)
                && let Some(op) = self.inflight.get_mut(&key)
            {
                op.phase = Phase::Running { due: self.now.after(remaining) };
            }
        }
        ended
    }

    /// What is held, for messages.
    pub fn holds(&self) -> Vec<String> {
        self.rules.held().map(ToString::to_string).collect()
    }

    /// What is made to go wrong, for messages.
    pub fn failing(&self) -> Vec<String> {
        self.rules.failing().map(|(scope, failure)| format!("{scope}: {}", failure.error)).collect()
    }

    /// Operations in a scope go wrong.
    pub fn fail(&mut self, scope: Scope, failure: Failure) {
        self.rules.fail(scope, failure);
    }

    /// The node changes.
    pub fn change_node(&mut self, change: &NodeChange) -> Result<(), WorldError> {
        if let Some(images) = &change.images {
            self.images.set(Some(images.clone()));
        }
        if !change.changes_facts() {
            return Ok(());
        }
        let gates_before = self.facts.gates;
        change.apply(Arc::make_mut(&mut self.facts));
        if self.facts.gates != gates_before {
            let what = "the node's feature gates changed".to_owned();
            self.request("system:node", what, Request::NodeGates(self.facts.gates))?;
        }
        if self.agent.is_alive() {
            self.pending.entry(Choice::NodeReported).or_insert(self.now.after(latency::NODE_CHANGE));
        }
        Ok(())
    }

    /// The newest instance of every container name there ever was, by pod and name.
    pub fn instances(&self) -> BTreeMap<(PodUid, Name), ContainerId> {
        self.runtime.newest_of_all().clone()
    }

    /// The newest instance of a container, whatever its state.
    pub fn instance(&self, pod: PodUid, container: &str) -> Option<&ContainerId> {
        self.runtime.newest(pod, container)
    }

    /// The names of a pod's volumes that are on the host.
    pub fn volumes_on_host(&self, pod: PodUid) -> Vec<Name> {
        self.mounts.names(pod)
    }

    /// What of a pod is still on the node: containers that have not ended, running sandboxes, volumes.
    pub fn left_of(&self, pod: PodUid) -> Vec<String> {
        let containers = self
            .runtime
            .of_pod(pod)
            .filter(|(_, c)| !matches!(c.state, runtime::State::Exited(_)))
            .map(|(id, _)| format!("container {}", id.name));
        let sandboxes = self
            .runtime
            .sandboxes
            .iter()
            .filter(|((owner, _), sandbox)| *owner == pod && sandbox.ready)
            .map(|((_, attempt), _)| format!("sandbox {attempt}"));
        let volumes = self.mounts.names(pod).into_iter().map(|name| format!("volume {name}"));
        containers.chain(sandboxes).chain(volumes).collect()
    }

    /// Ends cleanly.
    pub fn close(&mut self) -> Result<(), WorldError> {
        Ok(self.agent.close()?)
    }

    /// The agent runs.
    pub fn agent_is_alive(&self) -> bool {
        self.agent.is_alive()
    }

    /// The agent has started and not yet seen the host.
    pub fn is_recovering(&self) -> bool {
        let looks = |key: &OpKey| matches!(key.kind, OpKind::ObserveMounts | OpKind::ObserveRuntime);
        self.pending.contains_key(&Choice::AgentStarts)
            || self.inflight.keys().any(|key| key.pod == PodUid(0) && looks(key))
    }

    /// Processes that run, by their pods' names and their containers', where the name still means that pod.
    pub fn running(&self) -> Vec<(PodRef, String)> {
        let runs =
            self.runtime.containers.iter().filter(|(_, c)| matches!(c.state, runtime::State::Running { .. }));
        runs.filter_map(|((pod, id), _)| {
            let name = self.server.name(*pod)?;
            (self.server.uid(name) == Some(*pod)).then(|| (name.clone(), id.name.to_string()))
        })
        .collect()
    }

    /// Of those the ones that have something to finish: init containers, and no sidecars.
    pub fn finishing(&self) -> Vec<(PodRef, String)> {
        let mut running = self.running();
        running.retain(|(pod, container)| {
            let uid = self.server.uid(pod);
            let id = uid.and_then(|uid| Some((uid, self.runtime.running(uid, container)?.clone())));
            id.is_some_and(|key| self.runtime.containers.get(&key).is_some_and(|c| c.runs_once))
        });
        running
    }

    fn is_held(&self, operation: Operation, pod: PodUid, target: &str) -> bool {
        let (namespace, name) = self.names_of(pod);
        self.rules.holds(operation, namespace, name, target)
    }

    fn take_failure(&mut self, operation: Operation, pod: PodUid, target: &str) -> Option<Failure> {
        let Some(name) = self.server.name(pod) else {
            return self.rules.take_failure(operation, "", "", target);
        };
        self.rules.take_failure(operation, &name.namespace, &name.name, target)
    }

    fn names_of(&self, pod: PodUid) -> (&str, &str) {
        match self.server.name(pod) {
            Some(name) => (&name.namespace, &name.name),
            None => ("", ""),
        }
    }

    /// Physics or an invariant broke.
    fn broken(&mut self, invariant: &str, what: String) {
        self.is_broken = true;
        self.records
            .push(Record::InvariantBroken { at: self.now, violation: format!("{invariant}: {what}") });
    }
}

/// The record of a request and its answer.
pub fn requested(at: Time, user: &str, what: String, response: &Response) -> Record {
    let (accepted, message, causes, object) = match response {
        Response::Ok { object, .. } => (true, String::new(), Value::Array(Vec::new()), object.clone()),
        Response::Rejected(status) => (false, status.message.clone(), causes(status), Arc::new(Value::Null)),
    };
    Record::Requested { at, user: user.to_owned(), what, accepted, message, causes, object }
}

/// A refusal's causes as JSON.
pub(crate) fn causes(status: &nodefold_api::Status) -> Value {
    status
        .causes
        .iter()
        .map(|c| serde_json::json!({"field": c.field, "reason": c.reason.as_str(), "message": c.message}))
        .collect()
}

#[cfg(test)]
mod tests;
