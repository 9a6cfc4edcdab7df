//! Bring your own core: what the world drives. The production [`Node`] is one brain; a saboteur around it is another, and
//! so is the decision code of any other node agent that takes facts and gives commands.

use nodefold_core::time::Time;
use nodefold_core::{Commands, Config, Digest, Event, Node};
use std::sync::Arc;

/// A node agent's decision code: facts in, commands out, and nothing else.
pub trait Brain: Send + Sync {
    /// Takes a fact in and says what it makes due. The only way its state changes.
    fn apply(&mut self, event: &Event, out: &mut Commands);

    /// When it wants a `Tick`.
    fn next_deadline(&self) -> Option<Time>;

    /// The earliest deadline that stands for work, and why; recurring housekeeping is none.
    fn work_due(&self) -> Option<(Time, String)> {
        self.next_deadline().map(|at| (at, "deadline".to_owned()))
    }

    /// The same brain once more, to go on apart from this one: what an explorer branches on.
    fn boxed_clone(&self) -> Box<dyn Brain>;
    /// Equal states have equal digests. What recovery compares (D1).
    fn digest(&mut self) -> Digest;

    /// Writes what it remembers besides the node inside, without times: what an explorer tells states apart by.
    fn memory(&self, _out: &mut Vec<u8>) {}

    /// The production node inside: what `expect` reads its views of, and what a journal can keep.
    fn node(&self) -> Option<&Node> {
        None
    }

    /// The same, to be kept in a journal.
    fn node_mut(&mut self) -> Option<&mut Node> {
        None
    }
}

impl Brain for Node {
    fn apply(&mut self, event: &Event, out: &mut Commands) {
        Node::apply(self, event, out);
    }

    fn next_deadline(&self) -> Option<Time> {
        Node::next_deadline(self)
    }

    fn work_due(&self) -> Option<(Time, String)> {
        self.deadlines()
            .find(|(_, _, why)| !why.is_housekeeping())
            .map(|(at, _, why)| (at, format!("{why:?}")))
    }

    fn boxed_clone(&self) -> Box<dyn Brain> {
        Box::new(self.clone())
    }
    fn digest(&mut self) -> Digest {
        Node::digest(self)
    }

    fn node(&self) -> Option<&Node> {
        Some(self)
    }

    fn node_mut(&mut self) -> Option<&mut Node> {
        Some(self)
    }
}

/// Makes a brain that has seen nothing: at the beginning, and after each crash, before its log is folded again.
pub type NewBrain = Arc<dyn Fn() -> Box<dyn Brain> + Send + Sync>;

/// The production core.
pub fn production(config: Config) -> NewBrain {
    Arc::new(move || Box::new(Node::new(config.clone())))
}
