//! A place in a scope: the world, who judges it, and how much of the story and of what may go wrong is left.
//!
//! **What goes first** in a reduced search ([`explore::World::first`]) is one choice with which all others commute until it is
//! taken, so that every order of them leads where one with it in front leads, and which no property looks at:
//!
//! * *A status write's effect and answer*, once the story is told and nothing can crash: only the API server's rules for
//!   further requests read statuses. A write that follows from itself for ever is a livelock, with or without the rest.
//! * *An operation's effect that is unseen* (`world/commute.rs`), where nothing can crash or be made to fail, operations end
//!   at once, and the rest of the story only asks for pods. Between a command and its answer the agent knows nothing of the
//!   host but by looking, and nothing makes it look; time does not pass while something can happen; requests touch the API
//!   alone. So only another operation could tell: one on its way is in the table; one that the agent would ask for before
//!   the answer, about the same volume, container or sandbox, is a violation when it is asked for (S1, S2, S6, S12),
//!   whatever the host has done by then, since oracles and specification judge commands by answers. Each such effect
//!   ends an operation and asks for nothing, so there is no cycle of them, and nothing is put off for ever.
//!
//! Where something can still crash or fail, what was done and not yet answered is the very thing to be explored: nothing
//! goes first.

use super::Subject;
use super::scope::Scope;
use super::symmetry;
use crate::act::{Acted, act};
use crate::record::Record;
use crate::run::node_config_of;
use crate::scenario::{Budget, Crash, PodRef, Verb};
use crate::stage::Simulation;
use crate::world::{Choice, Earliest, Enabled, Ending, Fault, OpKind, Renaming, World};
use nodefold_core::command::TraceEntry;
use nodefold_core::event::ErrorClass;
use nodefold_core::ids::PodUid;
use nodefold_core::time::{Nanos, Time};
use nodefold_model::{Oracles, explore};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

/// How a violation begins that shows when faults have stopped and time has passed.
pub(super) const AT_REST: &str = "at rest, ";

/// A setup that takes more steps never settles.
const MOST_SETUP_STEPS: u32 = 10_000;

/// Why a scope has no beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unbegun {
    /// It can't be played.
    Unusable(String),
    /// What comes before the exploring broke something.
    Broken(String),
}

/// Beyond any delay that a node knows.
const EVER: Nanos = Nanos::secs(1_000_000);

/// One thing that may happen.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The world does something.
    World(Enabled),
    /// The story's next step.
    Story,
    /// The agent dies.
    AgentDies,
    /// The host dies.
    HostDies,
    /// An operation will fail, or show less than there is.
    Fails(Fault),
    /// A process ends by itself.
    Exits {
        /// In which pod.
        pod: PodRef,
        /// In which container.
        container: String,
    },
}

/// See the file's head.
pub struct Place {
    /// Always there, but while a step of the story has it.
    world: Option<World>,
    oracles: Option<Arc<Oracles>>,
    /// The hash of what they remember, as long as they hear nothing.
    memory: OnceLock<u128>,
    story: Arc<[Verb]>,
    told: usize,
    left: Budget,
    /// Places that differ only by which of pods that are alike is which have the same key.
    symmetric: bool,
}

impl Clone for Place {
    fn clone(&self) -> Place {
        // A world whose log is in memory can always be had twice.
        let world = self.world.as_ref().and_then(|world| world.fork().ok());
        assert!(world.is_some(), "a place has a world that can be forked");
        Place {
            world,
            oracles: self.oracles.clone(),
            memory: self.memory.clone(),
            story: self.story.clone(),
            told: self.told,
            left: self.left,
            symmetric: self.symmetric,
        }
    }
}

impl Place {
    /// The scope's beginning: its setup has been played and has settled.
    pub fn begin(scope: &Scope, subject: &Subject) -> Result<Place, Unbegun> {
        let config = node_config_of(&scope.node);
        let (make, for_brain) = (subject.driven.brain.clone(), config.clone());
        let new_brain = Arc::new(move || make(&for_brain));
        let mut world = World::new(&config, new_brain, &scope.node, (subject.driven.log)(&config, false));
        world.server_mut().answered_by(subject.driven.answers);
        world.set_refined(subject.driven.refined);
        world.set_instant(true);
        world.server_mut().remember_requests();
        world.server_mut().refuse_names_in_flight(!scope.trusting);
        let mut place = Place {
            world: Some(world),
            oracles: subject.oracles.then(|| Arc::new(Oracles::new(&config))),
            memory: OnceLock::new(),
            story: scope.steps.clone().into(),
            told: 0,
            left: scope.budget,
            symmetric: false,
        };
        place.settle()?;
        for verb in &scope.setup {
            place.tell(verb).map_err(Unbegun::Broken)?;
            place.settle()?;
        }
        Ok(place)
    }

    /// From here on places that differ only by which of pods that are alike is which count once.
    pub fn symmetric(self) -> Place {
        Place { symmetric: true, ..self }
    }

    fn settle(&mut self) -> Result<(), Unbegun> {
        let mut steps = 0;
        while let Some(world) = self.world.as_mut().filter(|world| !world.is_settled(Nanos::secs(60))) {
            world
                .run_one(Time(u64::MAX), &mut Earliest)
                .map_err(|error| Unbegun::Unusable(error.to_string()))?;
            self.judge().map_err(Unbegun::Broken)?;
            steps += 1;
            if steps > MOST_SETUP_STEPS {
                return Err(Unbegun::Broken("L4: the scope's setup never settles".to_owned()));
            }
        }
        Ok(())
    }

    fn world(&self) -> &World {
        match &self.world {
            Some(world) => world,
            None => unreachable!("a place has a world between steps"),
        }
    }

    /// Does a step of the story.
    fn tell(&mut self, verb: &Verb) -> Result<(), String> {
        let Some(world) = self.world.take() else { return Ok(()) };
        let mut stage = Simulation { world, chooser: Box::new(Earliest) };
        let acted = act(&mut stage, verb, verb.name());
        self.world = Some(stage.world);
        match acted {
            Ok(Acted::Impossible(why)) => Err(why),
            Ok(Acted::Done | Acted::Answered(_) | Acted::Missed) => self.judge(),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The oracles hear what happened.
    fn judge(&mut self) -> Result<(), String> {
        let records = self.world.as_mut().map(World::take_records).unwrap_or_default();
        let mut broken = None;
        let heard = |record: &Record| matches!(record, Record::Fact { .. } | Record::Command { .. });
        let mut oracles = self.oracles.as_mut().filter(|_| records.iter().any(heard)).map(|oracles| {
            self.memory = OnceLock::new();
            Arc::make_mut(oracles)
        });
        for record in records {
            match record {
                Record::Fact { event, .. } => {
                    if let Some(oracles) = &mut oracles {
                        oracles.observe(&TraceEntry::Fact(event));
                    }
                }
                Record::Command { at, command } => {
                    if let Some(oracles) = &mut oracles {
                        oracles.observe(&TraceEntry::Command { at, command });
                    }
                }
                Record::InvariantBroken { violation, .. } => {
                    broken.get_or_insert(violation);
                }
                Record::ScenarioBegan { .. }
                | Record::StepBegan { .. }
                | Record::StepEnded { .. }
                | Record::PodNamed { .. }
                | Record::Requested { .. }
                | Record::Transition { .. }
                | Record::ProcessEnded { .. }
                | Record::Crashed { .. }
                | Record::Held { .. }
                | Record::Marked { .. }
                | Record::Expectation { .. } => {}
            }
        }
        for violation in oracles.map(Oracles::take_violations).unwrap_or_default() {
            broken.get_or_insert(violation.to_string());
        }
        broken.map_or(Ok(()), Err)
    }

    /// Lets one thing happen.
    pub(super) fn do_it(&mut self, step: &Step) -> Result<(), String> {
        let verb = match step {
            Step::World(enabled) => {
                if let (true, Some(left)) = (self.is_waiting_for_the_story(enabled), &mut self.left.patience)
                {
                    *left -= 1;
                }
                if let Some(world) = &mut self.world {
                    world.step_enabled(enabled).map_err(|error| error.to_string())?;
                }
                return self.judge();
            }
            Step::Story => {
                let Some(verb) = self.story.get(self.told).cloned() else { return Ok(()) };
                self.told += 1;
                verb
            }
            Step::AgentDies => {
                self.left.agent_crashes -= 1;
                Verb::Crash(Crash::Agent)
            }
            Step::HostDies => {
                self.left.host_crashes -= 1;
                Verb::Crash(Crash::Host)
            }
            Step::Fails(fault) => {
                let is_partial = matches!(fault, Fault::Partial { .. });
                let left = if is_partial { &mut self.left.partial_lists } else { &mut self.left.failures };
                *left -= 1;
                Verb::Fault(fault.clone())
            }
            Step::Exits { pod, container } => {
                self.left.exits -= 1;
                Verb::Exit { pod: pod.clone(), container: container.clone(), ending: Ending::Code(1) }
            }
        };
        self.tell(&verb)
    }

    /// The step as a scenario says it.
    pub(super) fn verb(&self, step: &Step) -> Option<Verb> {
        Some(match step {
            Step::World(enabled) => Verb::Choose(self.world().label(&enabled.choice)),
            Step::Story => self.story.get(self.told)?.clone(),
            Step::AgentDies => Verb::Crash(Crash::Agent),
            Step::HostDies => Verb::Crash(Crash::Host),
            Step::Fails(fault) => Verb::Fault(fault.clone()),
            Step::Exits { pod, container } => {
                Verb::Exit { pod: pod.clone(), container: container.clone(), ending: Ending::Code(1) }
            }
        })
    }

    /// Where a path leads.
    pub(super) fn after(&self, path: &[u16], reduce: bool) -> Option<Place> {
        let mut place = self.clone();
        for step in explore::choices_of(self, path, reduce) {
            place.do_it(&step).ok()?;
        }
        Some(place)
    }

    /// What keeps it from being settled.
    pub fn unsettled(&self) -> String {
        let mut waits = self.world().unsettled(EVER);
        waits.extend(self.leftovers());
        waits.join(", ")
    }

    /// Faults stop and time passes: nothing may happen that was not due, and nothing may be left undone (L1–L5).
    pub(super) fn at_rest(&self) -> Result<(), String> {
        let mut end = self.clone();
        let Some(now) = end.world.as_ref().map(World::now) else { return Ok(()) };
        if let Some(oracles) = &mut end.oracles {
            Arc::make_mut(oracles).heal(now);
        }
        let told = catch_unwind(AssertUnwindSafe(|| end.tell(&Verb::Heal))).unwrap_or_else(panicked);
        told.map_err(|what| format!("{AT_REST}{what}"))?;
        let Some(oracles) = &mut end.oracles else { return Ok(()) };
        let oracles = Arc::make_mut(oracles);
        oracles.at_rest(end.world.as_ref().map_or(now, World::now));
        match oracles.take_violations().first() {
            Some(violation) => Err(format!("{AT_REST}{violation}")),
            None => Ok(()),
        }
    }

    /// What should be gone, or should be there, and isn't (L1, L2, L3).
    fn leftovers(&self) -> Vec<String> {
        let mut left = self.world().leftovers();
        left.extend(self.world().unfinished());
        left
    }

    /// It is the node's deadline, and the story is not told.
    fn is_waiting_for_the_story(&self, enabled: &Enabled) -> bool {
        enabled.choice == Choice::Tick && self.told < self.story.len()
    }

    /// The key with pods renamed.
    pub(super) fn key_as(&self, who: Option<&Renaming>) -> u128 {
        let memory = |who: &dyn Fn(PodUid) -> PodUid| {
            let mut bytes = Vec::with_capacity(1024);
            if let Some(oracles) = &self.oracles {
                oracles.memory(who, &mut bytes);
            }
            nodefold_core::codec::hash_bytes(&bytes).0
        };
        let memory = match who {
            None => *self.memory.get_or_init(|| memory(&|pod| pod)),
            Some(who) => memory(&|pod| who.of(pod)),
        };
        let mut bytes = Vec::with_capacity(64);
        bytes.extend(self.world().canonical_as(who).to_le_bytes());
        bytes.extend(memory.to_le_bytes());
        bytes.extend([self.told as u8, self.left.agent_crashes, self.left.host_crashes]);
        bytes.extend([self.left.failures, self.left.exits, self.left.partial_lists]);
        bytes.push(self.left.patience.unwrap_or_default());
        nodefold_core::codec::hash_bytes(&bytes).0
    }

    fn faults(&self, enabled: &[Enabled], out: &mut Vec<Step>) {
        let world = self.world();
        if self.left.agent_crashes > 0 && world.is_agent_alive() {
            out.push(Step::AgentDies);
        }
        if self.left.host_crashes > 0 {
            out.push(Step::HostDies);
        }
        if self.left.failures > 0 {
            for enabled in enabled {
                let Choice::Effect(key) = &enabled.choice else { continue };
                if matches!(key.kind, OpKind::Status | OpKind::Release | OpKind::ObserveMounts)
                    || world.is_doomed(key)
                {
                    continue;
                }
                let operation = world.label_of_operation(key);
                for (class, done) in [
                    (ErrorClass::Final, false),
                    (ErrorClass::Uncertain, true),
                    (ErrorClass::Uncertain, false),
                ] {
                    out.push(Step::Fails(Fault::Fail { operation: operation.clone(), class, done }));
                }
            }
        }
        if self.left.partial_lists > 0 {
            for enabled in enabled {
                let Choice::Effect(key) = &enabled.choice else { continue };
                if key.kind == OpKind::ObserveRuntime && !world.is_cut_short(key) {
                    let operation = world.label_of_operation(key);
                    out.push(Step::Fails(Fault::Partial { operation, leaves_out: u64::MAX }));
                }
            }
        }
        if self.left.exits > 0 {
            let running = world.running_processes();
            out.extend(running.into_iter().map(|(pod, container)| Step::Exits { pod, container }));
        }
    }
}

/// What the core said when it gave up.
fn panicked(panic: Box<dyn std::any::Any + Send>) -> Result<(), String> {
    let said = panic.downcast_ref::<String>().cloned();
    let said = said.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    Err(format!("panic: {}", said.unwrap_or_default()))
}

impl explore::World for Place {
    type Choice = Step;

    fn choices(&self, out: &mut Vec<Step>) {
        out.clear();
        let mut enabled = Vec::new();
        self.world().enabled(&mut enabled);
        let busy = enabled.iter().any(|e| e.due <= self.world().now());
        for enabled in &enabled {
            // Unless operations may be slow, time passes only when nothing else can happen.
            let waits = enabled.due > self.world().now();
            let impatient = self.left.patience == Some(0) && self.is_waiting_for_the_story(enabled);
            if (!waits || self.left.slow || !busy) && !impatient {
                out.push(Step::World(enabled.clone()));
            }
        }
        if self.told < self.story.len() {
            out.push(Step::Story);
        }
        self.faults(&enabled, out);
    }

    fn take(&mut self, step: &Step) -> Result<(), String> {
        // The core's own assertions are oracles too.
        catch_unwind(AssertUnwindSafe(|| self.do_it(step))).unwrap_or_else(panicked)
    }

    /// The oracles judge steps; of a state in which all is settled they judge whether it stays so, and as it should be.
    fn broken(&self) -> Option<String> {
        if self.is_settled() { self.at_rest().err() } else { None }
    }

    fn key(&self) -> u128 {
        let rest = &self.story[self.told..];
        let alike = if self.symmetric { symmetry::alike(self.world(), rest) } else { Vec::new() };
        if alike.len() < 2 {
            return self.key_as(None);
        }
        let renamings = symmetry::renamings(self.world(), alike);
        renamings.iter().map(|who| self.key_as(Some(who))).min().unwrap_or_default()
    }

    fn is_fault(&self, step: &Step) -> bool {
        match step {
            Step::World(_) | Step::Story => false,
            Step::AgentDies | Step::HostDies | Step::Fails(_) | Step::Exits { .. } => true,
        }
    }

    fn is_settled(&self) -> bool {
        self.told == self.story.len() && self.world().is_settled(EVER) && self.leftovers().is_empty()
    }

    /// See the file's head.
    fn first(&self, steps: &[Step]) -> Option<usize> {
        let left = &self.left;
        if left.agent_crashes > 0 || left.host_crashes > 0 {
            return None;
        }
        if self.told == self.story.len()
            && let Some(status) = steps.iter().position(is_of_a_status)
        {
            return Some(status);
        }
        if left.failures > 0 || left.slow || !self.story[self.told..].iter().all(asks_for_pods) {
            return None;
        }
        let unseen = self.world().unseen_effect()?;
        let is_it = |step: &Step| match step {
            Step::World(Enabled { choice: Choice::Effect(key), .. }) => key == unseen,
            Step::World(_) | Step::Story | Step::AgentDies | Step::HostDies => false,
            Step::Fails(_) | Step::Exits { .. } => false,
        };
        steps.iter().position(is_it)
    }
}

/// The effect or the answer of a status write.
fn is_of_a_status(step: &Step) -> bool {
    match step {
        Step::World(Enabled { choice: Choice::Effect(key) | Choice::Answer(key), .. }) => {
            key.kind == OpKind::Status
        }
        Step::World(_) | Step::Story | Step::AgentDies | Step::HostDies => false,
        Step::Fails(_) | Step::Exits { .. } => false,
    }
}

/// A request about a pod, and nothing else: it looks at no host, and changes nothing that a host reads.
fn asks_for_pods(verb: &Verb) -> bool {
    match verb {
        Verb::Create(object) | Verb::Update(object) => object["kind"] == "Pod",
        Verb::Delete(target) => target.kind == "Pod",
        Verb::Dynamic(..) | Verb::Resize(..) | Verb::Ephemeral(..) | Verb::Mark(_) => true,
        Verb::Status(..)
        | Verb::Advance(_)
        | Verb::Settle(_)
        | Verb::Exit { .. }
        | Verb::Probe { .. }
        | Verb::Usage { .. }
        | Verb::Hold(_)
        | Verb::Release(_)
        | Verb::Fail(..)
        | Verb::Crash(_)
        | Verb::Set(_)
        | Verb::Step(_)
        | Verb::Choose(_)
        | Verb::Fault(_)
        | Verb::Heal
        | Verb::Expect(_) => false,
    }
}
