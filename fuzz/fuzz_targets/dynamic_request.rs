//! libFuzzer's way into `nodefold_fuzz::dynamic_request`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nodefold_fuzz::dynamic_request(data));
