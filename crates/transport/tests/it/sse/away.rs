//! A store that cannot be read for a while.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use taffrail_mcp_core::{BoxFuture, RunFold, RunId, Seq, ThreadId};
use taffrail_relay::{
    Append, Appended, Block, Extent, ListRuns, MemoryStore, ReadBlocks, Store, StoreError, ThreadUsage, Trimmed,
};
use taffrail_transport::http::HttpConfig;
use tokio::sync::watch;

use super::{Events, Sent};
use crate::web::{Web, config, finished, lines};

/// A store that is away when it is told to be.
#[derive(Default)]
struct Away {
    below: Arc<MemoryStore>,
    blocks_away: AtomicBool,
    runs_away: AtomicBool,
}

fn away<T: Send + 'static>(
    away: &AtomicBool,
    answer: BoxFuture<'static, Result<T, StoreError>>,
) -> BoxFuture<'static, Result<T, StoreError>> {
    if !away.load(Ordering::SeqCst) {
        return answer;
    }
    let source = Arc::new(std::io::Error::other("gone fishing"));
    Box::pin(async { Err(StoreError::Unavailable { what: "the store is away".into(), source }) })
}

impl Store for Away {
    fn append(&self, group: Vec<Append>) -> BoxFuture<'static, Result<Vec<Appended>, StoreError>> {
        self.below.append(group)
    }
    fn read(&self, query: ReadBlocks) -> BoxFuture<'static, Result<Vec<Block>, StoreError>> {
        away(&self.blocks_away, self.below.read(query))
    }
    fn extent(&self, thread: ThreadId) -> BoxFuture<'static, Result<Extent, StoreError>> {
        self.below.extent(thread)
    }
    fn run(&self, run: RunId) -> BoxFuture<'static, Result<Option<RunFold>, StoreError>> {
        away(&self.runs_away, self.below.run(run))
    }
    fn runs(&self, query: ListRuns) -> BoxFuture<'static, Result<Vec<RunFold>, StoreError>> {
        away(&self.runs_away, self.below.runs(query))
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

fn alive() -> Sent {
    Sent { comment: Some("alive".into()), ..Sent::default() }
}

/// The next thing that is not a sign of life.
async fn next(events: &mut Events) -> Sent {
    loop {
        match events.next().await.unwrap() {
            sent if sent == alive() => {}
            sent => return sent,
        }
    }
}

#[tokio::test]
async fn shows_as_silence_and_then_everything_comes() {
    let store = Arc::new(Away::default());
    // Another process, whose view of the store stays.
    let writer = Web::on(Arc::clone(&store.below) as Arc<dyn Store>, config());
    let run = writer.external("t").await;
    writer.events(&run, lines(0..3)).await;
    let web =
        Web::on(Arc::clone(&store) as Arc<dyn Store>, HttpConfig { keep_alive: Duration::from_millis(20), ..config() });
    store.blocks_away.store(true, Ordering::SeqCst);
    let mut events = Events::open(&web, &format!("/api/v1/runs/{run}/stream"), None).await;
    for _ in 0..3 {
        assert_eq!(events.next().await.unwrap(), alive());
    }
    store.blocks_away.store(false, Ordering::SeqCst);
    for seq in 1..=4 {
        assert_eq!(next(&mut events).await.id, Some(seq));
    }
    // The end is not missed either.
    store.runs_away.store(true, Ordering::SeqCst);
    writer.events(&run, finished("done")).await;
    assert_eq!(next(&mut events).await.json()["type"], "run-finished");
    assert_eq!(events.next().await.unwrap(), alive());
    store.runs_away.store(false, Ordering::SeqCst);
    let end = next(&mut events).await;
    assert_eq!((end.event.as_deref(), end.id), (Some("end"), Some(5)));
    assert_eq!(events.next().await, None);
}
