//! Integration tests of the engine, in one binary.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod docs;
mod machine;
mod process;
