//! Finding out what a file holds from its two ends.

use std::{fs::File, io, os::unix::fs::FileExt};

use serde::de::IgnoredAny;
use taffrail_mcp_core::{LineHead, RunId, Seq};

use crate::format::SegmentHead;

/// Read from the end in pieces of this size: one is enough for nearly every last line.
const CHUNK: usize = 64 * 1024;
/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Found {
    /// Its first line; `None` when the file holds no whole line.
    pub(crate) head: Option<SegmentHead>,
    /// Up to here it is well: whole lines, the last one a record. What is after it is torn; that goes for a first line
    /// without a record, too, which only a crash leaves: the next record may be another than it announced.
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
    /// A first line alone says it, too: all before the record it announced is in older files.
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
    let mut found = Found { head: Some(head), ..Found::default() };
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

/// Reads the record at `start..newline`: all of it, for a torn line may have been glued to something.
fn record(file: &File, start: u64, newline: u64, run: &RunId) -> io::Result<Option<Last>> {
    let line = read(file, start, newline - start)?;
    let head = LineHead::parse(&line).filter(|head| head.run == run.as_str());
    let whole = || serde_json::from_slice::<IgnoredAny>(&line).is_ok();
    Ok(head.filter(|_| whole()).map(|head| Last { seq: head.seq, own_thread: head.thread == head.run }))
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
