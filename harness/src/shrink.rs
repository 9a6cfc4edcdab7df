//! Shrinking: delta-debugs a history that breaks an invariant down to a local minimum: fewer steps, faults and pods, simpler
//! objects, rounder times, an earlier end. A smaller history counts only if it breaks the same invariant.

mod simpler;

use crate::history::{History, Replayed, replay};
use crate::scenario::Verb;
use crate::swarm::{Broken, Driven};
use nodefold_core::time::Nanos;
use simpler::simpler;

/// A history at a local minimum, or as small as the time allowed.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The history.
    pub history: History,
    /// What it breaks.
    pub broken: Broken,
    /// How many histories were tried.
    pub tried: u32,
    /// Nothing smaller breaks it: the time did not run out.
    pub is_minimal: bool,
}

/// Shrinks a history; `None` if it breaks nothing. `goes_on` says whether there is time for another try.
pub fn shrink(history: &History, driven: &Driven, goes_on: &mut dyn FnMut() -> bool) -> Option<Shrunk> {
    let first = replay(history, driven);
    let broken = first.broken.first()?.clone();
    let mut shrinker = Shrinker { best: history.clone(), broken, driven, goes_on, tried: 1, ran_out: false };
    shrinker.adopt(history.clone(), first);
    loop {
        let before = shrinker.best.to_text("", "");
        shrinker.drop_steps();
        shrinker.simplify_node();
        shrinker.simplify_steps();
        if shrinker.ran_out || shrinker.best.to_text("", "") == before {
            break;
        }
    }
    let Shrinker { best, broken, tried, ran_out, .. } = shrinker;
    Some(Shrunk { history: best, broken, tried, is_minimal: !ran_out })
}

struct Shrinker<'a> {
    best: History,
    broken: Broken,
    driven: &'a Driven,
    goes_on: &'a mut dyn FnMut() -> bool,
    tried: u32,
    ran_out: bool,
}

impl Shrinker<'_> {
    /// Takes a history over if it breaks the same. Whether it did.
    fn try_out(&mut self, candidate: History) -> bool {
        if self.ran_out || !(self.goes_on)() {
            self.ran_out = true;
            return false;
        }
        self.tried += 1;
        let replayed = replay(&candidate, self.driven);
        match replayed.broken.first() {
            Some(broken) if broken.invariant == self.broken.invariant => {
                self.adopt(candidate, replayed);
                true
            }
            Some(_) | None => false,
        }
    }

    /// What was not reached, and what found nothing to do, goes at once.
    fn adopt(&mut self, mut candidate: History, replayed: Replayed) {
        let mut done = replayed.done.into_iter();
        // The step during which it broke may have no entry: it did not end.
        let mut reached = true;
        candidate.steps.retain(|_| match done.next() {
            Some(done) => done,
            None => std::mem::take(&mut reached) && replayed.broken.iter().any(|b| b.invariant == "panic"),
        });
        if let Some(broken) = replayed.broken.into_iter().next() {
            self.broken = broken;
        }
        self.best = candidate;
    }

    /// Chunks of steps, halved from the whole to single ones.
    fn drop_steps(&mut self) {
        let mut size = self.best.steps.len().div_ceil(2);
        while size > 0 {
            let mut from = 0;
            while from < self.best.steps.len() {
                let mut candidate = self.best.clone();
                let to = (from + size).min(candidate.steps.len());
                candidate.steps.drain(from..to);
                // What stands there now is the next chunk.
                if !self.try_out(candidate) {
                    from += size;
                }
                if self.ran_out {
                    return;
                }
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
    }

    fn simplify_node(&mut self) {
        if self.best.trusting {
            self.try_out(History { trusting: false, ..self.best.clone() });
        }
        for candidate in simpler::nodes(&self.best.node) {
            let candidate = History { node: candidate, ..self.best.clone() };
            self.try_out(candidate);
        }
    }

    /// Each step by itself; and neighbours that only let time pass, as one.
    fn simplify_steps(&mut self) {
        let mut at = 0;
        while at < self.best.steps.len() {
            self.merge_waits(at);
            let mut index = 0;
            // A step that became simpler is tried again from where the list of simpler ones stood.
            while let Some(verb) =
                self.best.steps.get(at).and_then(|verb| simpler(verb).into_iter().nth(index))
            {
                let mut candidate = self.best.clone();
                candidate.steps[at] = verb;
                let length = self.best.steps.len();
                if !self.try_out(candidate) {
                    index += 1;
                } else if self.best.steps.len() != length {
                    index = 0;
                }
                if self.ran_out {
                    return;
                }
            }
            at += 1;
        }
    }

    /// A run of steps in which nothing but time passes, as one wait of the same length or a rounder one.
    fn merge_waits(&mut self, at: usize) {
        let waits = |verb: &&Verb| matches!(verb, Verb::Advance(_) | Verb::Step(_));
        let run = self.best.steps[at..].iter().take_while(waits).count();
        if run < 2 {
            return;
        }
        let mut passed: u64 = 0;
        for verb in &self.best.steps[at..at + run] {
            if let Verb::Advance(time) = verb {
                passed = passed.saturating_add(time.0);
            }
        }
        let more = [0, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000, 60_000_000_000];
        for length in [run, 2] {
            for more in more {
                let wait = Verb::Advance(Nanos(passed.saturating_add(more)));
                let mut candidate = self.best.clone();
                candidate.steps.splice(at..at + length, [wait]);
                if self.try_out(candidate) || self.ran_out {
                    return;
                }
            }
        }
    }
}
