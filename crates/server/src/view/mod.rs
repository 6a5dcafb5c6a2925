//! What people see of a run: live on a terminal, line by line elsewhere, and afterwards as tables and summaries.
//!
//! Whatever a process wrote is made harmless before it is shown ([`text`]): no byte of it moves a cursor or sets a
//! title. Nothing here knows a clock or asks for the size of a terminal; callers pass both in. A view that can no
//! longer write goes silent: an observer never changes a run.

// The commands that call this are written on their own.
#![allow(dead_code, unused_imports, reason = "called from the commands")]

use std::io::Write;

use taffrail_mcp_core::{Snapshot, Timestamp};

/// How a run is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Records as they are, one a line.
    Json,
    /// A line for each event that matters.
    Plain {
        /// Whether lines are coloured.
        color: bool,
    },
    /// A tree that is redrawn in place.
    Live {
        /// Whether it is coloured.
        color: bool,
    },
}

impl Mode {
    /// Chooses: JSON when asked for, the live tree on a terminal that can move its cursor, plain lines elsewhere.
    ///
    /// `no_color` is whether `NO_COLOR` is set and not empty, `term` is the value of `TERM`.
    pub fn pick(json: bool, stderr_is_terminal: bool, no_color: bool, term: Option<&str>) -> Self {
        let capable = term.is_some_and(|term| !term.is_empty() && term != "dumb");
        match (json, stderr_is_terminal && capable) {
            (true, _) => Mode::Json,
            (false, true) => Mode::Live { color: !no_color },
            (false, false) => Mode::Plain { color: false },
        }
    }
}

/// Shows one run as its records arrive.
pub struct View {
    mode: Mode,
    out: Box<dyn Write + Send>,
}

impl View {
    /// A view that writes to `out`: standard output for [`Mode::Json`], standard error otherwise.
    pub fn new(mode: Mode, out: Box<dyn Write + Send>) -> Self {
        Self { mode, out }
    }

    /// Takes in one record, exactly as stored, with or without its newline.
    pub fn record(&mut self, line: &[u8]) {
        let _ = (&self.mode, &self.out, line);
    }

    /// Redraws the live tree; about ten times a second. `size` is columns and rows. Does nothing in other modes.
    pub fn tick(&mut self, now: Timestamp, size: (u16, u16)) {
        let _ = (now, size);
    }

    /// Clears the live part and prints how the run ended or what it waits for; nothing in [`Mode::Json`].
    pub fn finish(&mut self, snapshot: &Snapshot) {
        let _ = snapshot;
    }
}

/// Writes a table of runs.
///
/// # Errors
///
/// When `out` cannot be written to.
pub fn runs_table(runs: &[Snapshot], now: Timestamp, color: bool, out: &mut dyn Write) -> std::io::Result<()> {
    let _ = (runs, now, color, out);
    Ok(())
}

/// Writes all that is known about a run, for people.
///
/// # Errors
///
/// When `out` cannot be written to.
pub fn status_text(run: &Snapshot, now: Timestamp, color: bool, out: &mut dyn Write) -> std::io::Result<()> {
    let _ = (run, now, color, out);
    Ok(())
}

/// Writes one record of a log: process output as its text, anything else as a line that begins with `--`.
///
/// # Errors
///
/// When `out` cannot be written to.
pub fn log_line(line: &[u8], color: bool, out: &mut dyn Write) -> std::io::Result<()> {
    let _ = (line, color, out);
    Ok(())
}
