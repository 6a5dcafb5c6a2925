//! Readers of a log: a position, not a queue.

use std::sync::Arc;

use taffrail_mcp_core::{Gap, RunId, Seq, ThreadId};
use tokio::sync::watch;

use crate::{Block, ReadBlocks, RelayError, Store, hot::Hot, ring::Step};

/// Most that one delivery takes, in bytes: what a follower holds between two calls.
const DELIVERY_BYTES: usize = 1024 * 1024;

/// What a follower gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// Consecutive blocks right after the position.
    Blocks(Vec<Block>),
    /// Records that can no longer be had; what follows begins after them.
    Gap(Gap),
}

/// Reads a thread from a position on, for ever.
///
/// Up to 50 followers of a thread hear of each commit at once. More do too, unless they were woken just before and cannot
/// have sent what was there then; in a flood all of them are woken together, after 100 ms at most.
///
/// It holds nothing between calls: a follower that is not asked costs the writer nothing, and catches up from the
/// store. `next` may be dropped at any time without losing anything.
#[derive(Debug)]
pub struct Follower {
    hot: Arc<Hot>,
    store: ArcStore,
    after: Seq,
    run: Option<RunId>,
    grown: watch::Receiver<()>,
    /// About what one delivery takes.
    delivery_bytes: usize,
}

/// A store that can stand in a `Debug` type.
#[derive(Clone)]
pub(crate) struct ArcStore(pub(crate) Arc<dyn Store>);

impl std::fmt::Debug for ArcStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store")
    }
}

impl Follower {
    pub(crate) fn new(hot: Arc<Hot>, store: ArcStore, after: Seq, run: Option<RunId>) -> Self {
        let grown = hot.readers.watch();
        Self { hot, store, after, run, grown, delivery_bytes: DELIVERY_BYTES }
    }

    /// Goes to a position.
    pub(crate) fn begin_after(&mut self, after: Seq) {
        self.after = after;
    }

    /// The thread it reads.
    pub fn thread(&self) -> &ThreadId {
        &self.hot.thread
    }

    /// Makes deliveries smaller: whole blocks, until they have this many bytes, at most 1 MiB (the default).
    pub fn take_about(&mut self, bytes: usize) {
        self.delivery_bytes = bytes.clamp(1, DELIVERY_BYTES);
    }

    /// The last record it has passed.
    pub fn position(&self) -> Seq {
        self.after
    }

    /// The last record that is known to be there.
    pub fn head(&self) -> Seq {
        self.hot.head()
    }

    /// Waits for what comes after the position, and moves on past it. With a run given, only that run's blocks come
    /// back, and the position passes the others.
    ///
    /// # Errors
    ///
    /// [`RelayError::Store`] when the store cannot be read: the position stays, call again.
    /// [`RelayError::CursorAhead`] when the position is past the end, and [`RelayError::Closed`] when the relay has ended and
    /// everything that it stored has been given.
    pub async fn next(&mut self) -> Result<Delivery, RelayError> {
        loop {
            if let Some(delivery) = self.try_next().await? {
                return Ok(delivery);
            }
            self.wait().await?;
        }
    }

    /// What is there after the position, without waiting for more: `None` when the position is at the head.
    ///
    /// # Errors
    ///
    /// As [`Follower::next`].
    pub async fn try_next(&mut self) -> Result<Option<Delivery>, RelayError> {
        loop {
            self.grown.borrow_and_update();
            match self.hot.step(self.after, self.delivery_bytes) {
                Step::Wait => return Ok(None),
                Step::Ahead(head) => {
                    let thread = self.hot.thread.clone();
                    return Err(RelayError::CursorAhead { thread, after: self.after, head });
                }
                Step::Blocks(mut blocks) => {
                    if let Some(last) = blocks.last() {
                        self.after = last.last();
                    }
                    if let Some(run) = &self.run {
                        blocks.retain(|block| block.run == *run);
                    }
                    if !blocks.is_empty() {
                        return Ok(Some(Delivery::Blocks(blocks)));
                    }
                }
                Step::Store(head) => {
                    if let Some(delivery) = self.read_store(head).await? {
                        return Ok(Some(delivery));
                    }
                }
            }
        }
    }

    async fn read_store(&mut self, head: Seq) -> Result<Option<Delivery>, RelayError> {
        let thread = self.hot.thread.clone();
        let store = &self.store.0;
        let query = ReadBlocks {
            thread: thread.clone(),
            after: self.after,
            until: head,
            run: self.run.clone(),
            max_bytes: self.delivery_bytes,
            backwards: false,
        };
        let blocks = store.read(query).await?;
        let first = blocks.first().map(|block| block.first);
        if first != Some(self.after.next()) && first.is_none_or(|first| first > self.after.next()) {
            // A hole: other runs' blocks that were not asked for, or what retention removed.
            let extent = store.extent(thread.clone()).await?;
            if let Some(gap) = Gap::retention(thread, self.after, extent.first) {
                self.after = gap.to;
                return Ok(Some(Delivery::Gap(gap)));
            }
        }
        let blocks: Vec<Block> = blocks.iter().filter_map(|block| block.after(self.after)).collect();
        match blocks.last() {
            Some(last) => self.after = last.last(),
            // None of this run's up to the head.
            None => self.after = head,
        }
        Ok((!blocks.is_empty()).then_some(Delivery::Blocks(blocks)))
    }

    /// Waits until the thread has grown, here or in another process.
    ///
    /// # Errors
    ///
    /// [`RelayError::Closed`] when the relay has ended and the position is at the last record that it stored.
    pub async fn wait(&mut self) -> Result<(), RelayError> {
        // After the end nothing changes; a change in between the two is seen by `changed`.
        if !self.hot.readers.are_closed() {
            self.grown.changed().await.map_err(|_| RelayError::Closed)?;
        }
        if self.hot.readers.are_closed() && self.hot.head() <= self.after { Err(RelayError::Closed) } else { Ok(()) }
    }
}
