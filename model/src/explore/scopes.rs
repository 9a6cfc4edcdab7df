//! The specification's scopes as worlds to explore, with symmetry by a true canonical form: the least of all states that
//! exchanging what is alike leads to.

use super::World;
use crate::spec::scope::{State, Step};
use crate::spec::shapes::Shape;
use crate::spec::{By, container, pod, sandbox, volume};
use zerocopy::IntoBytes as _;

/// A scope and where it is.
#[derive(Copy, Clone, Debug)]
pub struct Scope {
    /// What may happen.
    pub shape: &'static Shape,
    /// Where it is.
    pub state: State,
    /// States that differ only by exchanging what is alike count as one.
    pub symmetric: bool,
}

impl Scope {
    /// A scope at its beginning.
    pub fn new(shape: &'static Shape, symmetric: bool) -> Scope {
        Scope { shape, state: State::new(shape), symmetric }
    }
}

impl World for Scope {
    type Choice = Step;

    fn choices(&self, out: &mut Vec<Step>) {
        self.state.steps(self.shape, out);
    }

    fn take(&mut self, step: &Step) -> Result<(), String> {
        self.state.take(self.shape, *step);
        Ok(())
    }

    fn broken(&self) -> Option<String> {
        self.state.broken(self.shape).map(str::to_owned)
    }

    fn key(&self) -> u128 {
        let state = if self.symmetric { self.state.canonical(self.shape) } else { self.state };
        xxhash_rust::xxh3::xxh3_128(state.as_bytes())
    }

    fn is_fault(&self, step: &Step) -> bool {
        let by = match *step {
            Step::Pod(_, row) => pod::TABLE[usize::from(row)].by,
            Step::Sandbox(_, row) => sandbox::TABLE[usize::from(row)].by,
            Step::Volume(_, _, row) => volume::TABLE[usize::from(row)].by,
            Step::Container(_, _, row) => container::TABLE[usize::from(row)].by,
            Step::AgentDies | Step::HostDies => By::Crash,
            Step::Wish(_)
            | Step::Delete(_)
            | Step::Allocate(_)
            | Step::Initialized(_)
            | Step::Told(_)
            | Step::Doom(..)
            | Step::SourcesListed
            | Step::MountsSeen
            | Step::RuntimeSeen => By::World,
        };
        matches!(by, By::Fault | By::Crash)
    }

    fn is_settled(&self) -> bool {
        self.state.is_settled(self.shape)
    }

    /// Looks at what is known commute with everything that does not wait for them, and nothing may happen only before.
    fn first(&self, steps: &[Step]) -> Option<usize> {
        // A crash may come before a look and so must be tried before it: only without crashes does it go first.
        if self.state.crashes > 0 || self.shape.faults {
            return None;
        }
        steps.iter().position(|step| matches!(step, Step::SourcesListed | Step::MountsSeen | Step::Told(_)))
    }
}
