//! libFuzzer's way into `nodefold_fuzz::lifecycle`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nodefold_fuzz::lifecycle(data));
