//! What must hold whatever happens to the processes that work on one data directory. In one binary.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod decide;
mod faults;
mod ground;
mod killed;
mod retention;
mod start;
mod two;
