//! What holds for any facts in any order: no panic, one digest however it is asked for, the same commands from the same
//! events, a state that does not grow with what is gone; and, where the world tells the truth, S1, S2, S6 and S12, and that
//! everything comes to rest.
#![allow(clippy::wildcard_enum_match_arm, reason = "a test looks for one variant among many")]

#[allow(dead_code, reason = "shared with the conformance tests, which use all of it")]
#[path = "../volumes/bench.rs"]
mod bench;
mod bounded;
mod generate;
mod honest;
#[path = "../common/host.rs"]
mod host;
mod hostile;
#[allow(dead_code, reason = "shared with the conformance tests, which use all of it")]
#[path = "../volumes/kit.rs"]
mod kit;
#[allow(dead_code, reason = "shared with the conformance tests, which use all of it")]
#[path = "../volumes/words.rs"]
mod words;
