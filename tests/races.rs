//! The historical races (kubelet-pods §6, kubelet-volumes §5) as scenarios, and further stories: every file runs in the
//! simulated world with all oracles on. A file's name says what went wrong once; its last steps say the right outcome.
//! What `nodefold sim` found in our own core, world or oracles is told in `found-*.yaml`, shrunk, with the fix in its head.

use nodefold_harness::{Nobody, RunOptions, Scenario, Verdict, run};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// kubelet-pods §6: B1 to B37.
const POD_RACES: u32 = 37;
/// kubelet-volumes §5: 1 to 39, written V1 to V39 here.
const VOLUME_RACES: u32 = 39;

/// Races that no scenario can tell, each with its reason.
const NOT_EXPRESSIBLE: &[(&str, &str)] = &[
    ("B30", "needs two versions of the program; containers are compared by value, never by a hash"),
    (
        "B32",
        "`status.resize` is no more: the node owns the two resize conditions, and each names the generation it is about",
    ),
    (
        "B36",
        "no fact tells figures of the runtime's own: what is compared with the allocation is what it acknowledged",
    ),
    ("V4", "attach and detach: persistent volumes come later"),
    (
        "V5",
        "device names: persistent volumes come later; a volume's identity is journalled, never parsed from a path",
    ),
    ("V8", "a CSI driver's registration: CSI comes later"),
    ("V13", "two stages of one mount: CSI comes later"),
    ("V15", "a device's format and the in-use list: persistent volumes come later"),
    ("V16", "attach and detach: persistent volumes come later"),
    ("V17", "a device shared by two pods: persistent volumes come later"),
    ("V18", "a device without pods: persistent volumes come later"),
    ("V19", "device metadata: CSI comes later; an undo of what is already undone is V24"),
    (
        "V21",
        "one volume of many pods: persistent volumes come later; here a completion is known by its operation's id",
    ),
    (
        "V22",
        "one volume of many pods: persistent volumes come later; here a completion is known by its operation's id",
    ),
    ("V26", "attach and detach: persistent volumes come later"),
    ("V30", "two names of one claim: persistent volumes come later"),
    (
        "V37",
        "a mutable object that two set-ups share: commands carry immutable specs, so there is nothing to share",
    ),
];

/// Where the others are told: what no simulated host does is done to the core alone, or happens on a real disk. Each test is
/// called by its race.
const TOLD_ELSEWHERE: [(&str, &str); 3] = [
    ("core/tests/conformance/races.rs", include_str!("../core/tests/conformance/races.rs")),
    ("agent/tests/cases.rs", include_str!("../agent/tests/cases.rs")),
    ("agent/tests/images.rs", include_str!("../agent/tests/images.rs")),
];

fn files_in(directory: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(directory);
    let entries = fs::read_dir(&directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a directory entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} has no scenarios", directory.display());
    files
}

fn stem(file: &Path) -> &str {
    file.file_stem().and_then(|name| name.to_str()).expect("a file name in UTF-8")
}

fn read(file: &Path) -> Scenario {
    let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    Scenario::parse(&text, &file.display().to_string()).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs every file of a directory. All of what fails is told at once.
fn run_all(directory: &str) {
    let mut failed = Vec::new();
    for file in files_in(directory) {
        let outcome = run(&read(&file), RunOptions::default(), &mut Nobody);
        match outcome.verdict {
            Verdict::Passed => {}
            Verdict::ExpectationFailed { line, expected, actual, explanation, .. } => failed.push(format!(
                "{}:{line}: expected {expected}\n  actual: {actual}\n  {explanation}",
                file.display()
            )),
            Verdict::InvariantBroken { line, violations, .. } => {
                failed.push(format!("{}:{line}: {}", file.display(), violations.join("; ")));
            }
            Verdict::Unusable { line, error, .. } => {
                failed.push(format!("{}:{line}: unusable: {error}", file.display()));
            }
        }
    }
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
}

/// The races that a file or a test tells: the `b15` and `v25` that its name begins with, in upper case.
fn races_of(stem: &str) -> Vec<String> {
    let is_number = |word: &str| {
        word.strip_prefix(['b', 'v']).is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()))
    };
    stem.split(['-', '_']).take_while(|word| is_number(word)).map(str::to_uppercase).collect()
}

fn all_races() -> BTreeSet<String> {
    let pods = (1..=POD_RACES).map(|n| format!("B{n}"));
    pods.chain((1..=VOLUME_RACES).map(|n| format!("V{n}"))).collect()
}

#[test]
fn every_race_ends_in_the_right_outcome() {
    run_all("races");
}

#[test]
fn every_further_story_holds() {
    run_all("scenarios");
}

#[test]
fn every_race_is_told_or_has_its_reason() {
    let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files_in("races") {
        let name = stem(&file);
        let races = races_of(name);
        let is_found = name.starts_with("found-");
        assert!(
            is_found || !races.is_empty(),
            "{name}: a race's file begins with its number, a find's with `found`"
        );
        for race in races {
            told.entry(race).or_default().push(name.to_owned());
        }
    }
    for (file, text) in TOLD_ELSEWHERE {
        let tests = text.lines().filter_map(|line| line.strip_prefix("fn "));
        for race in tests.flat_map(races_of) {
            told.entry(race).or_default().push(file.to_owned());
        }
    }
    let excused: BTreeSet<String> = NOT_EXPRESSIBLE.iter().map(|(race, _)| (*race).to_owned()).collect();
    let known = all_races();
    let unknown: Vec<&String> = told.keys().chain(&excused).filter(|race| !known.contains(*race)).collect();
    assert!(unknown.is_empty(), "no such races: {unknown:?}");
    let both: Vec<&String> = told.keys().filter(|race| excused.contains(*race)).collect();
    assert!(both.is_empty(), "told, so their excuses are void: {both:?}");
    let missing: Vec<&String> =
        known.iter().filter(|race| !told.contains_key(*race) && !excused.contains(*race)).collect();
    assert!(missing.is_empty(), "neither told nor excused: {missing:?}");
}

#[test]
fn every_file_says_its_number_and_its_invariant() {
    for file in files_in("races") {
        let (name, scenario) = (stem(&file).to_owned(), read(&file));
        assert_eq!(scenario.name, name, "a scenario is called as its file");
        for race in races_of(&name) {
            assert!(scenario.about.contains(&race), "{name}: its about names {race}");
        }
        let invariant = scenario
            .about
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(|word| word.strip_prefix(['S', 'D', 'L', 'I']).is_some_and(|n| n.parse::<u32>().is_ok()));
        assert!(invariant, "{name}: its about names the invariant (S1, L3, I6, ...)");
    }
}
