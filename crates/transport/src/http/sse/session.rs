//! One stream: what becomes of what its follower delivers. No I/O, no clock.

use bytes::Bytes;
use taffrail_mcp_core::{Seq, ThreadId};
use taffrail_relay::{Block, Delivery, Filter};

use super::{cache::FrameCache, frame};

/// Blocks are framed together up to this size: each frame that is handed out by itself costs a part of a write.
const TOGETHER_BYTES: usize = 32 * 1024;

/// So many records that a filter leaves out are not told; then the client's cursor is moved past them, so that it does
/// not have us look through them again when it comes back.
const UNTOLD: u64 = 4096;

/// The state of a stream.
#[derive(Debug)]
pub(super) struct Session {
    thread: ThreadId,
    filter: Option<Filter>,
    /// The last id that the client was given, or came with.
    told: Seq,
    /// A record at this position says that the run came to rest, and nobody has looked yet whether it is over.
    rest: Option<Seq>,
}

impl Session {
    /// A stream of a thread from a position on.
    pub(super) fn new(thread: ThreadId, filter: Option<Filter>, after: Seq) -> Self {
        Self { thread, filter, told: after, rest: None }
    }

    /// Adds the frames of a delivery.
    pub(super) fn deliver(&mut self, delivery: &Delivery, cache: &FrameCache, out: &mut impl FnMut(Bytes)) {
        match delivery {
            Delivery::Gap(gap) => {
                self.told = gap.to;
                // The record that says so may be among those that are gone.
                self.rest = Some(gap.to);
                out(frame::gap(gap));
            }
            Delivery::Blocks(blocks) if self.filter.is_none() => self.all(blocks, cache, out),
            Delivery::Blocks(blocks) => self.some(blocks, out),
        }
    }

    fn all(&mut self, mut blocks: &[Block], cache: &FrameCache, out: &mut impl FnMut(Bytes)) {
        while !blocks.is_empty() {
            // Whoever is at the same position gets the same blocks, and so the same bytes.
            let (together, later) = blocks.split_at(together(blocks));
            let framed = cache.framed(&self.thread, together);
            self.rest = framed.rest.or(self.rest);
            self.told = together.last().map_or(self.told, Block::last);
            out(framed.bytes);
            blocks = later;
        }
    }

    fn some(&mut self, blocks: &[Block], out: &mut impl FnMut(Bytes)) {
        let Some(filter) = &self.filter else { return };
        let mut frames = Vec::new();
        for block in blocks {
            self.rest = frame::rest(block).or(self.rest);
            if let Some(last) = frame::filtered(block, filter, &mut frames) {
                self.told = last;
            }
        }
        if !frames.is_empty() {
            out(frames.into());
        }
        let last = blocks.last().map_or(self.told, Block::last);
        if last.0.saturating_sub(self.told.0) >= UNTOLD {
            self.told = last;
            out(frame::passed(last));
        }
    }

    /// What is sent after a silence, when the follower has come to `position`.
    pub(super) fn silence(&mut self, position: Seq) -> Bytes {
        if position <= self.told {
            return frame::ALIVE;
        }
        self.told = position;
        frame::passed(position)
    }

    /// The run was over when the stream began. The record that says so may be before what is sent.
    pub(super) fn begins_over(&mut self) {
        self.rest = Some(self.told);
    }

    /// A record says that the run came to rest: whether it is over has to be asked.
    pub(super) fn rests(&self) -> bool {
        self.rest.is_some()
    }

    /// The run goes on.
    pub(super) fn goes_on(&mut self) {
        self.rest = None;
    }
}

/// How many of these blocks are framed together; at least one.
fn together(blocks: &[Block]) -> usize {
    let mut size = 0;
    let fits = |block: &&Block| {
        size += block.bytes.len();
        size <= TOGETHER_BYTES
    };
    blocks.iter().take_while(fits).count().max(1)
}

#[cfg(test)]
mod tests;
