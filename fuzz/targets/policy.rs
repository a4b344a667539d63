#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tiphys_fuzz::targets::policy(bytes));
