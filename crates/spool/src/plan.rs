//! Where bytes go, when files rotate and which ones are dropped: decisions without files.

use std::cmp::Reverse;

use taffrail_mcp_core::Timestamp;

use crate::{Limits, format::SegmentHead};

/// What the file being written holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Fill {
    /// Bytes, its first line included.
    pub(crate) bytes: u64,
    /// Whether it holds a record.
    pub(crate) records: bool,
    /// Whether records before the next one can no longer be had: what follows belongs in a new file, whose first line
    /// tells.
    pub(crate) after_gap: bool,
}

/// Where the next bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// This many, whole lines, into the file being written.
    Here(usize),
    /// This many, whole lines, into a new file.
    NewFile(usize),
}

/// Places the first part of `lines`: newline-ended lines, at least one.
///
/// A file takes what fits in whole lines. A line that does not even fit an empty file goes in whole: a limit is no
/// reason to lose a record.
pub(crate) fn place(limits: &Limits, fill: Fill, lines: &[u8]) -> Place {
    let limit = limits.rotate_at();
    let empty = SegmentHead::MAX_LEN as u64;
    if fill.records {
        let here = whole_lines(lines, limit.saturating_sub(fill.bytes));
        if here > 0 && !fill.after_gap {
            return Place::Here(here);
        }
    }
    let fits = whole_lines(lines, limit.saturating_sub(empty.max(fill.bytes * u64::from(!fill.records))));
    let first = || memchr::memchr(b'\n', lines).map_or(lines.len(), |at| at + 1);
    let take = if fits > 0 { fits } else { first() };
    if fill.records { Place::NewFile(take) } else { Place::Here(take) }
}

/// Length of the longest prefix of whole lines that fits.
fn whole_lines(lines: &[u8], room: u64) -> usize {
    match usize::try_from(room).ok().and_then(|room| lines.get(..room)) {
        Some(fits) => memchr::memrchr(b'\n', fits).map_or(0, |at| at + 1),
        None => lines.len(),
    }
}

/// How many of a run's files, from the oldest, must go before a new one is begun.
///
/// `sizes` are those of its files, oldest first, the one written until now last. Room for a whole new file is left, so
/// that the run never takes more than its limit, not even just before the next rotation.
pub(crate) fn drops(limits: &Limits, sizes: &[u64]) -> usize {
    let room = limits.run_bytes.saturating_sub(limits.rotate_at());
    let mut sum: u64 = sizes.iter().sum();
    sizes
        .iter()
        .take_while(|&&size| {
            sum > room && {
                sum -= size;
                true
            }
        })
        .count()
}

/// One file, as a sweep sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Which run; any numbering.
    pub(crate) run: usize,
    /// Which file of the run; larger is older.
    pub(crate) number: u32,
    /// Its size.
    pub(crate) bytes: u64,
    /// When it was last written.
    pub(crate) modified: Timestamp,
    /// Whether the run goes on, or somebody writes the file.
    pub(crate) live: bool,
}

/// Which pieces go, in the order in which they go. `pieces` is sorted by run, oldest file first.
///
/// Old ones first; then the oldest of runs above their limit; then, while all together are above theirs, in this order:
/// rotated files of finished runs, rotated files of live runs, the newest files of finished runs (which tell how the run
/// ended), each from the oldest. The newest file of a live run always stays. Within a run files go from the oldest, so
/// what is left of it has no hole.
pub(crate) fn sweep(limits: &Limits, now: Timestamp, pieces: &[Piece]) -> Vec<usize> {
    let age = u64::try_from(limits.age.as_micros()).unwrap_or(u64::MAX);
    let mut gone = Vec::new();
    let mut candidates = Vec::new();
    let mut total = 0;
    let mut at = 0;
    for run in pieces.chunk_by(|a, b| a.run == b.run) {
        let mut bytes: u64 = run.iter().map(|piece| piece.bytes).sum();
        let mut oldest_still_there = true;
        // A clock that was set back must not make a file look older than the ones before it.
        let mut modified = Timestamp::default();
        for (i, piece) in run.iter().enumerate() {
            let newest = i + 1 == run.len();
            modified = modified.max(piece.modified);
            let old = now.micros().saturating_sub(modified.micros()) > age;
            let may_go = !(newest && piece.live);
            let too_much = bytes > limits.run_bytes && !newest;
            if may_go && oldest_still_there && (old || too_much) {
                gone.push(at + i);
                bytes -= piece.bytes;
                continue;
            }
            oldest_still_there = false;
            total += piece.bytes;
            if may_go {
                let class = (u8::from(newest) * 2).max(u8::from(piece.live));
                candidates.push((class, modified, piece.run, Reverse(piece.number), at + i, piece.bytes));
            }
        }
        at += run.len();
    }
    candidates.sort_unstable();
    for (.., index, bytes) in candidates {
        if total <= limits.total_bytes {
            break;
        }
        total -= bytes;
        gone.push(index);
    }
    gone
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
