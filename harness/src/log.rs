//! Where facts are made durable before their commands are executed, and what an agent's restart folds again.

use crate::brain::{Brain, NewBrain};
use nodefold_api::ApiEvent;
use nodefold_core::Commands;
use nodefold_core::command::Command;
use nodefold_core::event::Event;

/// Why a log could not be written or read.
#[derive(Debug, thiserror::Error)]
#[error("the journal can't be used: {0}")]
pub struct LogError(pub String);

/// A log of facts, and of requests to the API beside them.
pub trait FactLog {
    /// Makes a fact durable. `before` is the brain as it is without it.
    fn fact(&mut self, event: &Event, before: &mut dyn Brain) -> Result<(), LogError>;
    /// The agent dies while it makes a fact durable: what of it reached the disk, these bits say. Whether the fact
    /// survived, whole; all facts before it must have.
    fn torn(&mut self, event: &Event, before: &mut dyn Brain, keep: u64) -> Result<bool, LogError> {
        let survives = keep & 1 == 1;
        if survives {
            self.fact(event, before)?;
        }
        Ok(survives)
    }

    /// Notes the commands that the fact made due.
    fn commands_given(&mut self, commands: &[Command]);
    /// Keeps a request to the API; durable with the next fact.
    fn request(&mut self, event: &ApiEvent) -> Result<(), LogError>;
    /// The agent died. Folds what is durable into a new brain, as the next agent does.
    fn recover(&mut self, new: &NewBrain) -> Result<Box<dyn Brain>, LogError>;
    /// The clean end. `brain` is as it is after everything.
    fn close(&mut self, brain: &mut dyn Brain) -> Result<(), LogError>;
}

/// A log in memory: the simulated disk of a run without a journal.
#[derive(Default)]
pub struct InMemory {
    events: Vec<Event>,
}

impl FactLog for InMemory {
    fn fact(&mut self, event: &Event, _before: &mut dyn Brain) -> Result<(), LogError> {
        self.events.push(event.clone());
        Ok(())
    }

    fn commands_given(&mut self, _commands: &[Command]) {}

    fn request(&mut self, _event: &ApiEvent) -> Result<(), LogError> {
        Ok(())
    }

    fn recover(&mut self, new: &NewBrain) -> Result<Box<dyn Brain>, LogError> {
        let mut brain = new();
        let mut out = Commands::default();
        for event in &self.events {
            out.clear();
            brain.apply(event, &mut out);
        }
        Ok(brain)
    }

    fn close(&mut self, _brain: &mut dyn Brain) -> Result<(), LogError> {
        Ok(())
    }
}
