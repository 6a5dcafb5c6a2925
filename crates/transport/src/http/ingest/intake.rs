//! Bodies of events, as they come: lines out of chunks, events out of lines. No I/O, no clock.

use taffrail_mcp_core::{Event, EventBatch, EventLineError, EventReader, RunFinished, RunId, RunStatus, Timestamp};

use crate::http::params::shown;

/// Longest line, in bytes. A line of process output has 64 KiB at most, six times as many in the worst spelling.
pub(crate) const LINE_BYTES: usize = 1024 * 1024;

/// What some tools put before text that they write.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Events that happened at one time.
pub(super) type Part = (Option<Timestamp>, EventBatch);

/// Takes in a body.
#[derive(Debug)]
pub(super) struct Intake {
    run: RunId,
    reader: EventReader,
    /// The beginning of a line whose end has not come.
    carry: Vec<u8>,
    /// Lines that have ended.
    lines: u64,
    parts: Vec<Part>,
    bytes: usize,
    folding: Option<Folding>,
    /// How the run has ended for good, in a line before.
    over: Option<RunStatus>,
}

/// The first event since the last [`Intake::take`] that a run's state depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folding {
    /// Its line.
    pub(super) line: u64,
    /// Its type.
    pub(super) kind: String,
    /// The part that begins with it.
    part: usize,
}

/// A line that cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BadLine {
    /// Which, from 1; empty lines count.
    pub(super) line: u64,
    /// The byte of the line at which that shows, from 1.
    pub(super) column: usize,
    /// What is wrong.
    pub(super) what: WrongLine,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum WrongLine {
    /// Not an event.
    #[error(transparent)]
    Event(#[from] EventLineError),
    /// Longer than a line may be.
    #[error("longer than {LINE_BYTES} bytes, the most that a line may have: send its text in several events")]
    TooLong,
    /// A run does not end so.
    #[error("a run does not finish as {}: say done, halt, cancelled, interrupted or suspended", status.as_str())]
    NoEnd {
        /// How it says that the run ended.
        status: RunStatus,
    },
    /// The line before has ended the run.
    #[error("the run has ended before it, as {}, and takes no more events", status.as_str())]
    AfterEnd {
        /// How the run has ended.
        status: RunStatus,
    },
    /// It says that it belongs to another run.
    #[error("it is of run {}, and this is where events of run {asked} are sent", shown(given))]
    OtherRun {
        /// The run that it names.
        given: String,
        /// The run of the URL.
        asked: RunId,
    },
}

impl Intake {
    /// Takes in events of a run.
    pub(super) fn new(run: RunId) -> Self {
        Self {
            run,
            reader: EventReader::new(),
            carry: Vec::new(),
            lines: 0,
            parts: Vec::new(),
            bytes: 0,
            folding: None,
            over: None,
        }
    }

    /// Takes in what came next. Lines before a bad one are taken; nothing may be fed after one.
    ///
    /// Holds at most one line beside the events that were not taken out.
    pub(super) fn feed(&mut self, mut chunk: &[u8]) -> Result<(), BadLine> {
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            let (line, rest) = chunk.split_at(end);
            chunk = rest.get(1..).unwrap_or_default();
            if self.carry.is_empty() {
                self.line(line)?;
            } else {
                self.carry_on(line)?;
                self.carried_line()?;
            }
        }
        self.carry_on(chunk)
    }

    /// The body is over: what has no newline is its last line.
    pub(super) fn finish(&mut self) -> Result<(), BadLine> {
        if self.carry.is_empty() { Ok(()) } else { self.carried_line() }
    }

    fn carry_on(&mut self, piece: &[u8]) -> Result<(), BadLine> {
        if self.carry.len() + piece.len() > LINE_BYTES {
            return Err(self.too_long());
        }
        self.carry.extend_from_slice(piece);
        Ok(())
    }

    fn carried_line(&mut self) -> Result<(), BadLine> {
        let mut carry = std::mem::take(&mut self.carry);
        let taken = self.line(&carry);
        carry.clear();
        self.carry = carry;
        taken
    }

    fn too_long(&self) -> BadLine {
        BadLine { line: self.lines + 1, column: LINE_BYTES + 1, what: WrongLine::TooLong }
    }

    /// Takes in a line, without its newline.
    fn line(&mut self, mut line: &[u8]) -> Result<(), BadLine> {
        if line.len() > LINE_BYTES {
            return Err(self.too_long());
        }
        self.lines += 1;
        if self.lines == 1 {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let number = self.lines;
        let bad = |column, what| BadLine { line: number, column, what };
        let event = self.reader.read(line).map_err(|error| bad(error.column, error.into()))?;
        if let Some(given) = event.run().filter(|given| *given != self.run.as_str()) {
            let given = given.to_owned();
            return Err(bad(1, WrongLine::OtherRun { given, asked: self.run.clone() }));
        }
        if let Some(status) = self.over {
            return Err(bad(1, WrongLine::AfterEnd { status }));
        }
        if let Some(Event::RunFinished(RunFinished { depth: 0, status, .. })) = event.folding() {
            if !status.rests() {
                return Err(bad(1, WrongLine::NoEnd { status: *status }));
            }
            self.over = status.is_final().then_some(*status);
        }
        let ts = event.ts();
        let first_folding = event.folding().filter(|_| self.folding.is_none()).map(|event| event.kind().to_owned());
        // The first event that a run's state depends on begins a part, so that what is before it can be taken alone.
        if first_folding.is_some() || self.parts.last().is_none_or(|(last, _)| *last != ts) {
            self.parts.push((ts, EventBatch::new()));
        }
        if let Some(kind) = first_folding {
            self.folding = Some(Folding { line: number, kind, part: self.parts.len() - 1 });
        }
        if let Some((_, batch)) = self.parts.last_mut() {
            self.bytes -= batch.size();
            batch.push_read(event);
            self.bytes += batch.size();
        }
        Ok(())
    }

    /// Encoded bytes of the events that wait to be taken out.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The first of these that a run's state depends on.
    pub(super) fn folding(&self) -> Option<&Folding> {
        self.folding.as_ref()
    }

    /// Drops that one and what came after it.
    pub(super) fn cut(&mut self, folding: &Folding) {
        self.parts.truncate(folding.part);
        self.folding = None;
        self.bytes = self.parts.iter().map(|(_, batch)| batch.size()).sum();
    }

    /// Takes out the events that came.
    pub(super) fn take(&mut self) -> Vec<Part> {
        self.bytes = 0;
        self.folding = None;
        std::mem::take(&mut self.parts)
    }
}

#[cfg(test)]
mod tests;
