//! Where facts are made durable before their commands are executed, and what an agent's restart folds again.

use nodefold_core::event::Event;
use nodefold_core::{Commands, Config, Node};

/// Why a log could not be written or read.
#[derive(Debug, thiserror::Error)]
#[error("the journal can't be used: {0}")]
pub struct LogError(pub String);

/// A log of facts.
pub trait FactLog {
    /// Makes a fact durable.
    fn append(&mut self, event: &Event) -> Result<(), LogError>;
    /// Folds what is there, as a restarted agent does.
    fn recover(&mut self) -> Result<Node, LogError>;
    /// No more facts will come.
    fn close(&mut self) -> Result<(), LogError>;
}

/// A log in memory: the simulated disk of a run without a journal.
pub struct InMemory {
    config: Config,
    events: Vec<Event>,
}

impl InMemory {
    /// An empty log of a node with this configuration.
    pub fn new(config: Config) -> InMemory {
        InMemory { config, events: Vec::new() }
    }
}

impl FactLog for InMemory {
    fn append(&mut self, event: &Event) -> Result<(), LogError> {
        self.events.push(event.clone());
        Ok(())
    }

    fn recover(&mut self) -> Result<Node, LogError> {
        let mut node = Node::new(self.config.clone());
        let mut out = Commands::default();
        for event in &self.events {
            out.clear();
            node.apply(event, &mut out);
        }
        Ok(node)
    }

    fn close(&mut self) -> Result<(), LogError> {
        Ok(())
    }
}
