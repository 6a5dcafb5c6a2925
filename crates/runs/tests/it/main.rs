//! What must hold whatever happens to the processes that work on one data directory. In one binary.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a failing helper fails its test")]

mod decide;
mod external;
mod faults;
mod ground;
mod killed;
mod line;
mod machines;
mod retention;
mod start;
mod two;
mod waits;
