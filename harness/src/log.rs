//! Where facts are made durable before their commands are executed, and what an agent's restart folds again.

mod on_disk;

pub use on_disk::OnDisk;

use crate::brain::{Brain, NewBrain};
use nodefold_api::ApiEvent;
use nodefold_core::command::Command;
use nodefold_core::event::Event;
use nodefold_core::{Commands, Config};
use std::sync::Arc;

/// Why a log could not be written or read.
#[derive(Debug, thiserror::Error)]
#[error("the journal can't be used: {0}")]
pub struct LogError(pub String);

/// A log of facts, and of requests to the API beside them.
pub trait FactLog: Send {
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

    /// The disk is full. Whether the fact became durable all the same, in room that was taken before; if not, the agent
    /// dies of it.
    fn without_room(&mut self, _event: &Event, _before: &mut dyn Brain) -> Result<bool, LogError> {
        Ok(false)
    }

    /// The host lost power: what was written and not synced is gone.
    fn lose_power(&mut self) {}

    /// Notes the commands that the fact made due.
    fn commands_given(&mut self, commands: &[Command]);
    /// What was acknowledged is to be compared with what is durable after a crash (D2): not where nothing is ever kept.
    fn is_judged(&self) -> bool {
        true
    }
    /// Keeps a request to the API; durable with the next fact.
    fn request(&mut self, event: &ApiEvent) -> Result<(), LogError>;
    /// The agent died. Folds what is durable into a new brain, as the next agent does.
    fn recover(&mut self, new: &NewBrain) -> Result<Box<dyn Brain>, LogError>;
    /// What is durable, in order: what a restart must have folded (D2).
    fn durable(&mut self) -> Result<Vec<Event>, LogError>;
    /// A second log with the same content, for a world that goes on apart from this one.
    fn fork(&self) -> Result<Box<dyn FactLog>, LogError>;
    /// The clean end. `brain` is as it is after everything.
    fn close(&mut self, brain: &mut dyn Brain) -> Result<(), LogError>;
}

/// The log of a simulated node: the real journal on a simulated disk, or none but memory.
pub fn of(config: &Config, journal: bool) -> Box<dyn FactLog> {
    if journal { Box::new(OnDisk::new(config)) } else { Box::<InMemory>::default() }
}

/// A log in memory: the simulated disk of a run without a journal.
/// Clones share what they have in common, so that a fork costs nothing.
#[derive(Default, Clone)]
pub struct InMemory {
    last: Option<Arc<Kept>>,
}

/// A fact, and those before it.
struct Kept {
    event: Event,
    before: Option<Arc<Kept>>,
}

impl Drop for Kept {
    /// One after the other: a long chain must not end in as deep a recursion.
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(mut kept) = next.and_then(Arc::into_inner) {
            next = kept.before.take();
        }
    }
}

impl InMemory {
    /// Keeps a fact.
    pub fn keep(&mut self, event: &Event) {
        let before = self.last.take();
        self.last = Some(Arc::new(Kept { event: event.clone(), before }));
    }

    /// What is kept, in order.
    pub fn events(&self) -> Vec<&Event> {
        let mut events: Vec<&Event> = Vec::new();
        let mut next = self.last.as_deref();
        while let Some(kept) = next {
            events.push(&kept.event);
            next = kept.before.as_deref();
        }
        events.reverse();
        events
    }
}

impl FactLog for InMemory {
    fn fact(&mut self, event: &Event, _before: &mut dyn Brain) -> Result<(), LogError> {
        self.keep(event);
        Ok(())
    }

    fn commands_given(&mut self, _commands: &[Command]) {}

    fn request(&mut self, _event: &ApiEvent) -> Result<(), LogError> {
        Ok(())
    }

    fn recover(&mut self, new: &NewBrain) -> Result<Box<dyn Brain>, LogError> {
        let mut brain = new();
        let mut out = Commands::default();
        for event in self.events() {
            out.clear();
            brain.apply(event, &mut out);
        }
        Ok(brain)
    }

    fn fork(&self) -> Result<Box<dyn FactLog>, LogError> {
        Ok(Box::new(self.clone()))
    }

    fn durable(&mut self) -> Result<Vec<Event>, LogError> {
        Ok(self.events().into_iter().cloned().collect())
    }

    fn close(&mut self, _brain: &mut dyn Brain) -> Result<(), LogError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::brain::production;
    use nodefold_core::{Config, Fact};

    #[test]
    fn a_fork_shares_the_past_and_a_long_log_is_dropped_without_recursion() {
        let new = production(Config::default());
        let mut brain = new();
        let mut log = InMemory::default();
        let mut keep = |log: &mut InMemory, at: u64| {
            let event = Event { at: nodefold_core::time::Time(at), fact: Fact::Tick };
            assert!(log.fact(&event, &mut *brain).is_ok());
        };
        (1..200_000).for_each(|at| keep(&mut log, at));
        let mut fork = log.clone();
        keep(&mut log, 200_000);
        let counted = |log: &mut InMemory| {
            log.recover(&new).ok().and_then(|b| b.node().map(|node| node.event_count().0))
        };
        assert_eq!((counted(&mut log), counted(&mut fork)), (Some(200_000), Some(199_999)));
    }
}
