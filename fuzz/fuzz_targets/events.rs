//! libFuzzer's way into `nodefold_fuzz::events`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nodefold_fuzz::events(data));
