//! The recent past of a hot thread, and what a reader at a position has to do. No I/O.

use std::collections::VecDeque;

use taffrail_mcp_core::Seq;

use crate::Block;

/// Recent durable blocks of one thread: contiguous, bounded by bytes.
#[derive(Debug)]
pub(crate) struct Ring {
    blocks: VecDeque<Block>,
    bytes: usize,
    max_bytes: usize,
    head: Seq,
}

/// What a reader does next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Take these.
    Blocks(Vec<Block>),
    /// Ask the store for what is after the position, up to this head.
    Store(Seq),
    /// Nothing there yet.
    Wait,
    /// The position is past the end.
    Ahead(Seq),
}

impl Ring {
    pub(crate) fn new(head: Seq, max_bytes: usize) -> Self {
        Self { blocks: VecDeque::new(), bytes: 0, max_bytes, head }
    }

    /// The last durable record that this process knows of.
    pub(crate) fn head(&self) -> Seq {
        self.head
    }

    /// Takes in consecutive blocks that have become durable. The ring's last block ends at the head, always.
    pub(crate) fn push(&mut self, blocks: &[Block]) {
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else { return };
        if last.last() < self.head {
            // Another process wrote after them, and that was learned first: readers find them in the store.
            return;
        }
        if first.first != self.head.next() {
            // Another process wrote in between: readers find that in the store.
            self.blocks.clear();
            self.bytes = 0;
        }
        self.head = last.last();
        self.bytes += blocks.iter().map(|block| block.bytes.len()).sum::<usize>();
        self.blocks.extend(blocks.iter().cloned());
        while self.bytes > self.max_bytes
            && let Some(old) = self.blocks.pop_front()
        {
            self.bytes -= old.bytes.len();
        }
    }

    /// Learns that the thread goes further than this process has written.
    pub(crate) fn advance(&mut self, head: Seq) -> bool {
        let news = head > self.head;
        if news {
            self.blocks.clear();
            self.bytes = 0;
            self.head = head;
        }
        news
    }

    /// What a reader who has seen `after` does next, taking about `max_bytes` at most.
    pub(crate) fn step(&self, after: Seq, max_bytes: usize) -> Step {
        if after >= self.head {
            return if after > self.head { Step::Ahead(self.head) } else { Step::Wait };
        }
        if self.blocks.front().is_none_or(|oldest| oldest.first > after.next()) {
            return Step::Store(self.head);
        }
        let start = self.blocks.partition_point(|block| block.last() <= after);
        let mut taken = Vec::new();
        let mut bytes = 0;
        for block in self.blocks.range(start..) {
            if bytes >= max_bytes {
                break;
            }
            bytes += block.bytes.len();
            taken.extend(block.after(after));
        }
        Step::Blocks(taken)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use taffrail_mcp_core::{RunId, Timestamp};

    use super::*;

    fn block(first: u64, count: u64) -> Block {
        let bytes: String = (first..first + count).map(|n| format!("{n}\n")).collect();
        let run = RunId::new("r").unwrap();
        Block { run, first: Seq(first), count, ts: Timestamp::default(), bytes: Bytes::from(bytes) }
    }

    fn seen(step: Step) -> Vec<u64> {
        let Step::Blocks(blocks) = step else { panic!("{step:?}") };
        let lines = blocks.iter().flat_map(Block::lines).collect::<Vec<_>>();
        lines.iter().map(|l| std::str::from_utf8(l).unwrap().trim().parse().unwrap()).collect()
    }

    #[test]
    fn a_position_decides() {
        let mut ring = Ring::new(Seq(4), 1000);
        assert_eq!(ring.step(Seq(4), 100), Step::Wait);
        assert_eq!(ring.step(Seq(5), 100), Step::Ahead(Seq(4)));
        assert_eq!(ring.step(Seq(2), 100), Step::Store(Seq(4)));
        ring.push(&[block(5, 3), block(8, 1)]);
        assert_eq!(ring.step(Seq(3), 100), Step::Store(Seq(8)));
        assert_eq!(seen(ring.step(Seq(4), 100)), [5, 6, 7, 8]);
        assert_eq!(seen(ring.step(Seq(6), 100)), [7, 8]);
        assert_eq!(seen(ring.step(Seq(7), 100)), [8]);
        assert_eq!(seen(ring.step(Seq(4), 1)), [5, 6, 7], "at least one block");
    }

    /// Between the commit of a block and its way into the ring, a reader may learn of what another process wrote after.
    #[test]
    fn blocks_that_come_late_leave_no_hole() {
        let mut ring = Ring::new(Seq(9), 1000);
        ring.advance(Seq(11));
        ring.push(&[block(10, 1)]);
        assert_eq!(ring.step(Seq(9), 100), Step::Store(Seq(11)));
        assert_eq!(ring.step(Seq(10), 100), Step::Store(Seq(11)));
        ring.push(&[block(12, 1)]);
        assert_eq!(ring.step(Seq(9), 100), Step::Store(Seq(12)));
        assert_eq!(seen(ring.step(Seq(11), 100)), [12]);
        // Learned from the store, but written here: the ring has them.
        ring.advance(Seq(15));
        ring.push(&[block(13, 1), block(14, 2)]);
        assert_eq!(seen(ring.step(Seq(12), 100)), [13, 14, 15]);
    }

    #[test]
    fn the_ring_is_bounded_and_forgets_what_others_interleave() {
        let mut ring = Ring::new(Seq(0), 10);
        ring.push(&[block(1, 4), block(5, 4)]);
        assert_eq!(ring.step(Seq(0), 100), Step::Store(Seq(8)));
        assert_eq!(seen(ring.step(Seq(4), 100)), [5, 6, 7, 8]);
        assert!(ring.advance(Seq(10)));
        assert!(!ring.advance(Seq(9)));
        assert_eq!(ring.step(Seq(4), 100), Step::Store(Seq(10)));
        ring.push(&[block(11, 1)]);
        assert_eq!(ring.step(Seq(9), 100), Step::Store(Seq(11)));
        assert_eq!(seen(ring.step(Seq(10), 100)), [11]);
    }
}
