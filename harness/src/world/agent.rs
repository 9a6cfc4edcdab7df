//! The agent: the node's brain in the world. It makes each fact durable, folds it, and hands on the commands. A crash
//! loses everything but the log; a restart folds the log again.

use crate::brain::{Brain, NewBrain};
use crate::log::{FactLog, InMemory, LogError};
use crate::record::Record;
use nodefold_api::ApiEvent;
use nodefold_core::command::Command;
use nodefold_core::event::{Event, Fact};
use nodefold_core::time::Time;
use nodefold_core::{Commands, Digest};
use std::sync::Arc;

/// The agent.
pub struct Agent {
    /// Forks share it until one of them folds a fact.
    brain: Arc<Box<dyn Brain>>,
    new_brain: NewBrain,
    log: Box<dyn FactLog>,
    out: Commands,
    alive: bool,
    facts: u64,
    heard: Time,
    /// What was acknowledged, over all its lives (D2).
    acknowledged: InMemory,
}

/// What a restart found.
pub struct Recovered {
    /// The digest before the crash.
    pub before: Digest,
    /// The digest of what the log folds to. Anything else is a broken D1.
    pub after: Digest,
    /// What is durable and was never acknowledged, or the reverse. Anything is a broken D2.
    pub unlike: Option<String>,
}

impl Agent {
    /// An agent that has not started.
    pub fn new(new_brain: NewBrain, log: Box<dyn FactLog>) -> Agent {
        Agent {
            brain: Arc::new(new_brain()),
            new_brain,
            log,
            out: Commands::default(),
            alive: false,
            facts: 0,
            heard: Time(0),
            acknowledged: InMemory::default(),
        }
    }

    /// The same agent once more, to go on apart from this one.
    pub fn fork(&self) -> Result<Agent, LogError> {
        Ok(Agent {
            brain: self.brain.clone(),
            new_brain: self.new_brain.clone(),
            log: self.log.fork()?,
            out: Commands::default(),
            alive: self.alive,
            facts: self.facts,
            heard: self.heard,
            acknowledged: self.acknowledged.clone(),
        })
    }

    /// It runs.
    pub fn is_alive(&self) -> bool {
        self.alive
    }

    /// How many facts it has folded, over all its lives.
    pub fn facts(&self) -> u64 {
        self.facts
    }

    /// The brain as the log has it; also while the agent is down, since every fact in it is durable.
    pub fn brain(&self) -> &dyn Brain {
        &**self.brain
    }

    /// The same, as forks share it.
    pub fn shared_brain(&self) -> &Arc<Box<dyn Brain>> {
        &self.brain
    }

    /// The brain's digest.
    pub fn digest(&mut self) -> Digest {
        self.brain_mut().digest()
    }

    fn brain_mut(&mut self) -> &mut dyn Brain {
        own(&mut self.brain)
    }

    /// When the node wants a `Tick`.
    pub fn next_deadline(&self) -> Option<Time> {
        if self.alive { self.brain.next_deadline() } else { None }
    }

    /// The node's deadlines that stand for work: all but recurring housekeeping.
    pub fn work_due(&self) -> Option<(Time, String)> {
        if self.alive { self.brain.work_due() } else { None }
    }

    /// The latest time that it was told of: its own time never runs backwards, whatever the host's clock does.
    pub fn heard(&self) -> Time {
        self.heard
    }

    /// Makes a fact durable, folds it in, and gives the commands that it made due (write-ahead, DESIGN §8). `None`: it did
    /// not become durable, for the disk `is_full`.
    pub fn fold(
        &mut self,
        event: Event,
        is_full: bool,
        records: &mut Vec<Record>,
    ) -> Result<Option<Vec<Command>>, LogError> {
        let brain = own(&mut self.brain);
        if !is_full {
            self.log.fact(&event, brain)?;
        } else if !self.log.without_room(&event, brain)? {
            return Ok(None);
        }
        self.out.clear();
        brain.apply(&event, &mut self.out);
        self.log.commands_given(&self.out.commands);
        Ok(Some(self.tell_folded(event, records)))
    }

    /// Tells of a fact that was folded and of what it made due.
    fn tell_folded(&mut self, event: Event, records: &mut Vec<Record>) -> Vec<Command> {
        self.facts += 1;
        if self.log.is_judged() {
            self.acknowledged.keep(&event);
        }
        let at = event.at;
        self.heard = self.heard.max(at);
        records.push(Record::Fact { seq: self.facts, event });
        records
            .extend(self.out.transitions.drain(..).map(|transition| Record::Transition { at, transition }));
        let commands = std::mem::take(&mut self.out.commands);
        records.extend(commands.iter().map(|command| Record::Command { at, command: command.clone() }));
        commands
    }

    /// Dies while it makes a fact durable. If the fact survived, it is folded, as the next agent will.
    pub fn fold_torn(&mut self, event: Event, keep: u64, records: &mut Vec<Record>) -> Result<(), LogError> {
        let brain = own(&mut self.brain);
        if self.log.torn(&event, brain, keep)? {
            self.out.clear();
            brain.apply(&event, &mut self.out);
            self.tell_folded(event, records);
        }
        Ok(())
    }

    /// Keeps a request to the API beside the facts.
    pub fn keep_request(&mut self, event: &ApiEvent) -> Result<(), LogError> {
        self.log.request(event)
    }

    /// Dies.
    pub fn crash(&mut self) {
        self.alive = false;
    }

    /// The host lost power, and its disk what was not synced.
    pub fn lose_power(&mut self) {
        self.log.lose_power();
    }

    /// Comes to life, from its log if it lived before.
    pub fn start(&mut self, boot_id: u128) -> Result<(Fact, Option<Recovered>), LogError> {
        let recovered = if self.facts > 0 {
            let before = self.digest();
            self.brain = Arc::new(self.log.recover(&self.new_brain)?);
            let unlike = unlike(&self.acknowledged.events(), &self.log.durable()?);
            Some(Recovered { before, after: self.digest(), unlike })
        } else {
            None
        };
        self.alive = true;
        Ok((Fact::AgentStarted { boot_id }, recovered))
    }

    /// Ends cleanly: the log is complete.
    pub fn close(&mut self) -> Result<(), LogError> {
        self.log.close(own(&mut self.brain))
    }
}

/// The brain to be changed: a copy of it, where it is shared.
fn own(brain: &mut Arc<Box<dyn Brain>>) -> &mut dyn Brain {
    if Arc::get_mut(brain).is_none() {
        *brain = Arc::new(brain.boxed_clone());
    }
    match Arc::get_mut(brain) {
        Some(brain) => &mut **brain,
        None => unreachable!("nobody shares what was just made"),
    }
}

/// D2: every acknowledged fact is durable, and no other.
fn unlike(acknowledged: &[&Event], durable: &[Event]) -> Option<String> {
    let place = acknowledged.iter().zip(durable).position(|(a, b)| *a != b);
    let place = place.unwrap_or(acknowledged.len().min(durable.len()));
    let name = |event: Option<&Event>| match event {
        Some(event) => format!("{} at {}", event.fact.name(), event.at.0),
        None => "nothing more".to_owned(),
    };
    (acknowledged.len() != durable.len() || place < durable.len()).then(|| {
        format!(
            "fact {} was acknowledged as {}, and after the crash the log has {}",
            place + 1,
            name(acknowledged.get(place).copied()),
            name(durable.get(place))
        )
    })
}
