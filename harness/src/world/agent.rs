//! The agent: the node's brain in the world. It makes each fact durable, folds it, and hands on the commands. A crash
//! loses everything but the log; a restart folds the log again.

use crate::log::{FactLog, LogError};
use crate::record::Record;
use nodefold_api::ApiEvent;
use nodefold_core::command::Command;
use nodefold_core::context::Why;
use nodefold_core::event::{Event, Fact};
use nodefold_core::time::Time;
use nodefold_core::{Commands, Digest, Node};

/// The agent.
pub struct Agent {
    node: Node,
    log: Box<dyn FactLog>,
    out: Commands,
    alive: bool,
    facts: u64,
}

/// What a restart found.
pub struct Recovered {
    /// The digest before the crash.
    pub before: Digest,
    /// The digest of what the log folds to. Anything else is a broken D1.
    pub after: Digest,
}

impl Agent {
    /// An agent that has not started.
    pub fn new(node: Node, log: Box<dyn FactLog>) -> Agent {
        Agent { node, log, out: Commands::default(), alive: false, facts: 0 }
    }

    /// It runs.
    pub fn is_alive(&self) -> bool {
        self.alive
    }

    /// How many facts it has folded, over all its lives.
    pub fn facts(&self) -> u64 {
        self.facts
    }

    /// The node as the log has it; also while the agent is down, since every fact in it is durable.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The node's digest.
    pub fn digest(&mut self) -> Digest {
        self.node.digest()
    }

    /// When the node wants a `Tick`.
    pub fn next_deadline(&self) -> Option<Time> {
        if self.alive { self.node.next_deadline() } else { None }
    }

    /// The node's deadlines that stand for work: all but recurring housekeeping.
    pub fn work_due(&self) -> Option<(Time, Why)> {
        if !self.alive {
            return None;
        }
        self.node
            .deadlines()
            .filter(|(_, _, why)| !why.is_housekeeping())
            .map(|(at, _, why)| (at, why))
            .next()
    }

    /// Makes a fact durable, folds it in, and gives the commands that it made due (write-ahead, DESIGN §8).
    pub fn fold(&mut self, event: Event, records: &mut Vec<Record>) -> Result<Vec<Command>, LogError> {
        self.log.fact(&event, &mut self.node)?;
        self.facts += 1;
        self.out.clear();
        self.node.apply(&event, &mut self.out);
        let at = event.at;
        records.push(Record::Fact { seq: self.node.event_count().0, event });
        records
            .extend(self.out.transitions.drain(..).map(|transition| Record::Transition { at, transition }));
        let commands = std::mem::take(&mut self.out.commands);
        self.log.commands_given(&commands);
        records.extend(commands.iter().map(|command| Record::Command { at, command: command.clone() }));
        Ok(commands)
    }

    /// Keeps a request to the API beside the facts.
    pub fn keep_request(&mut self, event: &ApiEvent) -> Result<(), LogError> {
        self.log.request(event)
    }

    /// Dies.
    pub fn crash(&mut self) {
        self.alive = false;
    }

    /// Comes to life, from its log if it lived before.
    pub fn start(&mut self, boot_id: u128) -> Result<(Fact, Option<Recovered>), LogError> {
        let recovered = if self.facts > 0 {
            let before = self.node.digest();
            self.node = self.log.recover()?;
            Some(Recovered { before, after: self.node.digest() })
        } else {
            None
        };
        self.alive = true;
        Ok((Fact::AgentStarted { boot_id }, recovered))
    }

    /// Ends cleanly: the log is complete.
    pub fn close(&mut self) -> Result<(), LogError> {
        self.log.close(&mut self.node)
    }
}
