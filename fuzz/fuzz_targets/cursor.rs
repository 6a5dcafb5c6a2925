//! Cursors, as requests write them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| taffrail_transport::http::entry::cursor(bytes));
