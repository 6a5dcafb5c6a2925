//! Blocks are framed once, for all who read them.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use taffrail_mcp_core::{Seq, ThreadId};
use taffrail_relay::Block;

use super::frame::{self, Framed};

/// Most bytes of frames that are kept. A hundred readers who catch up together are seldom further apart, and those who
/// follow live are a few blocks apart at most; framing again costs a millisecond a megabyte.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// What the bookkeeping of an entry counts for, so that blocks of one record are bounded too.
const ENTRY_BYTES: usize = 256;

/// Frames of recent blocks.
#[derive(Debug)]
pub(crate) struct FrameCache {
    state: Mutex<State>,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct State {
    frames: HashMap<Key, Framed>,
    /// In the order of their coming.
    order: VecDeque<Key>,
    bytes: usize,
}

/// Which records of which log these are. Records never change, so this is what they are, wherever they were read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    first: Seq,
    count: u64,
    thread: ThreadId,
}

impl Default for FrameCache {
    fn default() -> Self {
        Self::new(MAX_BYTES)
    }
}

impl FrameCache {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { state: Mutex::default(), max_bytes }
    }

    /// Whole at any time, so a panic elsewhere does not spoil it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The frames of consecutive blocks of a thread, put together; `blocks` is not empty.
    pub(crate) fn framed(&self, thread: &ThreadId, blocks: &[Block]) -> Framed {
        let first = blocks.first().map_or(Seq::START, |block| block.first);
        let count = blocks.iter().map(|block| block.count).sum();
        let key = Key { first, count, thread: thread.clone() };
        if let Some(framed) = self.state().frames.get(&key) {
            return framed.clone();
        }
        // Not under the lock: two may frame the same block at the same time, and nobody waits for another's.
        let framed = frame::blocks(blocks);
        let size = framed.bytes.len() + ENTRY_BYTES;
        if size <= self.max_bytes {
            let mut state = self.state();
            if state.frames.insert(key.clone(), framed.clone()).is_none() {
                state.order.push_back(key);
                state.bytes += size;
            }
            while state.bytes > self.max_bytes
                && let Some(oldest) = state.order.pop_front()
            {
                let gone = state.frames.remove(&oldest).map_or(0, |framed| framed.bytes.len() + ENTRY_BYTES);
                state.bytes = state.bytes.saturating_sub(gone);
            }
        }
        framed
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use taffrail_mcp_core::{RunId, Timestamp};

    use super::*;

    fn block(first: u64, size: usize) -> Block {
        let bytes = Bytes::from([&*vec![b'x'; size], b"\n"].concat());
        Block { run: RunId::new("r").unwrap(), first: Seq(first), count: 1, ts: Timestamp::default(), bytes }
    }

    #[test]
    fn frames_are_shared_also_by_who_read_the_block_elsewhere() {
        let cache = FrameCache::default();
        let (one, two) = (ThreadId::new("one").unwrap(), ThreadId::new("two").unwrap());
        let first = cache.framed(&one, &[block(7, 10)]);
        let again = cache.framed(&one, &[block(7, 10)]);
        assert_eq!(first.bytes.as_ptr(), again.bytes.as_ptr());
        assert_ne!(first.bytes.as_ptr(), cache.framed(&two, &[block(7, 10)]).bytes.as_ptr());
    }

    #[test]
    fn it_is_bounded_and_forgets_the_oldest() {
        let cache = FrameCache::new(10_000);
        let thread = ThreadId::new("t").unwrap();
        let first = cache.framed(&thread, &[block(1, 1000)]);
        for seq in 2..100 {
            cache.framed(&thread, &[block(seq, 1000)]);
            let state = cache.state();
            assert!(state.bytes <= 10_000 && state.frames.len() == state.order.len() && state.frames.len() <= 8);
        }
        assert_ne!(first.bytes.as_ptr(), cache.framed(&thread, &[block(1, 1000)]).bytes.as_ptr());
        // One that is larger than all is handed out and not kept.
        let before = cache.state().frames.len();
        assert!(cache.framed(&thread, &[block(100, 20_000)]).bytes.len() > 20_000);
        assert_eq!(cache.state().frames.len(), before);
    }
}
