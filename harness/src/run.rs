//! Runs a scenario on the simulated world and says how it went.

mod expect;
mod perform;
mod story;
mod subset;

pub use expect::Miss;
pub use subset::{Difference, differences};

use crate::brain::{NewBrain, production};
use crate::log::{self, FactLog};
use crate::record::{Observer, Record};
use crate::scenario::{NodeSpec, Scenario, Step, Verb};
use crate::stage::{Simulation, Stage};
use crate::world::{Chooser, Earliest, World, WorldError};
use expect::Answered;
use nodefold_core::time::Time;
use nodefold_core::{Config, Digest};
use serde::Serialize;
use story::{Moment, Story};

/// How to run.
#[derive(Default)]
pub struct RunOptions {
    /// Where facts are made durable; none: in memory.
    pub log: Option<Box<dyn FactLog>>,
    /// What decides; none: the production core.
    pub brain: Option<NewBrain>,
    /// Who picks among the enabled choices; none: whatever is due first.
    pub chooser: Option<Box<dyn Chooser>>,
}

/// How much of everything.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Facts folded.
    pub facts: u64,
    /// Commands given.
    pub commands: u64,
    /// Transitions.
    pub transitions: u64,
    /// Requests to the API.
    pub requests: u64,
    /// Expectations that held.
    pub expectations: u64,
    /// Steps of the story that were done.
    pub steps: u64,
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// In a word.
    pub verdict: Verdict,
    /// The node's digest at the end.
    pub digest: Digest,
    /// The API store's.
    pub api_digest: Digest,
    /// How much of everything.
    pub counts: Counts,
    /// The world's time at the end.
    pub ended_at: Time,
}

/// The judgement of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything held.
    Passed,
    /// Something expected does not hold, or a step could not be done.
    ExpectationFailed {
        /// Which step.
        step: usize,
        /// Its line in the file.
        line: usize,
        /// What was expected.
        expected: String,
        /// What is.
        actual: String,
        /// Why.
        explanation: String,
    },
    /// An invariant broke.
    InvariantBroken {
        /// During which step.
        step: usize,
        /// Its line in the file.
        line: usize,
        /// Each with its number.
        violations: Vec<String>,
    },
    /// The run can't go on: bad input or a failing disk.
    Unusable {
        /// At which step.
        step: usize,
        /// Its line in the file.
        line: usize,
        /// Why.
        error: String,
    },
}

/// The configuration of the node that a scenario runs on: what a journal of the run must be opened with.
pub fn node_config(scenario: &Scenario) -> Config {
    node_config_of(&scenario.node)
}

/// The configuration of such a node.
pub fn node_config_of(node: &NodeSpec) -> Config {
    Config { node: node.facts.clone(), ..Config::default() }
}

/// Runs a scenario from beginning to end.
pub fn run(scenario: &Scenario, options: RunOptions, observer: &mut dyn Observer) -> Outcome {
    let config = node_config(scenario);
    let log = options.log.unwrap_or_else(|| log::of(&config, scenario.node.journal));
    let brain = options.brain.unwrap_or_else(|| production(config.clone()));
    let mut simulation = Simulation {
        world: World::new(&config, brain, &scenario.node, log),
        chooser: options.chooser.unwrap_or_else(|| Box::new(Earliest)),
    };
    simulation.world.set_instant(scenario.instant);
    simulation.world.server_mut().refuse_names_in_flight(!scenario.trusting);
    run_on(scenario, &mut simulation, observer)
}

/// Runs a scenario from beginning to end on any stage.
pub fn run_on(scenario: &Scenario, stage: &mut dyn Stage, observer: &mut dyn Observer) -> Outcome {
    let began = stage.now();
    let story = Story::new(observer, &node_config(scenario), began);
    let mut run = Run { story, stage, last: None, last_step: (0, 1) };
    let (name, about) = (scenario.name.clone(), scenario.about.clone());
    run.story.tell(Record::ScenarioBegan { name, about, at: began });
    let mut verdict = run.begin();
    for step in &scenario.steps {
        if verdict != Verdict::Passed {
            break;
        }
        verdict = run.step(step);
    }
    run.end(verdict)
}

/// A run under way.
struct Run<'o> {
    stage: &'o mut dyn Stage,
    story: Story<'o>,
    last: Option<Answered>,
    /// The step under way or done last, and its line.
    last_step: (usize, usize),
}

/// Why a step was not done.
enum Trouble {
    /// What the step needs is not there, or what it expects does not hold.
    Miss(Miss),
    /// The world can't go on.
    World(WorldError),
    /// The step can't be done in any world.
    Unusable(String),
}

impl From<WorldError> for Trouble {
    fn from(error: WorldError) -> Trouble {
        Trouble::World(error)
    }
}

impl From<Miss> for Trouble {
    fn from(miss: Miss) -> Trouble {
        Trouble::Miss(miss)
    }
}

impl Run<'_> {
    /// Before the first step, the node comes up: a scenario's requests meet a node that is there.
    fn begin(&mut self) -> Verdict {
        let came_up = self.settle(nodefold_core::time::Nanos::ZERO);
        self.tell_records();
        match came_up {
            Ok(()) if self.story.violations.is_empty() => Verdict::Passed,
            Ok(()) => {
                Verdict::InvariantBroken { step: 0, line: 1, violations: self.story.violations.clone() }
            }
            Err(trouble) => self.verdict_of(trouble, 0, 1),
        }
    }

    fn step(&mut self, step: &Step) -> Verdict {
        let (index, line) = (step.index, step.line);
        self.last_step = (index, line);
        let (verb, title, at) = (step.verb.name(), step.title.clone(), self.stage.now());
        self.story.tell(Record::StepBegan { index, line, verb, title, at });
        let done = self.perform(step);
        self.tell_records();
        if let Verb::Expect(expectation) = &step.verb {
            let (held, expected, actual, explanation) = match &done {
                Err(Trouble::Miss(m)) => (false, m.expected.clone(), m.actual.clone(), m.explanation.clone()),
                Err(Trouble::World(_) | Trouble::Unusable(_)) | Ok(()) => {
                    (true, String::new(), String::new(), String::new())
                }
            };
            self.story.counts.expectations += if held { expectation.checks.len() as u64 } else { 0 };
            let at = self.stage.now();
            self.story.tell(Record::Expectation { index, line, at, held, expected, actual, explanation });
        }
        let at = self.stage.now();
        self.story.tell(Record::StepEnded { index, at });
        self.story.counts.steps += 1;
        match done {
            _ if !self.story.violations.is_empty() => {
                Verdict::InvariantBroken { step: index, line, violations: self.story.violations.clone() }
            }
            Ok(()) => Verdict::Passed,
            Err(trouble) => self.verdict_of(trouble, index, line),
        }
    }

    fn verdict_of(&self, trouble: Trouble, step: usize, line: usize) -> Verdict {
        match trouble {
            Trouble::Miss(Miss { expected, actual, mut explanation }) => {
                // A refusal that nobody expected is the likeliest cause of whatever is missed later.
                let told =
                    self.last.as_ref().is_some_and(|l| explanation.contains(&format!("line {}", l.line)));
                if let Some(refused) = self.unexpected_refusal().filter(|_| !told) {
                    explanation = format!("{explanation}\n{refused}");
                }
                Verdict::ExpectationFailed { step, line, expected, actual, explanation }
            }
            Trouble::World(error) => Verdict::Unusable { step, line, error: error.to_string() },
            Trouble::Unusable(error) => Verdict::Unusable { step, line, error },
        }
    }

    fn unexpected_refusal(&self) -> Option<String> {
        let last = self.last.as_ref()?;
        match &last.response {
            nodefold_api::Response::Rejected(status) => Some(format!(
                "note: the request of line {} ({}) was refused: {}",
                last.line, last.what, status.message
            )),
            nodefold_api::Response::Ok { .. } => None,
        }
    }

    /// Tells everyone what the world did.
    fn tell_records(&mut self) {
        for record in self.stage.take_records() {
            self.story.tell(record);
        }
        self.story.tell_time(self.stage.now());
    }

    /// This moment, for a mark.
    fn moment(&self) -> Moment {
        Moment {
            at: self.stage.now(),
            instances: self.stage.instances(),
            pods: self.stage.server().newest().clone(),
        }
    }

    fn end(mut self, mut verdict: Verdict) -> Outcome {
        self.story.finish(self.stage.now());
        if verdict == Verdict::Passed && !self.story.violations.is_empty() {
            let (step, line) = self.last_step;
            verdict = Verdict::InvariantBroken { step, line, violations: self.story.violations.clone() };
        }
        if let (Err(error), Verdict::Passed) = (self.stage.close(), &verdict) {
            let (step, line) = self.last_step;
            verdict = Verdict::Unusable { step, line, error: error.to_string() };
        }
        Outcome {
            verdict,
            digest: self.stage.digest(),
            api_digest: self.stage.server().digest(),
            counts: self.story.counts,
            ended_at: self.stage.now(),
        }
    }
}

#[cfg(test)]
mod tests;
