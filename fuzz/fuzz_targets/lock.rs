#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| avow_fuzz::lock(bytes));
