//! Child processes: started, captured as events, ended for good.
//!
//! [`run`] is the one entry: it starts a [`Command`], turns what it writes into `log` events (`lines.rs` says how they
//! are cut), and returns when the process has ended and nothing of it is left. How output is held back, counted
//! and clipped is in [`OutputBudget`]; how a process is ended early in [`Cancel`]; whose processes are whose in
//! [`Scope`]; what happens when our own process is killed in [`GuardCommand`].
//!
//! Inside, decisions are plain state machines (`lines`, `ending`, `clip`, `budget`) and the system is reached only through
//! `spawn` (starting), `procfs` and `family` (finding and ending), `pump` (reading), `guard` and `clock`.
//!
//! It is not a shell, not a terminal (there is no pty), and not a sandbox. A process of another user cannot be ended. One
//! that left its group, drops its environment and is orphaned cannot be told from those of other states that run at the
//! same time: it is ended with the last of them, and not by the guard.

mod budget;
mod cancel;
mod clip;
mod clock;
mod command;
mod ending;
mod error;
mod exit;
mod family;
mod guard;
mod leftovers;
mod lines;
mod outlet;
mod procfs;
mod pump;
mod run;
mod scope;
mod spawn;
mod tail;

pub use budget::OutputBudget;
pub use cancel::Cancel;
pub use command::{Command, Outcome, Program};
pub use error::SpawnError;
pub use guard::{GuardCommand, dismiss_guard, guard_main};
pub use run::run;
pub use scope::Scope;
