//! The named scopes, as far as a debug build goes in seconds; the rest are release figures in the README.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::record::Nobody;
use crate::scenario::Verb;
use crate::{RunOptions, Scenario, Verdict, run};
use nodefold_model::explore::World as _;
use std::collections::{BTreeMap, BTreeSet};

const PLAIN: Checked = Checked { jobs: 1, reduce: false, symmetry: false, depth_first: false };
const REDUCED: Checked = Checked { reduce: true, ..PLAIN };

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

/// Different states, steps, depth, settled states of a scope that holds.
fn counted(name: &str) -> (&str, u64, u64, u32, u64) {
    let outcome = whole(&named(name).unwrap().unwrap(), Checked { jobs: 2, ..PLAIN });
    assert!(outcome.report.complete && outcome.found.is_none(), "{name}: {:?}", outcome.found);
    let progress = outcome.report.progress;
    (name, progress.states, progress.generated, progress.depth, outcome.report.settled)
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
    }
    assert_eq!(counts, pinned);
}

/// Scopes for what saboteurs need: each is whole in a second.
#[test]
fn scopes_of_single_features_hold_whole_and_their_counts_are_pinned() {
    let pinned = [
        ("refresh", 15, 16, 8, 2),
        ("deferred", 18, 23, 9, 3),
        ("probes", 47, 69, 17, 1),
        ("run-once", 59, 96, 12, 1),
        ("name-in-use", 67, 123, 15, 2),
        ("changed-before-running", 141, 298, 18, 2),
        ("resize-restart", 156, 302, 14, 3),
        ("unmount-fails", 161, 279, 17, 2),
        ("uncertain-start", 332, 547, 24, 6),
        ("sidecar-stopped", 396, 993, 23, 1),
        ("static-removed", 457, 1359, 18, 1),
        ("exits-again", 843, 1696, 57, 10),
        ("probes-recovered", 928, 3288, 14, 2),
        ("replaced-resize", 1022, 2268, 24, 2),
        ("shorter-grace", 1427, 4215, 23, 1),
        ("room-of-the-former", 1511, 4521, 25, 4),
        ("ends-by-itself", 2669, 7020, 28, 2),
    ];
    assert_eq!(pinned.map(|(name, ..)| counted(name)), pinned);
}

#[test]
fn scopes_with_faults_and_without_rules_hold_whole_and_their_counts_are_pinned() {
    let pinned = [("resize", 2692, 6471, 25, 12), ("collide", 5704, 13734, 34, 12)];
    assert_eq!(pinned.map(|(name, ..)| counted(name)), pinned);
}

/// Of a reduced search: different states, steps, depth, settled states.
#[test]
fn the_reduced_search_has_the_verdict_of_the_whole_one_and_comes_to_no_other_end() {
    let pinned = [
        ("add-container", 7, 6, 6, 1, 1),
        ("swap-volume", 16, 18, 10, 1, 2),
        ("shared-volume", 55, 95, 11, 2, 2),
        ("run-once", 11, 14, 6, 1, 1),
        ("refresh", 14, 15, 7, 2, 2),
        ("name-in-use", 33, 64, 11, 2, 2),
        ("changed-before-running", 49, 109, 11, 2, 2),
        ("resize-restart", 30, 55, 9, 2, 3),
        ("uncertain-start", 58, 61, 13, 6, 6),
        ("sidecar-stopped", 47, 89, 15, 1, 1),
        ("shorter-grace", 406, 1106, 18, 1, 1),
        ("room-of-the-former", 78, 158, 12, 4, 4),
        ("collide", 219, 455, 19, 6, 12),
    ];
    let mut counts = Vec::new();
    for (name, ..) in pinned {
        let scope = named(name).unwrap().unwrap();
        let settled = |how: Checked| {
            let outcome = whole(&scope, how);
            assert!(outcome.report.complete && outcome.found.is_none(), "{name}: {:?}", outcome.found);
            (outcome.report, settled_keys(&scope, how.reduce))
        };
        let ((full, all), (reduced, some)) = (settled(PLAIN), settled(REDUCED));
        // That an end was shown as such before the next life is of no matter to a property, but it is of a state: the reduced
        // search need not come to each settled state. Others than the whole search comes to it may not.
        assert!(!some.is_empty() && some.is_subset(&all), "{name}");
        assert!(reduced.progress.states < full.progress.states, "{name}: it does reduce");
        assert_eq!(whole(&scope, Checked { jobs: 2, ..REDUCED }).report, reduced, "{name}");
        let Progress { states, generated, depth, .. } = reduced.progress;
        counts.push((name, states, generated, depth, some.len(), all.len()));
    }
    assert_eq!(counts, pinned);
}

/// The keys of the settled states that a search comes to: a search of its own, in a few lines.
fn settled_keys(scope: &Scope, reduce: bool) -> BTreeSet<u128> {
    let (mut known, mut settled) = (BTreeSet::new(), BTreeSet::new());
    let mut left = vec![Place::begin(scope, &Subject::default()).unwrap()];
    let mut steps = Vec::new();
    while let Some(place) = left.pop() {
        if !known.insert(place.key()) {
            continue;
        }
        if place.is_settled() {
            settled.insert(place.key());
        }
        place.choices(&mut steps);
        let first = place.first(&steps).filter(|_| reduce);
        for step in first.map_or(&steps[..], |first| &steps[first..=first]) {
            let mut next = place.clone();
            next.take(step).unwrap();
            left.push(next);
        }
    }
    settled
}

/// Two pods that are alike in all but their names and UIDs; `more` is their spec, `check` what may go wrong.
fn two_alike(more: &str, check: &str, story: &str) -> Scope {
    let pod = |name: &str| {
        format!(
            "- create: {{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{{more} \
             containers: [{{name: app, image: a}}]}}}}\n"
        )
    };
    let map = |value: &str| {
        format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: c}}, data: {{k: {value}}}}}")
    };
    let text = format!(
        "name: two-alike\nabout: two\ncheck: {check}\nsteps:\n- create: {}\n{}{}- mark: check\n- update: {}\n{story}",
        map("v1"),
        pod("a"),
        pod("b"),
        map("v2"),
    );
    Scope::parse(&text, "two-alike.yaml").unwrap()
}

/// What is merged behaves the same, shown by comparing, for all places that have one symmetric key, the symmetric keys of
/// all that can come next: then the symmetric search is the whole one with the same states glued together.
#[test]
fn pods_that_are_alike_are_explored_once_and_nothing_else_is_lost() {
    let pinned = [("{exits: 2}", 1570, 810, 436), ("{agentCrashes: 1}", 1786, 1084, 625)];
    let mut counts = Vec::new();
    for (check, ..) in pinned {
        let scope = two_alike("", check, "");
        let beginning = Place::begin(&scope, &Subject::default()).unwrap().symmetric();
        let mut next_of: BTreeMap<u128, (BTreeSet<u128>, bool)> = BTreeMap::new();
        let (mut known, mut left, mut steps) = (BTreeSet::new(), vec![beginning], Vec::new());
        while let Some(place) = left.pop() {
            if !known.insert(place.key_as(None)) {
                continue;
            }
            place.choices(&mut steps);
            let mut nexts = BTreeSet::new();
            for step in &steps {
                let mut next = place.clone();
                next.take(step).unwrap();
                assert_eq!(next.broken(), None);
                nexts.insert(next.key());
                left.push(next);
            }
            let seen = (nexts, place.is_settled());
            let same = next_of.entry(place.key()).or_insert_with(|| seen.clone());
            assert_eq!(*same, seen, "{check}: places with one key go on the same");
        }
        let symmetric = whole(&scope, Checked { symmetry: true, ..PLAIN });
        assert!(symmetric.report.complete && symmetric.found.is_none());
        assert_eq!(symmetric.report.progress.states, next_of.len() as u64, "{check}");
        assert_eq!(whole(&scope, PLAIN).report.progress.states, known.len() as u64, "{check}");
        let both = whole(&scope, Checked { symmetry: true, ..REDUCED });
        assert!(both.report.complete && both.found.is_none());
        counts.push((check, known.len(), next_of.len(), both.report.progress.states));
    }
    assert_eq!(counts, pinned);
}

/// Whoever is preferred by the story, or may be by the node, is not alike.
#[test]
fn pods_that_a_story_names_or_that_contend_for_room_are_not_taken_for_each_other() {
    let counted = |scope: &Scope| {
        let states = |how| whole(scope, how).report.progress.states;
        (states(PLAIN), states(Checked { symmetry: true, ..PLAIN }))
    };
    let free = counted(&two_alike("", "{exits: 1}", ""));
    assert!(free.1 < free.0, "{free:?}");
    let important = counted(&two_alike("priority: 5,", "{exits: 1}", ""));
    assert_eq!(important.0, important.1, "one may be preferred to the other");
    let named = counted(&two_alike("", "{}", "- exit: {pod: a, container: app, code: 1}\n"));
    assert_eq!(named.1, named.0, "the story says which, and when it has there are two that differ");
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

/// What is left alone in the middle of a story must come to rest, too.
#[test]
fn a_stopped_search_of_a_node_that_is_right_finds_nothing() {
    for (name, _) in NAMED {
        let scope = named(name).unwrap().unwrap();
        let few = &mut |progress: &Progress| progress.states < 100;
        let outcome = check(&scope, &Subject::default(), PLAIN, None, few).unwrap();
        assert_eq!(outcome.found.map(|(what, _)| what), None, "{name}");
    }
}

/// A saboteur, a scope, what finds it there, and the steps of the shortest story.
type Expected = (&'static str, &'static str, &'static str, usize);

fn found(expected: &[Expected], oracles: bool) {
    let mut wrong = Vec::new();
    for (name, scope, by, steps) in expected {
        let saboteur = crate::sabotage::Saboteur::named(name).unwrap();
        let scopes = [named(scope).unwrap().unwrap()];
        let caught = catch(saboteur, &scopes, 1000, false, oracles);
        let reduced = catch(saboteur, &scopes, 1000, true, oracles).map(|caught| caught.by);
        if reduced.as_deref() != Some(*by) {
            wrong.push(format!("{name}, reduced: {reduced:?}"));
        }
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

/// Each in the scope that was made for it.
#[test]
fn saboteurs_of_single_features_are_found_by_their_invariant_and_a_shortest_story() {
    found(
        &[
            ("unmounts-when-the-object-is-gone", "forced-delete", "S1", 2),
            ("tears-down-on-a-failed-refresh", "refresh", "S1", 5),
            ("unmounts-on-a-partial-list", "partial-list", "S1", 5),
            ("pulls-without-delay", "late-image", "L4", 144),
            ("unmounts-before-the-runtime-is-listed", "recovered", "S1", 4),
            ("takes-a-failed-mount-for-success", "secret-fails", "S2", 7),
            ("creates-as-desired", "resize-restart", "S3", 6),
            ("mounts-what-is-only-desired", "deferred", "S3", 2),
            ("resizes-what-is-pending", "resize-restart", "S3", 6),
            ("counts-its-room-twice", "room-of-the-former", "S5", 4),
            ("frees-the-room-of-what-still-runs", "room-of-the-former", "S5", 6),
            ("makes-another-when-uncertain", "uncertain-start", "S6", 12),
            ("starts-two-static-pods-of-one-name", "static-replaced", "S6", 4),
            ("releases-before-unmounting", "forced-delete", "S8", 4),
            ("lives-again-on-a-stale-report", "run-once", "S10", 6),
            ("overwrites-the-end", "run-once", "S10", 8),
            ("remounts-while-terminating", "delete-while-mounting", "S10", 8),
            ("terminal-and-ready", "run-once", "S10", 8),
            ("unmounts-while-mounting", "delete-while-mounting", "S12", 4),
            ("forgets-an-uncertain-mount", "delete-while-mounting", "S13", 9),
            ("leaves-a-secret-behind", "unmount-fails", "S13", 7),
            ("takes-a-failed-unmount-for-done", "unmount-fails", "S13", 10),
            ("attributes-an-exit-to-another", "run-once", "S14", 2),
            ("inherits-probe-results", "probes", "S14", 13),
            ("loses-the-exit-code", "run-once", "S14", 2),
            ("ready-before-it-was-asked", "probes-recovered", "S14", 0),
            ("resets-the-restart-count", "exits-again", "S14", 13),
            ("runs-a-finished-container-again", "run-once", "S14", 4),
            ("runs-init-again-after-a-restart", "init-recovered", "S14", 4),
            ("takes-a-resize-for-done", "replaced-resize", "S14", 6),
            ("waits-after-running", "run-once", "S14", 2),
            ("leaves-sidecars-running", "sidecar-stopped", "S15", 15),
            ("never-kills", "shorter-grace", "S15", 12),
            ("stops-sidecars-with-the-mains", "sidecar-stopped", "S15", 4),
            ("accepts-before-running", "changed-before-running", "S16", 2),
            ("accepts-names-in-use", "name-in-use", "S16", 4),
            ("skips-facts-in-recovery", "recovered", "D1", 2),
            ("loses-the-last-fact", "recovered", "D2", 2),
            ("repeats-the-last-fact", "recovered", "D2", 2),
            ("claims-what-it-did-not-do", "replaced-resize", "L1", 5),
            ("overlooks-a-forced-removal", "static-removed", "L3", 2),
            ("overlooks-exits-of-ending-pods", "ends-by-itself", "L3", 12),
            ("forgets-probes-after-a-restart", "probes-recovered", "L5", 12),
            ("never-starts-what-was-created", "uncertain-start", "L5", 13),
            ("never-wakes", "secret-fails", "L5", 10),
            ("overlooks-exits", "exits-again", "L5", 2),
            ("stops-probing-the-next-instance", "probes", "L5", 15),
        ],
        true,
    );
}

/// Their states never end: each attempt is another one. What the farthest shows when it is left alone began a few steps in.
#[test]
fn who_tries_the_same_for_ever_is_found_when_the_search_is_stopped() {
    for (name, scope, by) in
        [("never-stops-what-was-removed", "shared-volume", "L2"), ("never-releases", "sidecar-stopped", "L3")]
    {
        let saboteur = crate::sabotage::Saboteur::named(name).unwrap();
        let caught = catch(saboteur, &[named(scope).unwrap().unwrap()], 1000, false, true).unwrap();
        assert_eq!(caught.by, by, "{name}: {}", caught.what);
        assert!(caught.states >= 1000 && caught.steps < 20, "{name}: {} steps", caught.steps);
        let story = Scenario::parse(&caught.story, "story.yaml").unwrap();
        assert!(matches!(story.steps.last().unwrap().verb, Verb::Heal), "{name}: it is left alone");
    }
}

/// Its twenty attempts within a minute are too deep for the whole search to come to among a thousand states.
#[test]
fn the_reduced_search_comes_deeper_with_as_many_states() {
    let saboteur = crate::sabotage::Saboteur::named("mounts-without-delay").unwrap();
    let scopes = [named("late-secret").unwrap().unwrap()];
    assert_eq!(catch(saboteur, &scopes, 1000, false, true), None);
    let caught = catch(saboteur, &scopes, 1000, true, true).unwrap();
    assert_eq!((caught.by.as_str(), caught.steps), ("L4", 67));
    // A hook that outlasts its grace is one that is slow.
    let saboteur = crate::sabotage::Saboteur::named("ignores-a-shorter-grace").unwrap();
    let mut scope = named("shorter-grace").unwrap().unwrap();
    scope.budget.slow = true;
    let caught = catch(saboteur, &[scope], 1000, true, true).unwrap();
    assert_eq!((caught.by.as_str(), caught.steps), ("S15", 13));
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
