//! What executes commands: the one seam between a driver and the world outside (DESIGN §2). The core itself calls
//! neither side.

use crate::command::Command;
use crate::event::Fact;
use crate::time::Nanos;

/// Takes commands on and tells how they ended. Commands about different instances may end in any order.
pub trait Backend {
    /// Takes a command on. Never waits for its end: that comes as a fact.
    fn submit(&mut self, command: &Command);

    /// The next fact: a completion, or something noticed. Waits for one no longer than this; zero asks only.
    fn receive(&mut self, wait: Nanos) -> Option<Fact>;

    /// How many commands were taken on whose end was not told yet.
    fn in_flight(&self) -> usize;
}
