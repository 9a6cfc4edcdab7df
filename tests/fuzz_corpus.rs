//! The kept corpora of the fuzz targets, replayed without nightly: whatever a fuzzer ever found, and what it took to get
//! where it was found, is a test.

use std::fs;
use std::path::Path;

#[path = "../fuzz/src/lib.rs"]
mod fuzz;

/// Runs a target over its corpus; how many inputs it was.
fn replay(target: &str) -> usize {
    let (name, run) =
        fuzz::TARGETS.into_iter().find(|(name, _)| *name == target).expect("a target of that name");
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    let mut paths: Vec<_> =
        fs::read_dir(&dir).expect("a corpus").map(|entry| entry.expect("an input").path()).collect();
    paths.sort();
    for path in &paths {
        let input = fs::read(path).expect("an input can be read");
        // Which one it was is only known if it is said before.
        let told = std::panic::catch_unwind(|| run(&input));
        assert!(told.is_ok(), "{name}: {}", path.display());
    }
    paths.len()
}

macro_rules! corpora {
    ($($target:ident)*) => {
        $(
            #[test]
            fn $target() {
                assert!(replay(stringify!($target)) >= 10, "a corpus of some inputs");
            }
        )*

        #[test]
        fn every_target_has_a_test_a_program_and_a_corpus() {
            let names: Vec<&str> = fuzz::TARGETS.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, [$(stringify!($target)),*]);
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
            let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("a manifest");
            for name in names {
                assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
                assert!(root.join("fuzz_targets").join(format!("{name}.rs")).is_file(), "{name}");
            }
        }
    };
}

corpora! { lifecycle events dynamic_request manifest journal replay_equivalence importers patch request }
