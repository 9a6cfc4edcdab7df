//! A log that does not keep what it acknowledged (D2), or folds to something else (D1).

use crate::brain::{Brain, NewBrain};
use crate::log::{FactLog, LogError};
use nodefold_api::ApiEvent;
use nodefold_core::Commands;
use nodefold_core::command::Command;
use nodefold_core::event::{Event, Fact};

/// What is wrong with it.
#[derive(Copy, Clone, Debug)]
pub enum Damage {
    /// Such facts are there, and are not folded when the log is.
    Skips(fn(&Fact) -> bool),
    /// The fact acknowledged last is not there after a crash.
    LosesTheLast,
    /// The fact acknowledged last is there twice.
    RepeatsTheLast,
}

/// The log in memory, so damaged.
#[derive(Clone)]
pub struct Damaged {
    damage: Damage,
    events: Vec<Event>,
}

impl Damaged {
    /// An empty one.
    pub fn new(damage: Damage) -> Damaged {
        Damaged { damage, events: Vec::new() }
    }
}

impl FactLog for Damaged {
    fn fact(&mut self, event: &Event, _before: &mut dyn Brain) -> Result<(), LogError> {
        self.events.push(event.clone());
        Ok(())
    }

    fn commands_given(&mut self, _commands: &[Command]) {}

    fn request(&mut self, _event: &ApiEvent) -> Result<(), LogError> {
        Ok(())
    }

    fn recover(&mut self, new: &NewBrain) -> Result<Box<dyn Brain>, LogError> {
        match self.damage {
            Damage::Skips(_) => {}
            Damage::LosesTheLast => drop(self.events.pop()),
            Damage::RepeatsTheLast => self.events.extend(self.events.last().cloned()),
        }
        let mut brain = new();
        let mut out = Commands::default();
        let skipped = |event: &&Event| matches!(self.damage, Damage::Skips(skips) if skips(&event.fact));
        for event in self.events.iter().filter(|event| !skipped(event)) {
            out.clear();
            brain.apply(event, &mut out);
        }
        Ok(brain)
    }

    fn durable(&mut self) -> Result<Vec<Event>, LogError> {
        Ok(self.events.clone())
    }

    fn fork(&self) -> Result<Box<dyn FactLog>, LogError> {
        Ok(Box::new(self.clone()))
    }

    fn close(&mut self, _brain: &mut dyn Brain) -> Result<(), LogError> {
        Ok(())
    }
}
