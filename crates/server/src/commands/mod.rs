//! One file a command, or a few that are alike.

mod detach;
pub(crate) mod doctor;
pub(crate) mod exec;
pub(crate) mod gc;
mod inputs;
pub(crate) mod logs;
pub(crate) mod look;
pub(crate) mod mcp;
pub(crate) mod push;
pub(crate) mod remote;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod serve;
mod watch;

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

/// The caller typed something that cannot be right.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// Whether people see colours on a stream.
pub(crate) fn color(stream: &impl IsTerminal) -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    stream.is_terminal() && !no_color && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Writes one JSON value as a line on stdout.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, value)?;
    writeln!(out)?;
    Ok(())
}
