//! The engine on the specification's scopes: counts pinned, the same whichever way they are found, and agreeing with
//! stateright; and on toy worlds with one thing wrong.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use super::scopes::Scope;
use super::*;
use crate::spec::scope::Step;
use crate::spec::shapes::{SHAPES, shape};
use crate::spec::volume::{self, Volume};

fn whole<W: World>(world: &W, options: Options) -> Report {
    breadth_first(world, options, &mut |_| true).0
}

fn small() -> impl Iterator<Item = Scope> {
    SHAPES.iter().filter(|shape| shape.name != "reboot").map(|shape| Scope::new(shape, false))
}

/// Different states, steps, depth and settled states of every scope, each state and its mirror images counted once.
#[test]
fn the_specification_has_no_broken_state_and_no_trap_and_its_counts_are_pinned() {
    let counts: Vec<(&str, u64, u64, u32, u64)> = SHAPES
        .iter()
        .map(|shape| {
            let report = whole(&Scope::new(shape, true), Options::default());
            assert!(report.complete && report.found.is_none(), "{}: {report:?}", shape.name);
            let Progress { states, generated, depth, .. } = report.progress;
            (shape.name, states, generated, depth, report.settled)
        })
        .collect();
    let pinned = [
        ("add-container", 168, 394, 18, 4),
        ("swap-volume", 256, 622, 18, 4),
        ("collide", 701, 2155, 19, 6),
        ("shared-volume", 1512, 6654, 31, 8),
        ("transaction", 1864, 6760, 25, 10),
        ("faults", 1217, 5193, 22, 4),
        ("crash", 3082, 11015, 20, 12),
        ("reboot", 27159, 120646, 25, 12),
        ("delete-anywhere", 3804, 11602, 28, 107),
    ];
    assert_eq!(counts, pinned);
}

#[test]
fn counts_are_the_same_for_any_number_of_threads_and_depth_first() {
    for scope in small() {
        let one = whole(&scope, Options::default());
        for jobs in [2, 3] {
            assert_eq!(whole(&scope, Options { jobs, ..Options::default() }), one, "{}", scope.shape.name);
        }
        let depth = depth_first(&scope, Options::default(), &mut |_| true);
        assert_eq!(
            (depth.progress.states, depth.progress.generated, depth.settled, depth.complete),
            (one.progress.states, one.progress.generated, one.settled, one.complete),
            "{}",
            scope.shape.name
        );
        assert!(depth.progress.bytes < one.progress.bytes, "depth first remembers less");
    }
}

#[test]
fn what_is_alike_is_counted_once_and_nothing_else_is_lost() {
    for name in ["shared-volume", "transaction"] {
        let all = Scope::new(shape(name).unwrap(), false);
        // The canonical forms of the states of the whole search are the states of the symmetric one.
        let mut seen = std::collections::BTreeSet::new();
        let mut stack = vec![all];
        let mut known = std::collections::BTreeSet::new();
        let mut steps = Vec::new();
        while let Some(scope) = stack.pop() {
            if !known.insert(scope.state) {
                continue;
            }
            let canonical = scope.state.canonical(all.shape);
            assert_eq!(canonical.canonical(all.shape), canonical, "a canonical form is its own");
            seen.insert(canonical);
            scope.choices(&mut steps);
            for step in &steps {
                let mut next = scope;
                next.take(step).unwrap();
                stack.push(next);
            }
        }
        let symmetric = whole(&Scope::new(all.shape, true), Options::default());
        assert_eq!(symmetric.progress.states, seen.len() as u64, "{name}");
        assert!(seen.len() * 3 < known.len() * 2, "{name}: {} of {}", seen.len(), known.len());
    }
}

#[test]
fn the_reduced_search_finds_the_same_settled_states_and_the_same_verdict() {
    for scope in small() {
        let full = whole(&scope, Options::default());
        let reduced = whole(&scope, Options { reduce: true, ..Options::default() });
        assert_eq!((reduced.settled, &reduced.found), (full.settled, &full.found), "{}", scope.shape.name);
        assert!(reduced.progress.states <= full.progress.states);
    }
    let plain = Scope::new(shape("shared-volume").unwrap(), false);
    let reduced = whole(&plain, Options { reduce: true, ..Options::default() });
    assert!(reduced.progress.states < whole(&plain, Options::default()).progress.states, "it does reduce");
}

#[test]
fn a_stopped_search_goes_on_to_the_same_end() {
    let scope = Scope::new(shape("crash").unwrap(), false);
    let straight = whole(&scope, Options::default());
    let mut left = 6;
    let (stopped, checkpoint) = breadth_first(&scope, Options::default(), &mut |_| {
        left -= 1;
        left > 0
    });
    assert!(!stopped.complete && stopped.progress.states < straight.progress.states);
    let bytes = bincode::encode_to_vec(checkpoint.unwrap(), bincode::config::standard()).unwrap();
    let (kept, _): (Checkpoint, usize) =
        bincode::decode_from_slice(&bytes, bincode::config::standard()).unwrap();
    let (resumed, _) =
        resume(&scope, kept.clone(), Options { jobs: 2, ..Options::default() }, &mut |_| true).unwrap();
    assert_eq!(resumed, straight);
    let other = Scope::new(shape("collide").unwrap(), false);
    assert!(resume(&other, kept, Options::default(), &mut |_| true).is_err(), "a checkpoint knows its scope");
}

/// The specification without one of its needs: a volume may be unmounted though something holds it.
#[derive(Clone)]
struct Careless(Scope);

impl World for Careless {
    type Choice = Step;
    fn choices(&self, out: &mut Vec<Step>) {
        self.0.choices(out);
        let unmount =
            volume::TABLE.iter().position(|r| r.from == Volume::Mounted && r.act == "unmount").unwrap();
        for (slot, v) in self.0.state.pods[0].volumes.iter().enumerate() {
            let step = Step::Volume(0, slot as u8, unmount as u8);
            let removed = v.promise == crate::spec::allocation::Promise::Removed;
            if v.life == Volume::Mounted && removed && !out.contains(&step) {
                out.push(step);
            }
        }
    }
    fn take(&mut self, step: &Step) -> Result<(), String> {
        self.0.take(step)
    }
    fn broken(&self) -> Option<String> {
        self.0.broken()
    }
    fn key(&self) -> u128 {
        self.0.key()
    }
    fn is_fault(&self, step: &Step) -> bool {
        self.0.is_fault(step)
    }
    fn is_settled(&self) -> bool {
        self.0.is_settled()
    }
    fn first(&self, _: &[Step]) -> Option<usize> {
        None
    }
}

#[test]
fn a_specification_without_a_need_is_found_out_by_a_shortest_story() {
    let careless = Careless(Scope::new(shape("swap-volume").unwrap(), false));
    let report = whole(&careless, Options::default());
    let found = report.found.unwrap();
    assert!(matches!(&found.what, Wrong::Broken(what) if what.starts_with("S1")), "{found:?}");
    let story = choices_of(&careless, &found.path, false);
    assert!(matches!(story.last(), Some(Step::Volume(..))), "{story:?}");
    let deep = depth_first(&careless, Options::default(), &mut |_| true).found.unwrap();
    assert!(deep.path.len() >= found.path.len(), "breadth first finds a shortest one");
    assert_eq!(whole(&careless, Options { jobs: 2, ..Options::default() }).found, Some(found));
}

/// Counts up to ten and is settled there; from five on it may get into a ring that it never leaves, or, by a fault, stop.
#[derive(Clone)]
struct Ring {
    at: u8,
    trap: bool,
}

impl World for Ring {
    type Choice = u8;
    fn choices(&self, out: &mut Vec<u8>) {
        out.clear();
        match self.at {
            10 | 30 => {}
            5 => out.extend(if self.trap { &[6, 20, 30][..] } else { &[6][..] }),
            22 => out.push(20),
            at => out.push(at + 1),
        }
    }
    fn take(&mut self, to: &u8) -> Result<(), String> {
        self.at = *to;
        Ok(())
    }
    fn broken(&self) -> Option<String> {
        None
    }
    fn key(&self) -> u128 {
        u128::from(self.at) << 64
    }
    fn is_fault(&self, to: &u8) -> bool {
        *to == 30
    }
    fn is_settled(&self) -> bool {
        self.at == 10
    }
    fn first(&self, _: &[u8]) -> Option<usize> {
        None
    }
}

#[test]
fn a_livelock_is_shown_as_the_way_to_it_and_its_cycle() {
    let found = whole(&Ring { at: 0, trap: true }, Options::default()).found.unwrap();
    let Wrong::Livelock(cycle) = &found.what else { panic!("{found:?}") };
    let ring = Ring { at: 0, trap: true };
    assert_eq!(choices_of(&ring, &found.path, false), [1, 2, 3, 4, 5, 20]);
    assert_eq!(choices_of(&Ring { at: 20, trap: true }, cycle, false), [21, 22, 20]);
    assert_eq!(whole(&Ring { at: 0, trap: false }, Options::default()).found, None);
    let dead = whole(&Ring { at: 30, trap: true }, Options::default()).found.unwrap();
    assert_eq!(dead.what, Wrong::DeadEnd);
}

mod stateright_agrees {
    use super::*;
    use stateright::{Checker, Model, Property};

    struct Same(Scope);

    impl Model for Same {
        type State = crate::spec::scope::State;
        type Action = Step;
        fn init_states(&self) -> Vec<Self::State> {
            vec![self.0.state]
        }
        fn actions(&self, state: &Self::State, out: &mut Vec<Step>) {
            state.steps(self.0.shape, out);
        }
        fn next_state(&self, state: &Self::State, step: Step) -> Option<Self::State> {
            let mut next = *state;
            next.take(self.0.shape, step);
            Some(next)
        }
        fn properties(&self) -> Vec<Property<Self>> {
            vec![Property::always("invariants", |model: &Same, state: &Self::State| {
                state.broken(model.0.shape).is_none()
            })]
        }
    }

    #[test]
    fn on_the_number_of_states_and_steps_of_every_scope() {
        for scope in SHAPES.iter().map(|shape| Scope::new(shape, false)) {
            let ours = whole(&scope, Options { liveness: false, ..Options::default() });
            let theirs = Same(scope).checker().threads(2).spawn_bfs().join();
            theirs.assert_properties();
            assert_eq!(
                (ours.progress.states, ours.progress.generated + 1),
                (theirs.unique_state_count() as u64, theirs.state_count() as u64),
                "{}",
                scope.shape.name
            );
        }
    }
}
