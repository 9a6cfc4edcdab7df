//! Plays a history on a world of its own: does each step, tells the oracles of everything, and notes what broke. Steps with
//! nothing to do are skipped.

use super::coverage::{Coverage, Whereabouts};
use super::run::Driven;
use crate::act::{Acted, act};
use crate::record::Record;
use crate::scenario::{NodeSpec, Verb};
use crate::stage::{Simulation, Stage};
use crate::world::{BEGINNING, Earliest, World, WorldError};
use nodefold_core::command::{Action, TraceEntry};
use nodefold_core::time::{Nanos, Time};
use nodefold_core::{Config, Digest};
use nodefold_model::Oracles;
use serde::Serialize;

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// The invariant's number; `panic` or `world` if it came to that.
    pub invariant: String,
    /// What happened.
    pub what: String,
    /// When, since the world began.
    pub at: Nanos,
}

/// How much happened.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// Choices taken.
    pub choices: u64,
    /// Facts folded.
    pub facts: u64,
    /// Commands given.
    pub commands: u64,
    /// Requests to the API.
    pub requests: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Pods that came to be.
    pub pods: u64,
    /// Pods that were released.
    pub released: u64,
    /// Crashes of the agent and of the host.
    pub crashes: u64,
    /// Simulated nanoseconds.
    pub simulated: u64,
}

impl Totals {
    /// Both together.
    pub fn add(&mut self, other: &Totals) {
        self.choices += other.choices;
        self.facts += other.facts;
        self.commands += other.commands;
        self.requests += other.requests;
        self.refused += other.refused;
        self.pods += other.pods;
        self.released += other.released;
        self.crashes += other.crashes;
        self.simulated += other.simulated;
    }
}

/// A world under way, and who judges it.
pub struct Player {
    stage: Simulation,
    oracles: Option<Oracles>,
    records: Vec<Record>,
    whereabouts: Whereabouts,
    /// What was reached.
    pub coverage: Coverage,
    /// How much happened.
    pub totals: Totals,
    /// What broke.
    pub broken: Vec<Broken>,
    /// Something happened last after which a fault hurts most: a command was given, a pod changed.
    pub is_delicate: bool,
}

impl Player {
    /// A world at its beginning.
    pub fn new(node: &NodeSpec, driven: &Driven, judged: bool) -> Player {
        let config = Config { node: node.facts.clone(), ..Config::default() };
        let (make, for_brain) = (driven.brain.clone(), config.clone());
        let mut world = World::new(
            &config,
            std::sync::Arc::new(move || make(&for_brain)),
            node,
            (driven.log)(&config, node.journal),
        );
        world.server_mut().answered_by(driven.answers);
        world.set_refined(driven.refined);
        Player {
            stage: Simulation { world, chooser: Box::new(Earliest) },
            oracles: judged.then(|| Oracles::new(&config)),
            records: Vec::new(),
            whereabouts: Whereabouts::default(),
            coverage: Coverage::default(),
            totals: Totals::default(),
            broken: Vec::new(),
            is_delicate: false,
        }
    }

    /// The API server leaves names in flight to the node to keep apart, or refuses them.
    pub fn trust_names(&mut self, trusting: bool) {
        self.stage.world.server_mut().refuse_names_in_flight(!trusting);
    }

    /// The world.
    pub fn world(&self) -> &World {
        &self.stage.world
    }

    /// The node comes up, as it does before a scenario's first step.
    pub fn begin(&mut self) {
        while self.broken.is_empty() && !self.stage.world.unsettled(Nanos::ZERO).is_empty() {
            let done = self.stage.pass_one(Time(u64::MAX));
            if !self.heed(done).unwrap_or(false) {
                return;
            }
        }
    }

    /// The next choice in its natural order. False: there is none.
    pub fn natural(&mut self) -> bool {
        let done = self.stage.pass_one(Time(u64::MAX));
        self.heed(done).unwrap_or(false)
    }

    /// Does a step. False: there was nothing to do.
    pub fn perform(&mut self, verb: &Verb) -> bool {
        if let (Verb::Heal, Some(oracles)) = (verb, &mut self.oracles) {
            oracles.heal(self.stage.node_now());
        }
        let done = act(&mut self.stage, verb, "").map(|acted| match acted {
            Acted::Done => true,
            Acted::Answered(_) => true,
            Acted::Missed | Acted::Impossible(_) => false,
        });
        let done = self.heed(done).unwrap_or(false);
        if matches!(verb, Verb::Heal) && self.broken.is_empty() {
            self.judge_the_end();
        }
        done
    }

    /// Both digests together: equal runs have equal ones.
    pub fn digest(&mut self) -> Digest {
        let steps = self.stage.world.steps();
        let (node, api) = (self.stage.world.digest(), self.stage.world.api_digest());
        nodefold_core::codec::hash(&(node.0, api.0, steps))
    }

    /// The end: what waits for the end of a batch, whether the log is whole, and how much there was.
    pub fn finish(&mut self) {
        if self.broken.is_empty() && self.stage.world.is_agent_alive() {
            let closed = self.stage.world.close().map(|()| true);
            self.heed(closed);
        }
        if let Some(oracles) = &mut self.oracles {
            oracles.finish();
        }
        self.take_violations();
        self.totals.choices = self.stage.world.steps();
        self.totals.simulated = self.stage.now().since(BEGINNING).0;
    }

    fn heed(&mut self, done: Result<bool, WorldError>) -> Option<bool> {
        self.listen();
        match done {
            Ok(done) => Some(done),
            Err(error) => {
                let invariant = match &error {
                    WorldError::Log(_) => "D2",
                    WorldError::Undeliverable(_) | WorldError::Host(_) => "world",
                };
                self.breaks(invariant, error.to_string());
                None
            }
        }
    }

    fn breaks(&mut self, invariant: &str, what: String) {
        let at = self.stage.now().since(BEGINNING);
        self.broken.push(Broken { invariant: invariant.to_owned(), what, at });
    }

    /// Hears what happened.
    fn listen(&mut self) {
        self.is_delicate = false;
        let mut records = std::mem::take(&mut self.records);
        self.stage.world.drain_records(&mut records);
        for record in records.drain(..) {
            match record {
                Record::Fact { event, .. } => {
                    self.totals.facts += 1;
                    self.coverage.fact(&event.fact, &self.whereabouts);
                    self.judge(TraceEntry::Fact(event));
                }
                Record::Command { at, command } => {
                    self.totals.commands += 1;
                    self.coverage.command(&command);
                    self.is_delicate |= !matches!(
                        command.action,
                        Action::PublishStatus { .. } | Action::RecordEvent(_) | Action::StartProbe { .. }
                    );
                    self.totals.released += u64::from(matches!(command.action, Action::ReleasePod));
                    self.judge(TraceEntry::Command { at, command });
                }
                Record::Transition { transition, .. } => self.whereabouts.moved(&transition),
                Record::InvariantBroken { violation, .. } => {
                    let number = violation.split(':').next().unwrap_or_default().to_owned();
                    self.breaks(&number, violation);
                }
                Record::Requested { accepted, .. } => {
                    self.totals.requests += 1;
                    self.totals.refused += u64::from(!accepted);
                }
                Record::Crashed { .. } => self.totals.crashes += 1,
                Record::PodNamed { .. } => self.totals.pods += 1,
                Record::ScenarioBegan { .. }
                | Record::StepBegan { .. }
                | Record::StepEnded { .. }
                | Record::ProcessEnded { .. }
                | Record::Held { .. }
                | Record::Marked { .. }
                | Record::Expectation { .. } => {}
            }
        }
        self.records = records;
    }

    fn judge(&mut self, entry: TraceEntry) {
        let Some(oracles) = &mut self.oracles else { return };
        oracles.observe(&entry);
        if !oracles.violations().is_empty() {
            self.take_violations();
        }
    }

    fn take_violations(&mut self) {
        let Some(oracles) = &mut self.oracles else { return };
        for violation in oracles.take_violations() {
            self.breaks(&violation.invariant.to_string(), violation.to_string());
        }
    }

    /// Faults stopped, and time enough has passed.
    fn judge_the_end(&mut self) {
        let Some(oracles) = &mut self.oracles else { return };
        oracles.at_rest(self.stage.node_now());
        self.take_violations();
        for left in self.stage.world.leftovers() {
            self.breaks("L2", format!("L2: {left} is still on the host, and its pod is not"));
        }
    }
}
