//! Where facts are made durable before their commands are executed, and what an agent's restart folds again.

use nodefold_api::ApiEvent;
use nodefold_core::command::Command;
use nodefold_core::event::Event;
use nodefold_core::{Commands, Config, Node};

/// Why a log could not be written or read.
#[derive(Debug, thiserror::Error)]
#[error("the journal can't be used: {0}")]
pub struct LogError(pub String);

/// A log of facts, and of requests to the API beside them.
pub trait FactLog {
    /// Makes a fact durable. `before` is the node as it is without it.
    fn fact(&mut self, event: &Event, before: &mut Node) -> Result<(), LogError>;
    /// Notes the commands that the fact made due.
    fn commands_given(&mut self, commands: &[Command]);
    /// Keeps a request to the API; durable with the next fact.
    fn request(&mut self, event: &ApiEvent) -> Result<(), LogError>;
    /// The agent died. Folds what is durable, as the next agent does.
    fn recover(&mut self) -> Result<Node, LogError>;
    /// The clean end. `node` is as it is after everything.
    fn close(&mut self, node: &mut Node) -> Result<(), LogError>;
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
    fn fact(&mut self, event: &Event, _before: &mut Node) -> Result<(), LogError> {
        self.events.push(event.clone());
        Ok(())
    }

    fn commands_given(&mut self, _commands: &[Command]) {}

    fn request(&mut self, _event: &ApiEvent) -> Result<(), LogError> {
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

    fn close(&mut self, _node: &mut Node) -> Result<(), LogError> {
        Ok(())
    }
}
