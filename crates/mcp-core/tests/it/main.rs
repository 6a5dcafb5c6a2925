//! The wire contract, from the outside.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod absent;
mod batch;
mod event_line;
mod fold;
mod generate;
mod roundtrip;
mod samples;
mod schema;
mod shapes;
mod unknown;
