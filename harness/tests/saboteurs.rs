//! Every saboteur is caught, by the oracle of the invariant that it breaks and by no other; and the same oracles are silent
//! about the same stories when nothing is sabotaged.

use nodefold_core::time::Nanos;
use nodefold_harness::scenario::Verb;
use nodefold_harness::swarm::{Driven, Player, SwarmOptions, run_seed};
use nodefold_harness::{BEGINNINGS, Saboteur, Scenario, WITHIN};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

/// The repository's stories by name.
fn stories() -> BTreeMap<String, Scenario> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut stories = BTreeMap::new();
    for folder in ["examples", "tests/races", "tests/scenarios"] {
        for entry in fs::read_dir(root.join(folder)).expect("a folder of stories") {
            let path = entry.expect("an entry").path();
            if path.extension().is_none_or(|e| e != "yaml") {
                continue;
            }
            let text = fs::read_to_string(&path).expect("a readable story");
            let scenario = Scenario::parse(&text, &path.display().to_string()).expect("a story");
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            stories.insert(name, scenario);
        }
    }
    // A process that crashes whenever it runs: most of these exits find none, as no ordinary story may have it.
    let crash = "- exit: {pod: web, container: app, code: 1}\n- advance: 1s\n".repeat(40);
    let text = format!(
        "steps:\n- create: {{apiVersion: v1, kind: Pod, metadata: {{name: web}}, spec: {{containers: [{{name: app, image: \
         registry.local/busybox:1}}]}}}}\n- settle\n{crash}"
    );
    let crashes = Scenario::parse(&text, "crashes-again-and-again").expect("a story");
    stories.insert("crashes-again-and-again".to_owned(), crashes);
    // With these bits the first sync fails, and the page that it was to write is dropped.
    let text = "steps:\n- create: {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: app, image: \
         registry.local/busybox:1}]}}\n- settle\n- fault: {crash: unsynced, keep: 107}\n- exit: {pod: web, container: app, \
         code: 1}\n- settle\n";
    let failed = Scenario::parse(text, "a-sync-fails").expect("a story");
    stories.insert("a-sync-fails".to_owned(), failed);
    let text = "steps:\n- hold: {operation: sandbox}\n- create: {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: \
         {containers: [{name: app, image: registry.local/busybox:1}]}}\n- advance: 5s\n- dynamic: {pod: web, patch: {spec: \
         {containers: [{name: tool, image: registry.local/busybox:1}]}}}\n- settle\n";
    let pending = Scenario::parse(text, "changed-while-pending").expect("a story");
    stories.insert("changed-while-pending".to_owned(), pending);
    stories
}

/// Tells a story up to the node's rest, and what breaks first. Expectations are not checked, and what can't be done is
/// skipped: only invariants matter.
fn broken(scenario: &Scenario, saboteur: Option<&'static Saboteur>) -> Option<String> {
    let driven = saboteur.map(Saboteur::driven).unwrap_or_default();
    told(scenario, Player::new(&scenario.node, &driven, true))
}

fn told(scenario: &Scenario, mut player: Player) -> Option<String> {
    player.begin();
    for step in &scenario.steps {
        if !player.broken.is_empty() {
            break;
        }
        if matches!(step.verb, Verb::Expect(_) | Verb::Mark(_)) {
            continue;
        }
        let Verb::Settle(within) = &step.verb else {
            player.perform(&step.verb);
            continue;
        };
        let until = player.world().now().after(Nanos::secs(3600));
        while player.broken.is_empty()
            && player.world().next_due().is_some_and(|due| due <= until)
            && !player.world().unsettled(*within).is_empty()
        {
            player.natural();
        }
    }
    if player.broken.is_empty() {
        player.perform(&Verb::Heal);
    }
    player.finish();
    player.broken.first().map(|broken| broken.what.clone())
}

fn number(violation: &str) -> &str {
    violation.split(':').next().unwrap_or_default()
}

#[test]
fn nothing_breaks_when_nothing_is_sabotaged() {
    let broken: Vec<String> = stories()
        .iter()
        .filter_map(|(name, scenario)| broken(scenario, None).map(|violation| format!("{name}: {violation}")))
        .collect();
    assert!(broken.is_empty(), "{}:\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn every_saboteur_is_caught_by_the_invariant_that_it_breaks() {
    let stories = stories();
    let mut escaped = Vec::new();
    let told: Vec<&'static Saboteur> = Saboteur::all().filter(|s| !s.story.is_empty()).collect();
    assert!(
        told.len() + 1 >= Saboteur::all().count(),
        "a saboteur has a story, but for what only faults bring out"
    );
    for saboteur in told {
        let told = stories.get(saboteur.story).map(|story| broken(story, Some(saboteur)));
        match told {
            Some(Some(violation)) if number(&violation) == saboteur.breaks.to_string() => {}
            other => escaped.push(format!(
                "{} should break {} in {:?}: {other:?}",
                saboteur.name, saboteur.breaks, saboteur.story
            )),
        }
    }
    assert!(escaped.is_empty(), "{}:\n{}", escaped.len(), escaped.join("\n"));
}

/// Those that chance brings soon, one of each kind of being wrong, and where to look for them: all are hunted from everywhere
/// by `nodefold sim --sabotage all` (`./test --long`).
const SOON: [(&str, usize); 6] = [
    ("never-wakes", 1),
    ("attributes-an-exit-to-another", 1),
    ("leaves-a-secret-behind", 2),
    ("forgets-an-uncertain-mount", 2),
    ("never-tells-the-end", 0),
    ("loses-the-last-fact", 0),
];

#[test]
fn the_swarm_finds_saboteurs_on_seeds_on_which_honest_nodes_are_clean() {
    let mut wrong = Vec::new();
    for (name, place) in SOON {
        let (saboteur, beginning) = (Saboteur::named(name).expect("a saboteur"), BEGINNINGS[place]);
        let Some(hunted) = saboteur.caught_from(beginning, WITHIN) else {
            wrong.push(format!("{name} escapes {WITHIN} seeds from {beginning}"));
            continue;
        };
        if hunted.by != saboteur.breaks.to_string() {
            wrong.push(format!("{name} should break {}: {:?}", saboteur.breaks, hunted.report.broken));
        }
        let honest = (beginning..beginning + hunted.seeds).flat_map(|seed| {
            run_seed(seed, &SwarmOptions::default()).broken.into_iter().map(move |b| (seed, b))
        });
        wrong.extend(honest.map(|(seed, broken)| format!("an honest node on seed {seed}: {}", broken.what)));
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

/// The specification by itself, all oracles off: whoever does what no row permits, or says what it does not do.
#[test]
fn the_specification_alone_catches_saboteurs_of_allocation_identity_removal_and_restart() {
    let stories = stories();
    let caught: BTreeSet<&str> = Saboteur::all()
        .filter(|saboteur| !saboteur.story.is_empty())
        .filter(|saboteur| {
            let Some(story) = stories.get(saboteur.story) else { return false };
            let driven = Driven { refined: true, ..saboteur.driven() };
            let violation = told(story, Player::new(&story.node, &driven, false));
            violation.is_some_and(|violation| number(&violation) == "refinement")
        })
        .map(|saboteur| saboteur.name)
        .collect();
    let at_least = [
        "creates-the-next-beside-the-last",
        "creates-while-terminating",
        "forgets-an-uncertain-mount",
        "frees-the-room-of-what-still-runs",
        "leaks-a-removed-volume",
        "leaves-a-secret-behind",
        "makes-a-second-sandbox",
        "mounts-over-the-former-life",
        "mounts-what-is-only-desired",
        "refreshes-what-was-removed",
        "releases-before-unmounting",
        "releases-what-still-runs",
        "remounts-while-terminating",
        "restarts-the-neighbours",
        "runs-init-again",
        "runs-init-again-after-a-restart",
        "starts-a-main-beside-init",
        "takes-a-mount-for-done",
        "tears-down-on-a-failed-refresh",
        "unmounts-before-the-runtime-is-listed",
        "unmounts-on-stop",
        "unmounts-when-the-object-is-gone",
        "unmounts-while-mounting",
    ];
    let escaped: Vec<&&str> = at_least.iter().filter(|name| !caught.contains(**name)).collect();
    assert!(escaped.is_empty(), "escaped: {escaped:?}; caught: {caught:?}");
}

#[test]
fn saboteurs_are_named_and_stand_for_known_races() {
    let names: BTreeSet<&str> = Saboteur::all().map(|s| s.name).collect();
    assert_eq!(names.len(), Saboteur::all().count(), "no name twice");
    assert!(names.len() >= 30);
    for saboteur in Saboteur::all() {
        assert!(saboteur.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", saboteur.name);
        for race in saboteur.races {
            let (table, number) = race.split_at(1);
            let last = if table == "B" { 37 } else { 39 };
            let known =
                matches!(table, "B" | "V") && number.parse().is_ok_and(|n: u32| (1..=last).contains(&n));
            assert!(known, "{}: {race}", saboteur.name);
        }
    }
}
