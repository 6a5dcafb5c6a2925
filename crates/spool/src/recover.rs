//! Finding out what a file holds from its two ends.

use std::{fs::File, io, os::unix::fs::FileExt};

use taffrail_mcp_core::{LineHead, RunId, Seq};

use crate::format::SegmentHead;

/// Read from the end in pieces of this size: one is enough for nearly every last line.
const CHUNK: usize = 64 * 1024;
/// The head of a record fits this, except for absurdly long type names.
const LINE_HEAD: usize = 1024;

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Found {
    /// Its first line; `None` when the file holds no whole line.
    pub(crate) head: Option<SegmentHead>,
    /// Where records begin.
    pub(crate) body: u64,
    /// Up to here it is well: whole lines, the last one a record or the first line. What is after it is torn.
    pub(crate) len: u64,
    /// Its last record, if it has one.
    pub(crate) last: Option<Last>,
}

/// The last record of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Last {
    /// Its position.
    pub(crate) seq: Seq,
    /// Whether its thread is the run's own, so that every position belongs to the run.
    pub(crate) own_thread: bool,
}

impl Found {
    /// The position after which the file goes on; `None` when it holds nothing.
    ///
    /// A first line without a record is only left by a crash: the file goes on with the record it announced.
    pub(crate) fn cursor(&self) -> Option<Seq> {
        let announced = self.head.as_ref().map(|head| Seq(head.first.0.saturating_sub(1)));
        self.last.map(|last| last.seq).or(announced)
    }
}

/// Looks at a file of `run`; `None` when it is something else and must not be touched.
///
/// Costs a read at either end. The file is not changed.
pub(crate) fn examine(file: &File, run: &RunId) -> io::Result<Option<Found>> {
    let len = file.metadata()?.len();
    let opening = read(file, 0, len.min(SegmentHead::MAX_LEN as u64 * 4))?;
    let Some(end) = memchr::memchr(b'\n', &opening) else {
        // Not one whole line: a torn first line, or zeros, which some file systems leave after a power failure.
        let torn = opening.len() as u64 == len || opening.iter().all(|&b| b == 0);
        return Ok(torn.then(Found::default));
    };
    let head = opening.get(..end).and_then(SegmentHead::parse).filter(|head| head.run == *run);
    let Some(head) = head else {
        return Ok(None);
    };
    let body = end as u64 + 1;
    let mut found = Found { head: Some(head), body, len: body, last: None };
    let mut before = len;
    while let Some(newline) = newline_before(file, before, body)? {
        let start = newline_before(file, newline, body)?.map_or(body, |at| at + 1);
        if let Some(last) = record(file, start, newline, run)? {
            found.len = newline + 1;
            found.last = Some(last);
            break;
        }
        // Not a record of this run: cut with the rest.
        before = start;
    }
    Ok(Some(found))
}

/// Reads the head of the record at `start..newline`.
fn record(file: &File, start: u64, newline: u64, run: &RunId) -> io::Result<Option<Last>> {
    let len = newline - start;
    let closed = len > 0 && read(file, newline - 1, 1)? == b"}";
    if !closed {
        return Ok(None);
    }
    let parse = |line: &[u8]| {
        let head = LineHead::parse(line)?;
        (head.run == run.as_str()).then(|| Last { seq: head.seq, own_thread: head.thread == head.run })
    };
    if let Some(last) = parse(&read(file, start, len.min(LINE_HEAD as u64))?) {
        return Ok(Some(last));
    }
    Ok(if len > LINE_HEAD as u64 { parse(&read(file, start, len)?) } else { None })
}

/// The last newline in `floor..before`.
fn newline_before(file: &File, mut before: u64, floor: u64) -> io::Result<Option<u64>> {
    while before > floor {
        let start = before.saturating_sub(CHUNK as u64).max(floor);
        if let Some(at) = memchr::memrchr(b'\n', &read(file, start, before - start)?) {
            return Ok(Some(start + at as u64));
        }
        before = start;
    }
    Ok(None)
}

/// Reads `len` bytes at `at`, or fewer when the file has become shorter.
fn read(file: &File, at: u64, len: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?];
    let mut done = 0;
    while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, at + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    bytes.truncate(done);
    Ok(bytes)
}
