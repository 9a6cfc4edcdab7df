//! A disk that does not keep what it acknowledged (D2).

use crate::brain::{Brain, NewBrain};
use crate::log::{FactLog, LogError};
use nodefold_api::ApiEvent;
use nodefold_core::Commands;
use nodefold_core::command::Command;
use nodefold_core::event::Event;

/// What is wrong with it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The fact acknowledged last is not there after a crash.
    LosesTheLast,
    /// The fact acknowledged last is there twice.
    RepeatsTheLast,
}

/// The log in memory, on such a disk.
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
            Damage::LosesTheLast => drop(self.events.pop()),
            Damage::RepeatsTheLast => self.events.extend(self.events.last().cloned()),
        }
        let mut brain = new();
        let mut out = Commands::default();
        for event in &self.events {
            out.clear();
            brain.apply(event, &mut out);
        }
        Ok(brain)
    }

    fn durable(&mut self) -> Result<Vec<Event>, LogError> {
        Ok(self.events.clone())
    }

    fn close(&mut self, _brain: &mut dyn Brain) -> Result<(), LogError> {
        Ok(())
    }
}
