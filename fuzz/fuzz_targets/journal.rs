//! libFuzzer's way into `nodefold_fuzz::journal`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nodefold_fuzz::journal(data));
