//! Stores that fail, stall or are slow.

use std::{
    collections::BTreeSet,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use taffrail_mcp_core::{BoxFuture, EventBatch, EventSink, RunFold, RunId, Seq, Start, ThreadId};
use taffrail_relay::{
    Append, Appended, Block, Extent, ListRuns, MemoryStore, ReadBlocks, RelayError, Store, StoreError, ThreadUsage,
    Trimmed,
};
use tokio::sync::{Semaphore, watch};

use crate::support::{assert_dense, memory, message, note, read, relay, run, text, thread, whole};

/// A memory store whose appends wait for a permit, or fail.
#[derive(Clone)]
struct Moody {
    inner: MemoryStore,
    permits: Arc<Semaphore>,
    failures: Arc<AtomicU32>,
    broken: Arc<AtomicBool>,
}

impl Moody {
    fn new(permits: usize) -> Self {
        let permits = Arc::new(Semaphore::new(permits));
        Self { inner: MemoryStore::new(), permits, failures: Arc::default(), broken: Arc::default() }
    }
}

impl Store for Moody {
    fn append(&self, group: Vec<Append>) -> BoxFuture<'static, Result<Vec<Appended>, StoreError>> {
        let this = self.clone();
        Box::pin(async move {
            this.permits.acquire().await.unwrap().forget();
            if this.broken.load(Ordering::Relaxed) {
                return Err(StoreError::Corrupt { path: "db".into(), detail: "test".into() });
            }
            if this.failures.load(Ordering::Relaxed) > 0 {
                this.failures.fetch_sub(1, Ordering::Relaxed);
                this.permits.add_permits(1);
                let source = Arc::new(io::Error::other("test"));
                return Err(StoreError::Unavailable { what: "appending".into(), source });
            }
            this.inner.append(group).await
        })
    }
    fn read(&self, query: ReadBlocks) -> BoxFuture<'static, Result<Vec<Block>, StoreError>> {
        self.inner.read(query)
    }
    fn extent(&self, thread: ThreadId) -> BoxFuture<'static, Result<Extent, StoreError>> {
        self.inner.extent(thread)
    }
    fn run(&self, run: RunId) -> BoxFuture<'static, Result<Option<RunFold>, StoreError>> {
        self.inner.run(run)
    }
    fn runs(&self, query: ListRuns) -> BoxFuture<'static, Result<Vec<RunFold>, StoreError>> {
        self.inner.runs(query)
    }
    fn claim(&self, key: String) -> BoxFuture<'static, Result<Option<String>, StoreError>> {
        self.inner.claim(key)
    }
    fn threads(&self) -> BoxFuture<'static, Result<Vec<ThreadUsage>, StoreError>> {
        self.inner.threads()
    }
    fn trim(&self, thread: ThreadId, through: Seq) -> BoxFuture<'static, Result<Trimmed, StoreError>> {
        self.inner.trim(thread, through)
    }
    fn forget(&self, run: RunId) -> BoxFuture<'static, Result<(), StoreError>> {
        self.inner.forget(run)
    }
    fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes()
    }
}

#[tokio::test]
async fn no_reader_sees_an_event_before_it_is_stored() {
    let store = Moody::new(0);
    let relay = relay(store.clone());
    let publisher = relay.publisher(&thread(), &run("r")).await.unwrap();
    let mut follower = relay.follow(&thread(), None, Start::Beginning).await.unwrap();
    publisher.emit(note("x"));
    let mark = publisher.mark();
    assert!(tokio::time::timeout(Duration::from_millis(100), follower.next()).await.is_err());
    assert!(tokio::time::timeout(Duration::from_millis(100), publisher.durable(mark)).await.is_err());
    store.permits.add_permits(1);
    assert_eq!(text(&read(&mut follower, 1).await[0]), "x");
    publisher.durable(mark).await.unwrap();
}

#[tokio::test]
async fn a_failure_that_passes_loses_nothing_and_is_told() {
    let store = Moody::new(1000);
    store.failures.store(3, Ordering::Relaxed);
    let relay = relay(store.clone());
    let publisher = relay.publisher(&thread(), &run("r")).await.unwrap();
    let mut health = relay.health();
    publisher.emit(note("a"));
    publisher.emit(note("b"));
    health.wait_for(|health| health.is_some()).await.unwrap();
    let records = whole(&relay, 3).await;
    assert_dense(&records, Seq::START);
    assert_eq!(text(&records[0]), "a");
    // The remark comes behind the group that was tried, which the second note may have missed.
    let rest: BTreeSet<_> = records[1..].iter().map(|record| text(record).to_owned()).collect();
    let told = "store-retry: the store failed and took this after 4 attempts";
    assert_eq!(rest, BTreeSet::from(["b".to_owned(), told.to_owned()]));
    assert!(health.borrow().is_none());
}

#[tokio::test]
async fn a_store_that_is_broken_for_good_says_so_and_holds_nobody_up() {
    let store = Moody::new(1000);
    store.broken.store(true, Ordering::Relaxed);
    let relay = relay(store);
    let publisher = relay.publisher(&thread(), &run("r")).await.unwrap();
    publisher.emit(note("a"));
    let error = publisher.flush().await.unwrap_err();
    assert!(matches!(error, RelayError::Store(StoreError::Corrupt { .. })), "{error}");
    let mut batch = EventBatch::new();
    for _ in 0..100 {
        batch.push(message("x".repeat(100_000)));
        publisher.send(&mut batch).await;
    }
}

#[tokio::test]
async fn a_stuck_store_holds_output_back_and_lets_events_in() {
    let store = Moody::new(0);
    let relay = relay(store.clone());
    let publisher = relay.publisher(&thread(), &run("r")).await.unwrap();
    let sender = publisher.clone();
    let (sent, mut counter) = watch::channel(0);
    let task = tokio::spawn(async move {
        let mut batch = EventBatch::new();
        for _ in 0..100 {
            batch.push(message("x".repeat(100_000)));
            sender.send(&mut batch).await;
            sent.send_modify(|n| *n += 1);
        }
    });
    // 4 MiB are let in, the rest waits.
    counter.wait_for(|n| *n == 41).await.unwrap();
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(*counter.borrow(), 41);
    publisher.emit(note("at once"));
    store.permits.add_permits(1000);
    task.await.unwrap();
    publisher.flush().await.unwrap();
    let records = whole(&relay, 101).await;
    assert_dense(&records, Seq::START);
    assert!(records.iter().any(|record| text(record) == "at once"));
}

#[tokio::test]
async fn a_refused_batch_leaves_nothing_behind() {
    let store = Moody::new(0);
    let relay = relay(store.clone());
    let publisher = relay.publisher(&thread(), &run("r")).await.unwrap();
    let mut batch = EventBatch::new();
    batch.push(message("x".repeat(4_000_000)));
    publisher.send(&mut batch).await;
    let mut dropped = EventBatch::new();
    dropped.push(message("y".repeat(1_000_000)));
    assert!(tokio::time::timeout(Duration::from_millis(50), publisher.send(&mut dropped)).await.is_err());
    assert_eq!(dropped.len(), 1, "the batch is still the caller's");
    store.permits.add_permits(1000);
    publisher.emit(note("after"));
    publisher.flush().await.unwrap();
    let records = whole(&relay, 2).await;
    assert_eq!((records.len(), text(&records[1])), (2, "after".to_owned()));
}

#[tokio::test]
async fn a_cursor_past_the_end_is_refused() {
    let relay = memory();
    let error = relay.follow(&thread(), None, Start::After(Seq(3))).await.unwrap_err();
    assert_eq!(error.to_string(), "cursor 3 is past the end of thread t, whose last record is 0");
}
