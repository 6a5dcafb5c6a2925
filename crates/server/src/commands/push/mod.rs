//! Runs that happen here and are kept by a server: `taffrail exec --url`, and `taffrail push` for what is left of them.
//!
//! Everything is written to a log of the run's own first, in `push/<run>` of the data directory, and sent from there. So
//! the command neither waits for the server nor notices when it is away, and what a killed process leaves is found by
//! the next one.

mod exec;
mod folder;
mod format;
mod leftovers;
mod send;
mod source;

pub(crate) use self::{exec::exec, leftovers::push};
