//! Many who wait for one run.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use taffrail_mcp_core::{BoxFuture, EventSink, Note, RunFold, RunId, RunStatus, Seq, ThreadId};
use taffrail_relay::{
    Append, Appended, Block, Extent, ListRuns, MemoryStore, ReadBlocks, Store, StoreError, ThreadUsage, Trimmed,
};
use taffrail_runs::{Cancel, RunsError, Start, Until, Work};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time::Instant,
};

use crate::ground::{Ground, SOON, begin};

/// Counts how often it is asked for a run, and may hold one answer back.
#[derive(Clone, Default)]
struct Counting {
    inner: MemoryStore,
    asked: Arc<AtomicU64>,
    hold: Arc<Hold>,
}

#[derive(Default)]
struct Hold {
    next: AtomicBool,
    held: Notify,
    go: Notify,
}

impl Store for Counting {
    fn append(&self, group: Vec<Append>) -> BoxFuture<'static, Result<Vec<Appended>, StoreError>> {
        self.inner.append(group)
    }
    fn read(&self, query: ReadBlocks) -> BoxFuture<'static, Result<Vec<Block>, StoreError>> {
        self.inner.read(query)
    }
    fn extent(&self, thread: ThreadId) -> BoxFuture<'static, Result<Extent, StoreError>> {
        self.inner.extent(thread)
    }
    fn run(&self, run: RunId) -> BoxFuture<'static, Result<Option<RunFold>, StoreError>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let (answer, hold) = (self.inner.run(run), Arc::clone(&self.hold));
        Box::pin(async move {
            let answer = answer.await;
            if hold.next.swap(false, Ordering::SeqCst) {
                hold.held.notify_one();
                hold.go.notified().await;
            }
            answer
        })
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

/// A thousand waits ask as often as one, and each gets what it waits for.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_waits_share_their_looks() {
    let ground = Ground::memory(&[]);
    let store = Counting::default();
    let service = ground.service_on(Arc::new(store.clone()));
    let started = service.start(Start::new(Work::External { name: "x".into() })).await.unwrap();
    let run = started.run;
    let mut waits = JoinSet::new();
    for n in 0..1000 {
        let (service, run) = (service.clone(), run.clone());
        let until = match n % 4 {
            0 => Until::Ended,
            1 => Until::Settled,
            2 => Until::ChangedAfter(Seq(1)),
            _ => Until::RecordAfter(Seq(101)),
        };
        waits.spawn(async move { (until, service.wait(&run, until).await.unwrap()) });
    }
    while store.asked.load(Ordering::Relaxed) < 1000 {
        tokio::task::yield_now().await;
    }
    // All wait now, each having looked for itself once.
    let from = Instant::now();
    let before = store.asked.load(Ordering::Relaxed);
    let publisher = service.relay().publisher(&started.thread, &run).await.unwrap();
    for n in 0..100 {
        publisher.emit(Note::info(format!("{n}")).into());
        publisher.flush().await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let asked = store.asked.load(Ordering::Relaxed) - before;
    let most = 200 + from.elapsed().as_millis() as u64 / 10;
    assert!(asked < most, "{asked} looks, {most} at most");
    assert_eq!(service.gauges().waited_for, 1);
    service.relay().commit(&started.thread, &run, &[Note::info("one more").into()], None).await.unwrap();
    let end = crate::external::finished(RunStatus::Done);
    service.relay().commit(&started.thread, &run, &[end], None).await.unwrap();
    let all = async {
        while let Some(waited) = waits.join_next().await {
            let (until, fold) = waited.unwrap();
            match until {
                Until::RecordAfter(seq) => assert!(fold.last > seq),
                _ => assert_eq!(fold.status, RunStatus::Done),
            }
        }
    };
    tokio::time::timeout(SOON, all).await.unwrap();
    let nobody = async {
        while service.gauges().waited_for > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, nobody).await.expect("who looks ends with those who wait");
}

/// Else who waits for what comes after `head` would wait for what has happened.
#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_knows_all_up_to_its_head() {
    let ground = Ground::memory(&[]);
    let store = Counting::default();
    let service = ground.service_on(Arc::new(store.clone()));
    let started = service.start(Start::new(Work::External { name: "x".into() })).await.unwrap();
    store.hold.next.store(true, Ordering::SeqCst);
    let looking = tokio::spawn({
        let (service, run) = (service.clone(), started.run.clone());
        async move { service.snapshot(&run).await.unwrap() }
    });
    store.hold.held.notified().await;
    let end = crate::external::finished(RunStatus::Done);
    let end = service.relay().commit(&started.thread, &started.run, &[end], None).await.unwrap().last;
    store.hold.go.notify_one();
    let snapshot = tokio::time::timeout(SOON, looking).await.unwrap().unwrap();
    assert_eq!((snapshot.head, snapshot.status), (end, RunStatus::Done));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_removed_meanwhile_ends_the_waits_for_it() {
    let ground = Ground::memory(&[]);
    let service = ground.service();
    let run = service.start(Start::new(Work::External { name: "x".into() })).await.unwrap().run;
    let mut waits = JoinSet::new();
    for _ in 0..10 {
        let (service, run) = (service.clone(), run.clone());
        waits.spawn(async move { service.wait(&run, Until::Ended).await });
    }
    tokio::task::yield_now().await;
    service.relay().store().forget(run).await.unwrap();
    let all = tokio::time::timeout(SOON, waits.join_all()).await.unwrap();
    assert!(all.iter().all(|waited| matches!(waited, Err(RunsError::NoRun { .. }))), "{all:?}");
}

/// Who hosts a run listens for requests to end it, which are in its own log.
#[tokio::test(flavor = "multi_thread")]
async fn what_happens_to_others_costs_a_hosted_run_nothing() {
    let ground = Ground::memory(&["playbook: nap\nstates:\n  nap: { run: sleep 600 }\n"]);
    let store = Counting::default();
    let service = ground.service_on(Arc::new(store.clone()));
    let other = ground.service_on(Arc::new(store.inner.clone()));
    let run = begin(&service, "nap").await;
    while other.fold(&run).await.unwrap().state.is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let before = store.asked.load(Ordering::Relaxed);
    for n in 0..100 {
        let run = RunId::new(format!("r{n}")).unwrap();
        other.relay().commit(&run.clone().into(), &run, &[Note::info("x").into()], None).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let asked = store.asked.load(Ordering::Relaxed) - before;
    assert!(asked <= 3, "{asked} looks at a run that nothing happened to");
    let cancel = Cancel { run, reason: None, actor: "me".into(), kill: false };
    let ended = tokio::time::timeout(SOON, other.cancel(cancel)).await.unwrap().unwrap();
    assert_eq!(ended.status, RunStatus::Cancelled, "and yet it hears");
}
