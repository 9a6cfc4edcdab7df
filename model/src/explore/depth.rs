//! Depth first: only keys and the current path are remembered. The same states and steps as breadth first, in less
//! memory; a counterexample is the path to it, not the shortest.

use super::visited::Visited;
use super::{Found, Options, Progress, Report, World, Wrong, advance, selected};

/// A state on the current path.
struct Frame<W: World> {
    world: W,
    choices: Vec<W::Choice>,
    next: usize,
    end: usize,
    /// By which choice it was reached.
    nth: u16,
}

/// Explores everything, or until `go_on` says no.
pub fn depth_first<W: World>(
    beginning: &W,
    options: Options,
    go_on: &mut dyn FnMut(&Progress) -> bool,
) -> Report {
    let mut visited = Visited::new();
    visited.insert(beginning.key());
    let mut progress = Progress { states: 1, ..Progress::default() };
    let mut settled = u64::from(beginning.is_settled());
    let mut path = vec![frame(beginning.clone(), 0, Vec::new(), options)];
    let mut spare: Vec<Vec<W::Choice>> = Vec::new();
    let mut found = None;
    let mut along = Vec::new();
    while let Some(top) = path.last_mut() {
        if top.next == top.end {
            spare.extend(path.pop().map(|left| left.choices));
            continue;
        }
        let nth = top.next;
        top.next += 1;
        let mut world = top.world.clone();
        let taken = advance(&mut world, &top.choices[nth], options.reduce, &mut along, |_| {});
        let is_new = taken.is_ok() && visited.insert(world.key()).1;
        let wrong = taken.err().or_else(|| if is_new { world.broken() } else { None });
        if let Some(what) = wrong {
            let steps = path.iter().skip(1).map(|f| f.nth).chain([nth as u16]).collect();
            found = Some(Found { what: Wrong::Broken(what), path: steps });
            break;
        }
        progress.generated += 1;
        if !is_new {
            continue;
        }
        settled += u64::from(world.is_settled());
        path.push(frame(world, nth as u16, spare.pop().unwrap_or_default(), options));
        progress.states = visited.len() as u64;
        progress.depth = progress.depth.max(path.len() as u32 - 1);
        progress.queue = path.len() as u64;
        progress.bytes = visited.bytes();
        if progress.states.is_multiple_of(8192) && !go_on(&progress) {
            return Report { progress, settled, complete: false, found };
        }
    }
    progress.queue = 0;
    progress.bytes = visited.bytes();
    Report { progress, settled, complete: found.is_none(), found }
}

fn frame<W: World>(world: W, nth: u16, mut choices: Vec<W::Choice>, options: Options) -> Frame<W> {
    world.choices(&mut choices);
    let range = selected(&world, &choices, options.reduce);
    Frame { world, choices, next: range.start, end: range.end, nth }
}
