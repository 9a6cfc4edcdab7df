//! The exhaustive explorer: all that may happen from a beginning, each state once (DESIGN §7).
//!
//! Owns the search and what is remembered of it. Knows nothing of what it explores but [`World`]: the specification's
//! scopes ([`scopes`]) and the production core in the simulated world are two of them.
//!
//! * **Counts are exact** and the same on every run and number of threads: states are numbered in the order in which a
//!   single thread would find them, layer by layer, so the counterexample is a shortest one and always the same.
//! * **A state is known by 96 bits of its key.** That two of `n` states share them by chance has odds of about `n² / 2⁹⁷`:
//!   less than one in 10¹⁵ for ten million states. A state would then be missed, never invented.
//! * **Livelocks** are found on the whole graph, not along paths: a state from which no settled state can be reached
//!   without faults is trapped, and is shown with a path to it and the cycle (lasso) that it goes round in.

mod breadth;
mod depth;
mod graph;
pub mod scopes;
mod visited;

pub use breadth::{Checkpoint, breadth_first, resume};
pub use depth::depth_first;

/// What can be explored.
pub trait World: Clone + Send {
    /// One thing that may happen.
    type Choice: Clone + Send + std::fmt::Debug;
    /// Everything that may happen next, into a reused buffer, in an order that the state alone decides.
    fn choices(&self, out: &mut Vec<Self::Choice>);
    /// Lets it happen. An error says what that broke.
    fn take(&mut self, choice: &Self::Choice) -> Result<(), String>;
    /// What is wrong with the state itself, however it was reached: asked of each state once.
    fn broken(&self) -> Option<String>;
    /// The state's canonical key: equal for states that no future can tell apart. Of others the upper 96 bits differ.
    fn key(&self) -> u128;
    /// It is one of the things that may go wrong, not one that must be hoped for.
    fn is_fault(&self, choice: &Self::Choice) -> bool;
    /// Everything asked for is so, and nothing more is to be done: where things must be able to end.
    fn is_settled(&self) -> bool;
    /// One of the choices that may go first for all of them (partial-order reduction: a persistent set of one): it commutes
    /// with whatever else can happen before it, nothing that can happen before it rules it out, and it shows nothing that
    /// a property looks at. What goes on so for ever is a livelock, and found as one: no other choice is put off by it.
    fn first(&self, choices: &[Self::Choice]) -> Option<usize>;
}

/// How far a search is.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Different states found.
    pub states: u64,
    /// States generated: steps taken.
    pub generated: u64,
    /// States found and not yet expanded.
    pub queue: u64,
    /// How many steps the farthest of them is from the beginning (of a depth-first search: the longest path so far).
    pub depth: u32,
    /// Bytes that the search remembers for states that it has left behind.
    pub bytes: u64,
}

/// How to search.
#[derive(Copy, Clone, Debug)]
pub struct Options {
    /// Threads.
    pub jobs: usize,
    /// Explore [`World::first`] alone where there is one, as part of the step that leads there.
    pub reduce: bool,
    /// Keep the graph and look for traps.
    pub liveness: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { jobs: 1, reduce: false, liveness: true }
    }
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How much of everything.
    pub progress: Progress,
    /// How many states are settled ones.
    pub settled: u64,
    /// Every state was expanded.
    pub complete: bool,
    /// The first thing that is wrong.
    pub found: Option<Found>,
}

/// Something wrong, and how to get there: each step by its place in the list of choices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What.
    pub what: Wrong,
    /// The steps from the beginning.
    pub path: Vec<u16>,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The last step broke something.
    Broken(String),
    /// From here on nothing settles, whatever happens; these steps lead back to here.
    Livelock(Vec<u16>),
    /// Nothing more happens, and it isn't settled.
    DeadEnd,
}

/// The choices of a path, each with those that a reduced search takes along with it.
pub fn choices_of<W: World>(beginning: &W, path: &[u16], reduce: bool) -> Vec<W::Choice> {
    let mut world = beginning.clone();
    let mut choices = Vec::new();
    let mut taken = Vec::new();
    for nth in path {
        world.choices(&mut choices);
        let Some(choice) = choices.get(usize::from(*nth)).cloned() else { break };
        let kept = |choice: &W::Choice| taken.push(choice.clone());
        if advance(&mut world, &choice, reduce, &mut choices, kept).is_err() || world.broken().is_some() {
            break;
        }
    }
    taken
}

/// No chain of choices that go first is longer, unless it never ends: then its states count as others do.
const MOST_TAKEN_ALONG: usize = 256;

/// Takes a choice, and where the search is reduced whatever then goes first for all others: one step of the search, since
/// no state in between has another way out that matters. `told` hears each choice before it is taken.
fn advance<W: World>(
    world: &mut W,
    choice: &W::Choice,
    reduce: bool,
    spare: &mut Vec<W::Choice>,
    mut told: impl FnMut(&W::Choice),
) -> Result<(), String> {
    told(choice);
    world.take(choice)?;
    for _ in 0..if reduce { MOST_TAKEN_ALONG } else { 0 } {
        world.choices(spare);
        let Some(first) = world.first(spare) else { break };
        told(&spare[first]);
        world.take(&spare[first])?;
    }
    Ok(())
}

/// The choices to explore: all, or one that goes first.
fn selected<W: World>(world: &W, choices: &[W::Choice], reduce: bool) -> std::ops::Range<usize> {
    match reduce.then(|| world.first(choices)).flatten() {
        Some(first) => first..first + 1,
        None => 0..choices.len(),
    }
}

#[cfg(test)]
mod tests;
