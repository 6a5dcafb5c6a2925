//! The PostgreSQL store: the contract, and what only a server can suffer.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking; children print")]

mod child;
mod leases;
mod limits;
mod lost;
mod opening;
mod processes;
mod relayed;
mod server;
mod signals;
mod suite;
