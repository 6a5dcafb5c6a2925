//! A store that measures another one: the relay knows nothing of metrics.

use std::sync::Arc;

use prometheus_client::metrics::{counter::Counter, histogram::Histogram};
use taffrail_mcp_core::{BoxFuture, RunFold, RunId, Seq, ThreadId};
use taffrail_relay::{Append, Appended, Block, Extent, ListRuns, ReadBlocks, Store, StoreError, ThreadUsage, Trimmed};
use tokio::{sync::watch, time::Instant};

/// Upper bounds of commit times, in seconds: from a page cache to a disk in trouble.
const COMMIT_BOUNDS_S: [f64; 14] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// Counts what a store commits. A clone counts into the same.
#[derive(Debug, Clone)]
pub struct CommitMeter {
    pub(crate) events: Counter,
    pub(crate) blocks: Counter,
    pub(crate) bytes: Counter,
    pub(crate) conflicts: Counter,
    pub(crate) failures: Counter,
    pub(crate) seconds: Histogram,
}

impl Default for CommitMeter {
    fn default() -> Self {
        Self {
            events: Counter::default(),
            blocks: Counter::default(),
            bytes: Counter::default(),
            conflicts: Counter::default(),
            failures: Counter::default(),
            seconds: Histogram::new(COMMIT_BOUNDS_S),
        }
    }
}

/// A store that counts what it stores and how long that takes, and is otherwise the store below it.
///
/// ```
/// use std::sync::Arc;
/// use taffrail_relay::{MemoryStore, Relay};
/// use taffrail_transport::http::{CommitMeter, HttpConfig, MeasuredStore};
///
/// let commits = CommitMeter::default();
/// let store = MeasuredStore::new(Arc::new(MemoryStore::new()), commits.clone());
/// let relay = Relay::start(Arc::new(store), Default::default())?;
/// let config = HttpConfig { commits, ..HttpConfig::default() };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MeasuredStore {
    below: Arc<dyn Store>,
    meter: CommitMeter,
}

impl MeasuredStore {
    /// Measures `below` into `meter`.
    pub fn new(below: Arc<dyn Store>, meter: CommitMeter) -> Self {
        Self { below, meter }
    }
}

/// What one append stores, if it is stored.
struct Size {
    blocks: u64,
    events: u64,
    bytes: u64,
}

impl Size {
    fn of(append: &Append) -> Self {
        let blocks = &append.blocks;
        Self {
            blocks: blocks.len() as u64,
            events: blocks.iter().map(|block| block.count).sum(),
            bytes: blocks.iter().map(|block| block.bytes.len() as u64).sum(),
        }
    }
}

impl Store for MeasuredStore {
    fn append(&self, group: Vec<Append>) -> BoxFuture<'static, Result<Vec<Appended>, StoreError>> {
        let started = Instant::now();
        let sizes: Vec<Size> = group.iter().map(Size::of).collect();
        let appending = self.below.append(group);
        let meter = self.meter.clone();
        Box::pin(async move {
            let done = appending.await;
            meter.seconds.observe(started.elapsed().as_secs_f64());
            match &done {
                Ok(answers) => {
                    for (answer, size) in answers.iter().zip(&sizes) {
                        match answer {
                            Appended::Stored => {
                                meter.blocks.inc_by(size.blocks);
                                meter.events.inc_by(size.events);
                                meter.bytes.inc_by(size.bytes);
                            }
                            Appended::Conflict { .. } => _ = meter.conflicts.inc(),
                            Appended::Claimed { .. } => {}
                        }
                    }
                }
                Err(_) => _ = meter.failures.inc(),
            }
            done
        })
    }

    fn read(&self, query: ReadBlocks) -> BoxFuture<'static, Result<Vec<Block>, StoreError>> {
        self.below.read(query)
    }

    fn extent(&self, thread: ThreadId) -> BoxFuture<'static, Result<Extent, StoreError>> {
        self.below.extent(thread)
    }

    fn extents(&self, threads: Vec<ThreadId>) -> BoxFuture<'static, Result<Vec<Extent>, StoreError>> {
        self.below.extents(threads)
    }

    fn run(&self, run: RunId) -> BoxFuture<'static, Result<Option<RunFold>, StoreError>> {
        self.below.run(run)
    }

    fn runs(&self, query: ListRuns) -> BoxFuture<'static, Result<Vec<RunFold>, StoreError>> {
        self.below.runs(query)
    }

    fn claim(&self, key: String) -> BoxFuture<'static, Result<Option<String>, StoreError>> {
        self.below.claim(key)
    }

    fn threads(&self) -> BoxFuture<'static, Result<Vec<ThreadUsage>, StoreError>> {
        self.below.threads()
    }

    fn trim(&self, thread: ThreadId, through: Seq) -> BoxFuture<'static, Result<Trimmed, StoreError>> {
        self.below.trim(thread, through)
    }

    fn forget(&self, run: RunId) -> BoxFuture<'static, Result<(), StoreError>> {
        self.below.forget(run)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.below.changes()
    }
}
