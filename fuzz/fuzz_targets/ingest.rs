//! Bodies of events, and the header that says whose they are.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| taffrail_transport::http::entry::ingest(bytes));
