//! The swarm is deterministic, its histories replay, and what it keeps as text is what it did.
#![allow(clippy::unwrap_used)]

use nodefold_harness::history::{History, replay};
use nodefold_harness::swarm::{SwarmOptions, run_seed};

#[test]
fn a_seed_is_one_run() {
    let options = SwarmOptions::default();
    for seed in 0..6 {
        let (first, second) = (run_seed(seed, &options), run_seed(seed, &options));
        assert_eq!(first.digest, second.digest, "seed {seed}");
        assert_eq!(first.totals, second.totals, "seed {seed}");
    }
}

#[test]
fn a_history_replays_to_the_same_end_from_its_text() {
    let options = SwarmOptions::default();
    for seed in 100..112 {
        let report = run_seed(seed, &options);
        let text = report.history.to_text("a seed", &report.profile);
        let read =
            History::parse(&text, "history.yaml").unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
        assert_eq!(read.to_text("a seed", &report.profile), text, "seed {seed}");
        assert_eq!(
            replay(&report.history, &options.driven).digest,
            report.digest,
            "seed {seed} before its text"
        );
        let replayed = replay(&read, &options.driven);
        assert_eq!(replayed.digest, report.digest, "seed {seed}");
    }
}

#[test]
fn oracles_only_watch() {
    let judged = SwarmOptions::default();
    let unjudged = SwarmOptions { oracles: false, ..SwarmOptions::default() };
    for seed in 20..24 {
        let (judged, unjudged) = (run_seed(seed, &judged), run_seed(seed, &unjudged));
        if judged.broken.is_empty() {
            assert_eq!(judged.digest, unjudged.digest, "seed {seed}");
        }
    }
}
