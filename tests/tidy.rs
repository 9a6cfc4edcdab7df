//! The house as it is meant to be kept: what a machine can check of it (harness sheet §4.4, DESIGN §2).

use std::fs;
use std::path::{Path, PathBuf};

const LINES_MAX: usize = 1000;

fn rust_files(dir: &Path, into: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    for entry in entries {
        let path = entry.expect("a directory entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            rust_files(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
}

fn all() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    rust_files(root, &mut files);
    assert!(files.len() > 50, "the walk finds the sources");
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("readable source");
        (path.strip_prefix(root).expect("below the root").display().to_string(), text)
    };
    files.into_iter().map(read).collect()
}

#[test]
fn every_file_says_what_it_owns() {
    let silent: Vec<String> = all()
        .into_iter()
        .filter(|(_, text)| {
            !text.trim_start_matches("#![no_std]").trim_start().starts_with("//!") && !text.contains("\n//! ")
        })
        .map(|(name, _)| name)
        .collect();
    assert!(silent.is_empty(), "files without a head: {silent:?}");
}

#[test]
fn files_stay_small_enough_to_read_in_a_sitting() {
    let long: Vec<String> = all()
        .into_iter()
        .filter(|(_, text)| text.lines().count() > LINES_MAX)
        .map(|(name, text)| format!("{name}: {}", text.lines().count()))
        .collect();
    assert!(long.is_empty(), "longer than {LINES_MAX} lines: {long:?}");
}

#[test]
fn nothing_is_left_for_later_in_code() {
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X:"),
        concat!("unimpl", "emented!"),
        concat!("todo", "!("),
    ];
    let left: Vec<String> = all()
        .into_iter()
        .flat_map(|(name, text)| {
            text.lines()
                .enumerate()
                .filter(|(_, line)| marks.iter().any(|m| line.contains(m)))
                .map(|(n, line)| format!("{name}:{}: {}", n + 1, line.trim()))
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(left.is_empty(), "what remains belongs into ARCHITECTURE.md: {left:#?}");
}

#[test]
fn the_core_stays_pure() {
    let banned = ["std::", "HashMap", "HashSet", "Instant::", "SystemTime", "unsafe ", "thread", "rand::"];
    let found: Vec<String> = all()
        .into_iter()
        .filter(|(name, _)| name.starts_with("core/src/"))
        .flat_map(|(name, text)| {
            let code = |line: &str| !line.trim_start().starts_with("//");
            text.lines()
                .enumerate()
                .filter(|(_, line)| code(line) && banned.iter().any(|b| line.contains(b)))
                .map(|(n, line)| format!("{name}:{}: {}", n + 1, line.trim()))
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(
        found.is_empty(),
        "core has no I/O, clock, threads, randomness, unsafe or hash order: {found:#?}"
    );
}

#[test]
fn the_arrows_are_a_dag() {
    let allowed: &[(&str, &[&str])] = &[
        ("core", &[]),
        ("k8s", &["core"]),
        ("journal", &["core"]),
        ("model", &["core"]),
        ("api", &["core", "k8s"]),
        ("harness", &["core", "k8s", "api", "journal", "model"]),
        ("replay", &["core", "k8s", "api", "journal", "model"]),
        ("agent", &["core", "k8s", "api", "journal"]),
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (room, may) in allowed {
        let manifest = fs::read_to_string(root.join(room).join("Cargo.toml")).expect("a manifest");
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or_default();
        let dependencies = dependencies.split("\n[").next().unwrap_or_default();
        for line in dependencies.lines().filter(|l| l.starts_with("nodefold-")) {
            let on = line.trim_start_matches("nodefold-").split(['.', ' ', '=']).next().unwrap_or_default();
            assert!(may.contains(&on), "{room} must not depend on {on}");
        }
    }
}

#[test]
fn core_uses_no_wildcard_on_its_own_enums() {
    // clippy's wildcard_enum_match_arm is on for every room; this keeps anyone from switching it off.
    let off: Vec<String> = all()
        .into_iter()
        .filter(|(name, text)| {
            name.starts_with("core/src/") && text.contains("allow(clippy::wildcard_enum_match_arm")
        })
        .map(|(name, _)| name)
        .collect();
    assert!(off.is_empty(), "{off:?}");
}
