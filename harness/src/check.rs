//! The production core in its world, explored exhaustively (DESIGN §7).
//!
//! A scope is a scenario. What comes before its mark `check` is played as it is; from there on everything that the world
//! lets happen may happen in any order: each step of the story at any point, any operation's effect and answer, and what
//! the scope's `check:` says may go wrong. On each state the oracles and the refinement judge; at the end, whether from
//! every state a settled one can be reached once nothing goes wrong any more.

mod place;
mod saboteurs;
mod scope;
mod symmetry;

pub use place::{Place, Step, Unbegun};
pub use saboteurs::{Caught, catch};
pub use scope::{NAMED, Scope, named};

use crate::swarm::Driven;
use nodefold_model::explore::{
    Checkpoint, Found, Options, Progress, Report, Wrong, breadth_first, choices_of, depth_first,
};

/// What is checked, and who judges it.
#[derive(Clone)]
pub struct Subject {
    /// The core and its surroundings. `refined` says whether the specification judges.
    pub driven: Driven,
    /// The oracles judge.
    pub oracles: bool,
}

impl Default for Subject {
    fn default() -> Subject {
        Subject { driven: Driven::default(), oracles: true }
    }
}

/// How to check.
#[derive(Copy, Clone, Debug)]
pub struct Checked {
    /// Threads.
    pub jobs: usize,
    /// Choices that commute are explored once.
    pub reduce: bool,
    /// Of places that differ only by which of pods that are alike is which, one is explored.
    pub symmetry: bool,
    /// Depth first: less memory, no shortest story, no traps.
    pub depth_first: bool,
}

/// What a check found.
pub struct Outcome {
    /// The search's own report.
    pub report: Report,
    /// Of what is wrong: what, and a scenario that shows it.
    pub found: Option<(String, String)>,
    /// How many steps that takes from the scope's beginning on.
    pub steps: usize,
    /// Where a search that was stopped can go on.
    pub checkpoint: Option<Checkpoint>,
}

/// Checks a scope, until it is explored or `go_on` says no.
pub fn check(
    scope: &Scope,
    subject: &Subject,
    how: Checked,
    from: Option<Checkpoint>,
    go_on: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Outcome, String> {
    let beginning = match Place::begin(scope, subject) {
        Ok(beginning) => beginning,
        Err(Unbegun::Unusable(why)) => return Err(why),
        Err(Unbegun::Broken(what)) => return Ok(broken_before(scope, what)),
    };
    let beginning = if how.symmetry { beginning.symmetric() } else { beginning };
    let options = Options { jobs: how.jobs, reduce: how.reduce, liveness: !how.depth_first };
    let (mut report, checkpoint) = match (how.depth_first, from) {
        (true, _) => (depth_first(&beginning, options, go_on), None),
        (false, None) => breadth_first(&beginning, options, go_on),
        (false, Some(from)) => nodefold_model::explore::resume(&beginning, from, options, go_on)?,
    };
    if let (None, Some(stopped)) = (&report.found, &checkpoint) {
        report.found = restless(&beginning, &stopped.farthest(), how.reduce);
    }
    let mut length = 0;
    let found = report.found.as_ref().map(|found| {
        let (what, cycle) = match &found.what {
            Wrong::Broken(what) => (what.clone(), &[][..]),
            Wrong::Livelock(cycle) => {
                ("L4: from here on nothing settles: it goes round and round".to_owned(), &cycle[..])
            }
            Wrong::DeadEnd => {
                let end = beginning.after(&found.path, how.reduce);
                // The oracles know which promise it is that stays unkept.
                let judged = end.as_ref().and_then(|end| end.at_rest().err());
                let why = end.map(|end| end.unsettled()).unwrap_or_default();
                let told = || format!("L1: nothing more happens, and it is not settled: {why}");
                (judged.unwrap_or_else(told), &[][..])
            }
        };
        let steps = choices_of(&beginning, &[&found.path[..], cycle].concat(), how.reduce);
        length = steps.len();
        (what.clone(), scope.story(&beginning, &steps, &what))
    });
    Ok(Outcome { report, found, steps: length, checkpoint })
}

/// A search that was stopped can't tell a trap from what it has not seen yet; what tries the same for ever never lets it end.
/// So the farthest state is left alone instead, and if that shows something, where on the way there it began to.
fn restless(beginning: &Place, path: &[u16], reduce: bool) -> Option<Found> {
    beginning.after(path, reduce)?.at_rest().err()?;
    let mut place = beginning.clone();
    for taken in 0..path.len() {
        place = place.after(&path[taken..=taken], reduce)?;
        if let Err(what) = place.at_rest() {
            return Some(Found { what: Wrong::Broken(what), path: path[..=taken].to_vec() });
        }
    }
    None
}

/// What came before the exploring broke something: there is nothing to explore.
fn broken_before(scope: &Scope, what: String) -> Outcome {
    let found = Found { what: Wrong::Broken(what.clone()), path: Vec::new() };
    let report = Report { progress: Progress::default(), settled: 0, complete: false, found: Some(found) };
    let story = scope.setup_alone(&what);
    Outcome { report, found: Some((what, story)), steps: 0, checkpoint: None }
}

#[cfg(test)]
mod tests;
