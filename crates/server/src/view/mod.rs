//! What people see of a run: live on a terminal, line by line elsewhere, and afterwards as tables and summaries.
//!
//! Whatever a process wrote is made harmless before it is shown ([`text`]): no byte of it moves a cursor or sets a
//! title. Nothing here knows a clock or asks for the size of a terminal; callers pass both in. A view that can no
//! longer write goes silent: an observer never changes a run.

mod format;
mod hint;
mod layout;
mod live;
mod log_line;
mod plain;
mod screen;
mod style;
mod summary;
mod tables;
mod text;
mod tree;
mod words;

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use taffrail_mcp_core::{Snapshot, Timestamp};

pub(crate) use self::hint::{hint, set_hint, set_hint_there};
use self::{live::Live, plain::Plain, style::Line};

/// How a run is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
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
    pub(crate) fn pick(json: bool, stderr_is_terminal: bool, no_color: bool, term: Option<&str>) -> Self {
        let capable = term.is_some_and(|term| !term.is_empty() && term != "dumb");
        match (json, stderr_is_terminal && capable) {
            (true, _) => Mode::Json,
            (false, true) => Mode::Live { color: !no_color },
            (false, false) => Mode::Plain { color: false },
        }
    }
}

/// What is held back for the next tick, in bytes; more is written at once.
const HELD: usize = 64 * 1024;

/// Shows one run as its records arrive.
///
/// Dropping it gives the cursor back. Memory is bounded, however long the run.
pub(crate) struct View {
    show: Show,
    out: Box<dyn Write + Send>,
    /// What is not written yet.
    pending: Vec<u8>,
    /// Set by the first failed write; nothing is written after it.
    broken: bool,
}

enum Show {
    Json,
    Plain(Box<Plain>),
    Live(Box<Live>),
}

impl View {
    /// A view that writes to `out`: standard output for [`Mode::Json`], standard error otherwise.
    pub(crate) fn new(mode: Mode, out: Box<dyn Write + Send>) -> Self {
        let show = match mode {
            Mode::Json => Show::Json,
            Mode::Plain { color } => Show::Plain(Box::new(Plain::new(color))),
            Mode::Live { color } => Show::Live(Box::new(Live::new(color))),
        };
        Self { show, out, pending: Vec::new(), broken: false }
    }

    /// Takes in one record, exactly as stored, with or without its newline. It is shown at the next [`View::tick`], or
    /// at once when much is waiting.
    pub(crate) fn record(&mut self, line: &[u8]) {
        match &mut self.show {
            Show::Json => {
                self.pending.extend_from_slice(line.strip_suffix(b"\n").unwrap_or(line));
                self.pending.push(b'\n');
            }
            Show::Plain(plain) => {
                let mut text = String::new();
                plain.show(&format::read(line), &mut text);
                self.pending.extend_from_slice(text.as_bytes());
            }
            Show::Live(live) => {
                live.record(format::read(line));
                if live.held() > HELD {
                    self.pending.extend_from_slice(live.frame().as_bytes());
                }
            }
        }
        if self.pending.len() > HELD {
            self.write();
        }
    }

    /// Says something to people who watch that is not in the log; nothing in [`Mode::Json`].
    pub(crate) fn remark(&mut self, text: &str) {
        let text = text::clean_line(text);
        match &mut self.show {
            Show::Json => {}
            Show::Plain(plain) => {
                let mut closed = String::new();
                plain.close(&mut closed);
                self.pending.extend_from_slice(format!("{closed}{text}\n").as_bytes());
            }
            Show::Live(live) => live.remark(&text),
        }
    }

    /// Shows what has come, and redraws the live tree; about ten times a second, in every mode. `size` is columns and
    /// rows.
    pub(crate) fn tick(&mut self, now: Timestamp, size: (u16, u16)) {
        if let Show::Live(live) = &mut self.show {
            self.pending.extend_from_slice(live.tick(now, size).as_bytes());
        }
        self.flush();
    }

    /// Clears the live part and prints how the run ended or what it waits for; nothing in [`Mode::Json`].
    pub(crate) fn finish(&mut self, snapshot: &Snapshot) {
        let mut text = String::new();
        let color = match &mut self.show {
            Show::Json => return self.flush(),
            Show::Plain(plain) => {
                plain.close(&mut text);
                plain.color
            }
            Show::Live(live) => {
                text = live.rest();
                live.color
            }
        };
        for line in summary::lines(snapshot) {
            line.render(None, color, &mut text);
            text.push('\n');
        }
        self.pending.extend_from_slice(text.as_bytes());
        self.flush();
    }

    /// Writes what is pending, in one write.
    fn write(&mut self) {
        if !self.broken && !self.pending.is_empty() {
            self.broken = self.out.write_all(&self.pending).is_err();
        }
        self.pending.clear();
    }

    fn flush(&mut self) {
        self.write();
        if !self.broken {
            self.broken = self.out.flush().is_err();
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let mut text = String::new();
        match &mut self.show {
            Show::Json => {}
            Show::Plain(plain) => plain.close(&mut text),
            Show::Live(live) => text = live.clear(),
        }
        self.pending.extend_from_slice(text.as_bytes());
        self.flush();
    }
}

/// Writes a table of runs.
///
/// # Errors
///
/// When `out` cannot be written to.
pub(crate) fn runs_table(runs: &[Snapshot], now: Timestamp, color: bool, out: &mut dyn Write) -> io::Result<()> {
    write_lines(&tables::runs(runs, now), color, out)
}

/// Writes all that is known about a run, for people.
///
/// # Errors
///
/// When `out` cannot be written to.
pub(crate) fn status_text(run: &Snapshot, now: Timestamp, color: bool, out: &mut dyn Write) -> io::Result<()> {
    write_lines(&summary::status(run, now), color, out)
}

/// Writes one record of a log: process output as its text, made safe for a terminal, anything else as a line that
/// begins with `--`. A piece of a line that goes on in the next record ends without a line end.
///
/// # Errors
///
/// When `out` cannot be written to.
pub(crate) fn log_line(line: &[u8], color: bool, out: &mut dyn Write) -> io::Result<()> {
    let (line, ends) = log_line::line(&format::read(line));
    let mut text = line.text(None, color);
    if ends {
        text.push('\n');
    }
    out.write_all(text.as_bytes())
}

fn write_lines(lines: &[Line], color: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut text = String::new();
    for line in lines {
        line.render(None, color, &mut text);
        text.push('\n');
    }
    out.write_all(text.as_bytes())
}
