//! The explorer beside stateright: the same states, the same steps, the same number of threads, in one run.
//! `cargo bench -p nodefold-model --bench explore`. Counts must agree; the figures are for the README.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods)]

use nodefold_model::explore::scopes::Scope;
use nodefold_model::explore::{Options, breadth_first, depth_first};
use nodefold_model::spec::scope::{State, Step};
use nodefold_model::spec::shapes::{Definition, Shape, Version, shape};
use stateright::{Checker, Model, Property};
use std::time::Instant;

const DEFINITIONS: &[Definition] =
    &[Definition { mounts: 0, cost: 0, incarnation: 0 }, Definition { mounts: 1, cost: 0, incarnation: 0 }];
const VERSIONS: &[Version] = &[
    Version { containers: [Some(1), Some(1)], volumes: [Some(0), None], cost: 0 },
    Version { containers: [Some(0), None], volumes: [None, None], cost: 0 },
];

/// Two pods that each give up a shared volume while processes end by themselves: large enough that starting costs nothing.
fn large() -> &'static Shape {
    let small = shape("shared-volume").unwrap();
    Box::leak(Box::new(Shape {
        name: "two-shared",
        pods: &[VERSIONS, VERSIONS],
        definitions: DEFINITIONS,
        alike_containers: false,
        ..*small
    }))
}

struct Same(Scope);

impl Model for Same {
    type State = State;
    type Action = Step;
    fn init_states(&self) -> Vec<State> {
        vec![self.0.state]
    }
    fn actions(&self, state: &State, out: &mut Vec<Step>) {
        state.steps(self.0.shape, out);
    }
    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut next = *state;
        next.take(self.0.shape, step);
        Some(next)
    }
    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("invariants", |model: &Same, state: &State| {
            state.broken(model.0.shape).is_none()
        })]
    }
}

fn told(who: &str, threads: usize, states: u64, generated: u64, begun: Instant, bytes: Option<u64>) {
    let seconds = begun.elapsed().as_secs_f64();
    let memory = bytes.map_or(String::new(), |bytes| format!(", {} bytes/state", bytes / states));
    println!(
        "{who:<24} {threads} threads: {states} states, {generated} generated, {seconds:.2} s, {:.2} M generated/s{memory}",
        generated as f64 / seconds / 1e6
    );
}

/// Memory in use by this process.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

fn main() {
    let scope = Scope::new(large(), false);
    let mut counts = Vec::new();
    for threads in [1, 2] {
        let begun = Instant::now();
        let options = Options { jobs: threads, reduce: false, liveness: false };
        let report = breadth_first(&scope, options, &mut |_| true).0;
        assert!(report.complete && report.found.is_none());
        let p = report.progress;
        told("nodefold, breadth first", threads, p.states, p.generated, begun, Some(p.bytes));
        counts.push((p.states, p.generated));
    }
    let begun = Instant::now();
    let p = depth_first(&scope, Options::default(), &mut |_| true).progress;
    told("nodefold, depth first", 1, p.states, p.generated, begun, Some(p.bytes));
    counts.push((p.states, p.generated));
    for threads in [1, 2] {
        let (before, begun) = (resident(), Instant::now());
        let checker = Same(scope).checker().threads(threads).spawn_bfs().join();
        checker.assert_properties();
        let (states, generated) = (checker.unique_state_count() as u64, checker.state_count() as u64 - 1);
        told("stateright, breadth first", threads, states, generated, begun, Some(resident() - before));
        counts.push((states, generated));
    }
    assert!(counts.windows(2).all(|two| two[0] == two[1]), "all agree: {counts:?}");
}
