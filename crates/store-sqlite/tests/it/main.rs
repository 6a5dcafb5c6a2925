//! The SQLite store: the contract, and what only a file can suffer.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking; children print")]

mod bad_files;
mod child;
mod life;
mod limits;
mod processes;
mod suite;
