//! What the fuzz targets do with bytes: one function each, which panics exactly when something is wrong with nodefold.
//!
//! The programs in `fuzz_targets/` call one of them and need nightly and libFuzzer. `tests/fuzz_corpus.rs` of the main
//! workspace runs all of them over the kept corpora, on stable, with every test run. A function reads no clock, no file and
//! no environment: what it does follows from its bytes alone.

#![forbid(unsafe_code)]

mod choices;
mod drawn;
mod dynamic_request;
mod events;
mod importers;
mod journal;
mod json;
mod lifecycle;
mod manifest;
mod patch;
mod replay_equivalence;
mod request;
mod script;
#[path = "../../api/tests/support/mod.rs"]
mod support;

pub use dynamic_request::dynamic_request;
pub use events::events;
pub use importers::importers;
pub use journal::journal;
pub use lifecycle::lifecycle;
pub use manifest::manifest;
pub use patch::patch;
pub use replay_equivalence::replay_equivalence;
pub use request::request;

/// A target: its name, which is that of its program and its corpus, and what it does.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 9] = [
    ("lifecycle", lifecycle),
    ("events", events),
    ("dynamic_request", dynamic_request),
    ("manifest", manifest),
    ("journal", journal),
    ("replay_equivalence", replay_equivalence),
    ("importers", importers),
    ("patch", patch),
    ("request", request),
];
