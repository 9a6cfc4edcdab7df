//! How fast the simulation is (DESIGN §9): simulated against real time, pods from creation to release, choices and facts a
//! second on one core, with all oracles and refinement and without. The default swarm's first seeds, each at its own profile.
#![allow(missing_docs, clippy::print_stdout, clippy::disallowed_methods)]

use nodefold_harness::swarm::{Driven, SwarmOptions, Totals, run_seed};
use std::time::Instant;

/// Seeds of one measurement, unless an argument says otherwise.
const SEEDS: u64 = 1000;

fn main() {
    let seeds = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(SEEDS);
    println!(
        "{:<22} {:>8} {:>10} {:>10} {:>10} {:>12}",
        "", "seeds/s", "choices/s", "facts/s", "pods/s", "x real time"
    );
    let bare = Driven { refined: false, ..Driven::default() };
    for (what, options) in [
        ("oracles, refinement", SwarmOptions::default()),
        ("oracles", SwarmOptions { driven: bare.clone(), ..SwarmOptions::default() }),
        ("neither", SwarmOptions { driven: bare, oracles: false, ..SwarmOptions::default() }),
    ] {
        let mut totals = Totals::default();
        let start = Instant::now();
        for seed in 0..seeds {
            totals.add(&run_seed(seed, &options).totals);
        }
        let seconds = start.elapsed().as_secs_f64();
        let a_second = |n: u64| n as f64 / seconds;
        println!(
            "{what:<22} {:>8.0} {:>10.0} {:>10.0} {:>10.1} {:>12.0}",
            a_second(seeds),
            a_second(totals.choices),
            a_second(totals.facts),
            a_second(totals.released),
            a_second(totals.simulated) / 1e9,
        );
    }
}
