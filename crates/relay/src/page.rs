//! Windows of a log.

use std::time::Duration;

use bytes::Bytes;
use taffrail_mcp_core::{Gap, PageMeta, Seq, Start};

use crate::Filter;

/// Which window to read.
#[derive(Debug, Clone)]
pub struct PageQuery {
    /// Where it begins.
    pub start: Start,
    /// Which records count.
    pub filter: Filter,
    /// At most this many matching records.
    pub limit: usize,
    /// At most this many bytes of matching lines; one record comes back however large it is.
    pub max_bytes: usize,
    /// The last matching records up to the head instead of the first; `start` then only bounds how far back.
    pub tail: Option<usize>,
    /// Wait this long for a first match before an empty page comes back.
    pub wait: Duration,
}

impl PageQuery {
    /// Records of a page by default.
    pub const LIMIT: usize = 200;
    /// Bytes of a page by default.
    pub const MAX_BYTES: usize = 256 * 1024;
}

impl Default for PageQuery {
    fn default() -> Self {
        Self {
            start: Start::Beginning,
            filter: Filter::default(),
            limit: Self::LIMIT,
            max_bytes: Self::MAX_BYTES,
            tail: None,
            wait: Duration::ZERO,
        }
    }
}

/// A window: lines as they are stored, and where to go on.
#[derive(Debug, Clone)]
pub struct Page {
    /// Records before the first line that can no longer be had.
    pub gap: Option<Gap>,
    /// Matching records, each a line with its newline.
    pub lines: Vec<Bytes>,
    /// The rest.
    pub meta: PageMeta,
}

/// Fills a page line by line. No I/O.
#[derive(Debug)]
pub(crate) struct Filling<'a> {
    query: &'a PageQuery,
    pub(crate) lines: Vec<Bytes>,
    bytes: usize,
    /// Last record that was passed, matching or not.
    pub(crate) next: Seq,
    pub(crate) scanned: u64,
    scanned_bytes: usize,
    scan_bytes: usize,
}

impl<'a> Filling<'a> {
    pub(crate) fn new(query: &'a PageQuery, after: Seq, scan_bytes: usize) -> Self {
        Self { query, lines: Vec::new(), bytes: 0, next: after, scanned: 0, scanned_bytes: 0, scan_bytes }
    }

    /// Whether the page takes no more.
    pub(crate) fn full(&self) -> bool {
        self.lines.len() >= self.query.limit
            || (self.bytes >= self.query.max_bytes && !self.lines.is_empty())
            || self.scanned_bytes >= self.scan_bytes
    }

    /// Looks at a block's lines in order, until full.
    pub(crate) fn take(&mut self, block: &crate::Block) {
        let open = !self.query.filter.looks_inside();
        for (line, seq) in block.lines().zip(block.first.0..) {
            if self.full() {
                return;
            }
            let matches = open || self.query.filter.passes(&line);
            if matches && !self.lines.is_empty() && self.bytes + line.len() > self.query.max_bytes {
                // Does not fit: the next page begins with it.
                self.bytes = self.query.max_bytes;
                return;
            }
            self.scanned += 1;
            self.scanned_bytes += line.len();
            self.next = Seq(seq);
            if matches {
                self.bytes += line.len();
                self.lines.push(line);
            }
        }
    }
}
