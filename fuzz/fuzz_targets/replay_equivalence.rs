//! libFuzzer's way into `nodefold_fuzz::replay_equivalence`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nodefold_fuzz::replay_equivalence(data));
