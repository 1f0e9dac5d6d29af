//! The target `mapping` as a program of libFuzzer; what it asserts is in the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_fuzz::mapping::check(data));
