//! The named scopes, as far as a debug build goes in seconds; the rest are release figures in the README.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::record::Nobody;
use crate::{RunOptions, Scenario, Verdict, run};
use nodefold_model::explore::World as _;

const PLAIN: Checked = Checked { jobs: 1, reduce: false, depth_first: false };

fn whole(scope: &Scope, how: Checked) -> Outcome {
    check(scope, &Subject::default(), how, None, &mut |_| true).unwrap()
}

#[test]
fn every_named_scope_can_be_read_and_begun() {
    for (name, _) in NAMED {
        let scope = named(name).unwrap().unwrap();
        assert_eq!(scope.name, name);
        let beginning = Place::begin(&scope, &Subject::default()).unwrap();
        let mut steps = Vec::new();
        beginning.choices(&mut steps);
        assert!(steps.contains(&Step::Story), "{name}: its story may begin at once");
        assert!(!beginning.is_settled(), "{name}: its story is not told yet");
    }
}

/// Different states, steps, depth, settled states.
#[test]
fn small_scopes_hold_whole_and_their_counts_are_pinned_for_any_number_of_threads() {
    let pinned = [
        ("add-container", 68, 113, 14, 1),
        ("swap-volume", 342, 754, 21, 2),
        ("shared-volume", 319, 629, 17, 2),
    ];
    let mut counts = Vec::new();
    for (name, ..) in pinned {
        let scope = named(name).unwrap().unwrap();
        let outcome = whole(&scope, PLAIN);
        assert!(outcome.report.complete && outcome.found.is_none(), "{name}: {:?}", outcome.found);
        let progress = outcome.report.progress;
        counts.push((name, progress.states, progress.generated, progress.depth, outcome.report.settled));
        let two = whole(&scope, Checked { jobs: 2, ..PLAIN });
        assert_eq!(two.report, outcome.report, "{name}");
        let deep = whole(&scope, Checked { depth_first: true, ..PLAIN }).report;
        assert_eq!((deep.progress.states, deep.settled), (progress.states, outcome.report.settled), "{name}");
        let reduced = whole(&scope, Checked { reduce: true, ..PLAIN });
        // That an end was shown as such before the next life is of no matter to a property, but it is of a state: the reduced
        // search need not come to each settled state.
        assert!(
            reduced.report.complete && reduced.found.is_none(),
            "{name}: the reduced search has the same verdict"
        );
        assert!((1..=outcome.report.settled).contains(&reduced.report.settled), "{name}");
        assert!(reduced.report.progress.states < progress.states, "{name}: it does reduce");
    }
    assert_eq!(counts, pinned);
}

#[test]
fn scopes_with_faults_and_without_rules_hold_whole_and_their_counts_are_pinned() {
    let pinned = [("resize", 2692, 6471, 25, 12), ("collide", 5704, 13734, 34, 12)];
    let counts = pinned.map(|(name, ..)| {
        let outcome = whole(&named(name).unwrap().unwrap(), Checked { jobs: 2, ..PLAIN });
        assert!(outcome.report.complete && outcome.found.is_none(), "{name}: {:?}", outcome.found);
        let progress = outcome.report.progress;
        (name, progress.states, progress.generated, progress.depth, outcome.report.settled)
    });
    assert_eq!(counts, pinned);
}

/// The world may break what no node can help: a volume's mount that hangs for ever settles nowhere.
#[test]
fn what_is_wrong_is_told_as_a_scenario_that_replays() {
    let text = "
name: held
steps:
- create: {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: app, image: a}]}}
- mark: check
- hold: {operation: mount, pod: web, volume: v}
- dynamic: {pod: web, patch: {spec: {volumes: [{name: v, emptyDir: {}}], containers: [{name: tool, image: a, volumeMounts: [{name: v, mountPath: /v}]}]}}}
- delete: {pod: web}
";
    let scope = Scope::parse(text, "held.yaml").unwrap();
    let outcome = whole(&scope, PLAIN);
    let (what, story) = outcome.found.unwrap();
    assert!(
        what.starts_with("L1: nothing more happens") && what.contains("deleted pod default/web"),
        "{what}"
    );
    let scenario = Scenario::parse(&story, "story.yaml").unwrap();
    assert!(scenario.instant);
    let replayed = run(&scenario, RunOptions::default(), &mut Nobody);
    assert_eq!(replayed.verdict, Verdict::Passed, "each of its steps can be done: {story}");
    let steps = u64::try_from(outcome.report.found.unwrap().path.len()).unwrap();
    assert!(replayed.counts.steps > steps, "all of them, and the setup");
}

#[test]
fn a_stopped_check_goes_on_from_its_checkpoint() {
    let scope = named("swap-volume").unwrap().unwrap();
    let straight = whole(&scope, PLAIN).report;
    let mut left = 12;
    let stopped = check(&scope, &Subject::default(), PLAIN, None, &mut |_| {
        left -= 1;
        left > 0
    });
    let bytes = stopped.unwrap().checkpoint.unwrap().to_bytes();
    let from = Checkpoint::from_bytes(&bytes).unwrap();
    assert_eq!(
        check(&scope, &Subject::default(), PLAIN, Some(from), &mut |_| true).unwrap().report,
        straight
    );
}

/// A saboteur, a scope, what finds it there, and the steps of the shortest story.
type Expected = (&'static str, &'static str, &'static str, usize);

fn found(expected: &[Expected], oracles: bool) {
    let mut wrong = Vec::new();
    for (name, scope, by, steps) in expected {
        let saboteur = crate::sabotage::Saboteur::named(name).unwrap();
        let scopes = [named(scope).unwrap().unwrap()];
        let caught = catch(saboteur, &scopes, 1000, oracles);
        let told = caught.as_ref().map(|caught| (caught.by.as_str(), caught.steps));
        if told != Some((*by, *steps)) {
            wrong.push(format!("{name}: {told:?}"));
        }
        let story = Scenario::parse(&caught.unwrap().story, "story.yaml").unwrap();
        assert!(!story.steps.is_empty(), "{name}: its story is a scenario");
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn saboteurs_are_found_by_their_invariant_and_a_shortest_story() {
    found(
        &[
            ("unmounts-on-stop", "shared-volume", "S1", 2),
            ("takes-a-mount-for-done", "add-container", "S2", 4),
            ("refreshes-what-was-removed", "shared-volume", "S3", 9),
            ("admits-half-a-transaction", "add-container", "S4", 2),
            ("creates-the-next-beside-the-last", "swap-volume", "S6", 4),
            ("restarts-the-neighbours", "add-container", "S9", 2),
            ("shows-mounted-too-early", "add-container", "S10", 2),
            ("shows-desired-mounts", "swap-volume", "S11", 2),
            ("unmounts-twice", "shared-volume", "S12", 9),
            ("counts-an-old-exit-for-the-next-instance", "swap-volume", "S14", 15),
            ("puts-off-the-kill", "shared-volume", "S15", 2),
            ("refuses-what-is-allowed", "add-container", "S16", 1),
            ("wakes-for-nothing", "shared-volume", "L4", 3),
        ],
        true,
    );
}

/// Without any oracle: allocation, identity, removal, restart.
#[test]
fn the_specification_alone_finds_who_is_wrong_about_allocation_identity_removal_and_restart() {
    found(
        &[
            ("admits-half-a-transaction", "add-container", "refinement", 2),
            ("creates-the-next-beside-the-last", "swap-volume", "refinement", 4),
            ("makes-a-second-sandbox", "add-container", "refinement", 0),
            ("unmounts-on-stop", "shared-volume", "refinement", 2),
            ("refreshes-what-was-removed", "shared-volume", "refinement", 9),
            ("leaks-a-removed-volume", "shared-volume", "refinement", 9),
            ("restarts-the-neighbours", "add-container", "refinement", 2),
            ("takes-a-mount-for-done", "add-container", "refinement", 2),
        ],
        false,
    );
}
