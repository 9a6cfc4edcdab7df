//! The fold in an agent: facts are made durable, then folded, and only then are the commands known that they made due
//! (write-ahead, DESIGN §8). Facts that wait together become durable together.

use crate::fault::{Attempt, Fault};
use crate::ids::Ids;
use crate::layout::Layout;
use crate::{beneath, clock};
use nodefold_core::command::{Command, Transition};
use nodefold_core::event::{Event, Fact};
use nodefold_core::ids::PodUid;
use nodefold_core::time::Time;
use nodefold_core::{Commands, Node};
use nodefold_journal::Writer;
use std::path::Path;

/// Where facts are made durable.
pub trait Log {
    /// Makes facts durable, as a whole. `before` is the node without them.
    fn keep(&mut self, events: &[Event], before: &mut Node) -> Result<(), String>;
    /// Notes the commands that a fact made due.
    fn commands_given(&mut self, commands: &[Command]);
}

impl Log for Writer {
    fn keep(&mut self, events: &[Event], before: &mut Node) -> Result<(), String> {
        for event in events {
            self.append(event).map_err(|error| error.to_string())?;
        }
        self.commit(before).map(drop).map_err(|error| error.to_string())
    }

    fn commands_given(&mut self, commands: &[Command]) {
        Writer::commands_given(self, commands);
    }
}

/// A node and its log.
pub struct Driver<L> {
    node: Node,
    log: L,
    folded: u64,
}

/// A fact that was folded in, and what it made due.
pub struct Folded {
    /// Its number in this fold.
    pub seq: u64,
    /// The fact.
    pub event: Event,
    /// The pods whose state it may have changed; one may be named more than once.
    pub touched: Vec<PodUid>,
    /// What changed its phase.
    pub transitions: Vec<Transition>,
    /// What is to be done.
    pub commands: Vec<Command>,
}

impl<L: Log> Driver<L> {
    /// A node as its log has it. `folded`: how many facts that are.
    pub fn new(node: Node, log: L, folded: u64) -> Driver<L> {
        Driver { node, log, folded }
    }

    /// Takes facts in. Their time is now, and never before that of the fact before: a clock that is set back stands still.
    pub fn tell(&mut self, facts: Vec<Fact>) -> Result<Vec<Folded>, String> {
        let at = clock::now().max(self.node.now());
        let events: Vec<Event> = facts.into_iter().map(|fact| Event { at, fact }).collect();
        self.log.keep(&events, &mut self.node)?;
        let mut done = Vec::with_capacity(events.len());
        for event in events {
            let mut out = Commands::default();
            self.node.apply(&event, &mut out);
            self.log.commands_given(&out.commands);
            self.folded += 1;
            let Commands { commands, transitions } = out;
            let touched = self.node.latest_touched().to_vec();
            done.push(Folded { seq: self.folded, event, touched, transitions, commands });
        }
        Ok(done)
    }

    /// The node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The node, for its digest.
    pub fn node_mut(&mut self) -> &mut Node {
        &mut self.node
    }

    /// The log, for what is kept beside the facts.
    pub fn log_mut(&mut self) -> &mut L {
        &mut self.log
    }

    /// How many facts were folded, over all lives of the agent.
    pub fn folded(&self) -> u64 {
        self.folded
    }

    /// When time itself becomes a fact.
    pub fn next_deadline(&self) -> Option<Time> {
        self.node.next_deadline()
    }

    /// Its parts, when the agent ends.
    pub fn into_parts(self) -> (Node, L) {
        (self.node, self.log)
    }
}

impl Driver<Writer> {
    /// Makes durable what was put beside the facts, where no fact does.
    pub fn commit_beside(&mut self) -> Result<(), String> {
        match self.log.pending() {
            0 => Ok(()),
            _ => self.log.commit(&mut self.node).map(drop).map_err(|error| error.to_string()),
        }
    }
}

/// The kernel's id of this boot: another one means that nothing runs any more, and nothing is mounted. In a rootless node both end
/// with its namespaces, so that their life counts, too.
pub fn boot_id(layout: &Layout) -> Result<u128, Fault> {
    let of_host = random_id(Path::new("/proc/sys/kernel/random/boot_id"))?;
    if Ids::here()?.are_the_hosts() {
        return Ok(of_host);
    }
    let life = layout.run().join("life");
    if !life.exists() {
        let drawn = "/proc/sys/kernel/random/uuid";
        let text = std::fs::read(drawn).attempt(|| format!("read {drawn}"))?;
        crate::volumes::write_whole(&beneath::open_root(&layout.run())?, "life", &text)?;
    }
    Ok(of_host ^ random_id(&life)?)
}

/// The number of a file that holds a UUID.
fn random_id(path: &Path) -> Result<u128, Fault> {
    let text = std::fs::read_to_string(path).attempt(|| format!("read {}", path.display()))?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&digits, 16).map_err(|error| Fault::refused(format!("{}: {error}", path.display())))
}
