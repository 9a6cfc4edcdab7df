//! How saboteurs fare under exploration: in which scope one is found, by what, and by how short a story.

use super::place::AT_REST;
use super::{Checked, Scope, Subject, check};
use crate::sabotage::Saboteur;
use nodefold_model::explore::Progress;

/// A saboteur that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caught {
    /// In which scope.
    pub scope: String,
    /// What broke.
    pub what: String,
    /// Which invariant that is; `refinement`, or `panic`.
    pub by: String,
    /// How many steps the shortest story has from the scope's beginning on; 0: what comes before it is enough.
    pub steps: usize,
    /// Different states that were found before.
    pub states: u64,
    /// The story.
    pub story: String,
}

/// Explores scopes one after the other, each up to so many states, until the saboteur is found in one by the invariant that
/// it breaks; else the first find, by another. A scope that can't be played with it is passed over.
pub fn catch(
    saboteur: &'static Saboteur,
    scopes: &[Scope],
    most_states: u64,
    reduce: bool,
    oracles: bool,
) -> Option<Caught> {
    let mut driven = saboteur.driven();
    driven.refined = !oracles;
    let subject = Subject { driven, oracles };
    let how = Checked { jobs: 1, reduce, symmetry: false, depth_first: false };
    let wanted = if oracles { saboteur.breaks.to_string() } else { "refinement".to_owned() };
    let mut other = None;
    for scope in scopes {
        let go_on = &mut |progress: &Progress| progress.states < most_states;
        let Ok(outcome) = check(scope, &subject, how, None, go_on) else { continue };
        let Some((what, story)) = outcome.found else { continue };
        let by = what.trim_start_matches(AT_REST).split([':', ' ']).next().unwrap_or_default().to_owned();
        let states = outcome.report.progress.states;
        let caught = Caught { scope: scope.name.clone(), what, by, steps: outcome.steps, states, story };
        if caught.by == wanted {
            return Some(caught);
        }
        other.get_or_insert(caught);
    }
    other
}
