//! libFuzzer's way into `nodefold_fuzz::manifest`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nodefold_fuzz::manifest(data));
