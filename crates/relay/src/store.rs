//! The seam to where logs are kept.

use std::time::Duration;

use bytes::Bytes;
use taffrail_mcp_core::{BoxFuture, RunFold, RunId, RunStatus, Seq, ThreadId, Timestamp};
use tokio::sync::watch;

use crate::StoreError;

/// A few consecutive records of one run in one thread: newline-ended JSON lines, exactly the wire bytes.
///
/// The unit of everything: stored as one row, appended to spool files as it is, framed once for all subscribers. A
/// clone shares the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The run that wrote all of it.
    pub run: RunId,
    /// Position of its first record.
    pub first: Seq,
    /// Records in it; at least 1.
    pub count: u64,
    /// Time of its last record.
    pub ts: Timestamp,
    /// The lines.
    pub bytes: Bytes,
}

impl Block {
    /// Position of its last record.
    pub const fn last(&self) -> Seq {
        Seq(self.first.0 + self.count.saturating_sub(1))
    }

    /// The part after `seq`; `None` when nothing is left. Costs a scan for line ends, no copy.
    #[must_use]
    pub fn after(&self, seq: Seq) -> Option<Block> {
        if seq < self.first {
            return Some(self.clone());
        }
        let skip = seq.0 - self.first.0 + 1;
        if skip >= self.count {
            return None;
        }
        let at = memchr::memchr_iter(b'\n', &self.bytes).nth(usize::try_from(skip - 1).ok()?)? + 1;
        Some(Block {
            first: Seq(self.first.0 + skip),
            count: self.count - skip,
            bytes: self.bytes.slice(at..),
            ..self.clone()
        })
    }

    /// Its lines, each with its newline.
    pub fn lines(&self) -> impl Iterator<Item = Bytes> + '_ {
        let mut start = 0;
        memchr::memchr_iter(b'\n', &self.bytes).map(move |end| {
            let line = self.bytes.slice(start..=end);
            start = end + 1;
            line
        })
    }
}

/// Names something that can be done once: an idempotency key, the resume of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Unique in the store: `checkpoint:<id>`, `start:<principal>:<key>`.
    pub key: String,
    /// Told to those who come later.
    pub value: String,
}

/// New blocks of one thread.
#[derive(Debug, Clone)]
pub struct Append {
    /// The log; made by its first append.
    pub thread: ThreadId,
    /// The head the blocks were numbered after. The first block's `first` is the next position.
    pub expected: Seq,
    /// Consecutive blocks.
    pub blocks: Vec<Block>,
    /// The runs whose state these blocks changed, as of their last record. Replaces what the index held.
    pub runs: Vec<RunFold>,
    /// Stored with the blocks, or neither is.
    pub claim: Option<Claim>,
}

/// What became of an [`Append`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appended {
    /// Durable.
    Stored,
    /// Another writer was faster; nothing of it was stored. Renumber after `head` and try again.
    Conflict {
        /// The thread's head now.
        head: Seq,
    },
    /// The claim is taken; nothing of it was stored.
    Claimed {
        /// The value of the claim that came first.
        value: String,
    },
}

/// How far a thread goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    /// First record that is kept; `head + 1` when none is.
    pub first: Seq,
    /// Last record ever written; 0 when there is none.
    pub head: Seq,
}

/// Which blocks to read.
#[derive(Debug, Clone)]
pub struct ReadBlocks {
    /// The log.
    pub thread: ThreadId,
    /// The first record wanted is the one after this.
    pub after: Seq,
    /// Nothing after this is wanted.
    pub until: Seq,
    /// Only blocks of this run.
    pub run: Option<RunId>,
    /// Stop once this many bytes of lines were read; at least one block comes back when there is one.
    pub max_bytes: usize,
    /// Read from the end: the last blocks up to `until` that fit, still in ascending order.
    pub backwards: bool,
}

/// Which window of a run to look at.
#[derive(Debug, Clone)]
pub struct ReadWindow {
    /// The run.
    pub run: RunId,
    /// As in [`ReadBlocks`].
    pub after: Seq,
    /// As in [`ReadBlocks`].
    pub max_bytes: usize,
}

impl ReadWindow {
    /// The blocks that it asks for, once the run's thread is known.
    pub fn of_thread(self, thread: ThreadId) -> ReadBlocks {
        let Self { run, after, max_bytes } = self;
        ReadBlocks { thread, after, until: Seq(u64::MAX), run: Some(run), max_bytes, backwards: false }
    }
}

/// What a store knows about a run and a window of its log.
#[derive(Debug, Clone)]
pub struct Window {
    /// As [`Store::run`] answers.
    pub fold: RunFold,
    /// As [`Store::extent`] answers for its thread, not before that.
    pub extent: Extent,
    /// As [`Store::read`] answers, not before that.
    pub blocks: Vec<Block>,
}

/// Which runs to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct ListRuns {
    /// Only these states; empty means all.
    pub status: Vec<RunStatus>,
    /// Only runs of this thread.
    pub thread: Option<ThreadId>,
    /// Only runs started before this one (a cursor: the last run of the page before).
    pub before: Option<RunId>,
    /// At most this many; 0 means 100.
    pub limit: usize,
}

/// What a trim removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trimmed {
    /// Records.
    pub records: u64,
    /// Bytes of their lines.
    pub bytes: u64,
}

/// Size of a thread in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadUsage {
    /// The log.
    pub thread: ThreadId,
    /// How far it goes.
    pub extent: Extent,
    /// Bytes of the lines that are kept.
    pub bytes: u64,
    /// Bytes of disk they take.
    pub stored_bytes: u64,
    /// Time of its last record.
    pub updated: Timestamp,
    /// What trims have removed so far.
    pub trimmed: Trimmed,
}

/// Keeps logs, and an index of runs that is never older or newer than the logs.
///
/// # What callers may assume
///
/// - An append that answered [`Appended::Stored`] survives a crash of the process and of the machine at any later
///   instant, whole. One whose future fails, or is dropped, is stored whole or not at all.
/// - Appends of one `append` call are applied together; those of two calls on one store in the order of the calls,
///   also when the second call is made before the first future has resolved. A conflict or a taken claim in one
///   thread does not keep another thread's blocks of the same call from being stored.
/// - A read that starts after an append was answered sees it. No read ever sees a part of an append.
/// - Several processes, and several values in one process, may use the same store at once.
///
/// # What implementors must guarantee
///
/// The above, and: a thread's positions stay dense whatever callers do (an append whose `expected` is not the head is a
/// conflict). Everything passes through unchanged. Methods may be called from any thread; futures may be dropped at
/// any time. `append` may use the calling thread for work that needs a processor (compression) before it returns its
/// future, which then only waits. Errors say what is wrong with which file or server; [`StoreError::is_transient`]
/// tells whether trying again may help.
pub trait Store: Send + Sync + 'static {
    /// Applies a group of appends; the answers are in the same order.
    fn append(&self, group: Vec<Append>) -> BoxFuture<'static, Result<Vec<Appended>, StoreError>>;

    /// Reads consecutive blocks in ascending order. The first may begin before `after.next()`, the last may end after
    /// `until`: the caller trims. Records that retention removed are left out.
    fn read(&self, query: ReadBlocks) -> BoxFuture<'static, Result<Vec<Block>, StoreError>>;

    /// How far a thread goes; all zero for one that does not exist.
    fn extent(&self, thread: ThreadId) -> BoxFuture<'static, Result<Extent, StoreError>>;

    /// How far each of several threads goes, in their order. A store that can answer for all in one round trip does.
    fn extents(&self, threads: Vec<ThreadId>) -> BoxFuture<'static, Result<Vec<Extent>, StoreError>> {
        let each: Vec<_> = threads.into_iter().map(|thread| self.extent(thread)).collect();
        Box::pin(async move {
            let mut extents = Vec::with_capacity(each.len());
            for extent in each {
                extents.push(extent.await?);
            }
            Ok(extents)
        })
    }

    /// A run's state as of the last append.
    fn run(&self, run: RunId) -> BoxFuture<'static, Result<Option<RunFold>, StoreError>>;

    /// A window of a run's log with all that a page tells, in one look: `None` for an unknown run. For stores where each
    /// question has its price; others leave it out, and are asked one by one.
    fn window(&self, query: ReadWindow) -> Option<BoxFuture<'static, Result<Option<Window>, StoreError>>> {
        let _ = query;
        None
    }

    /// Runs, newest first.
    fn runs(&self, query: ListRuns) -> BoxFuture<'static, Result<Vec<RunFold>, StoreError>>;

    /// The value of a claim.
    fn claim(&self, key: String) -> BoxFuture<'static, Result<Option<String>, StoreError>>;

    /// Sizes of all threads, the one that was quiet longest first.
    fn threads(&self) -> BoxFuture<'static, Result<Vec<ThreadUsage>, StoreError>>;

    /// Removes the records up to `through`, in whole blocks: a block with a later record stays. Numbers are never
    /// used again.
    fn trim(&self, thread: ThreadId, through: Seq) -> BoxFuture<'static, Result<Trimmed, StoreError>>;

    /// Removes a run from the index, with its claims. Its records stay until trimmed.
    fn forget(&self, run: RunId) -> BoxFuture<'static, Result<(), StoreError>>;

    /// A number that grows, at most `<dyn Store>::CHANGE_DELAY` late on one machine, after another process may have appended. It may
    /// grow for nothing; it must grow once after the watching of the store begins (with the first receiver, say), for
    /// what was appended meanwhile.
    fn changes(&self) -> watch::Receiver<u64>;
}

impl dyn Store {
    /// Longest time until a reader in another process learns of an append, on one machine.
    pub const CHANGE_DELAY: Duration = Duration::from_millis(50);
}
