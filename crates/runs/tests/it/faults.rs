//! What stands around a run fails, and the run does not.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use taffrail_mcp_core::{
    BoxFuture, EventBatch, EventSink, LogLine, Note, RunFold, RunId, RunStart, RunStatus, Seq, Stream, ThreadId,
};
use taffrail_relay::{
    Append, Appended, Block, Config, Extent, ListRuns, ReadBlocks, Relay, Store, StoreError, ThreadUsage, Trimmed,
};
use taffrail_runs::{Cancel, RunsError, Start, Started, Until, Work};
use tokio::sync::watch;

use crate::ground::{Ground, SOON, begin, check, output, records, wait};

const LOUD: &str = "playbook: loud
states:
  talk: { run: 'touch up; while [ ! -e go ]; do sleep 0.01; done; seq 1 5000' }
  more: { run: seq 5001 6000 }
";

/// A store of which the next so many calls fail.
#[derive(Clone)]
struct Failing {
    inner: Arc<dyn Store>,
    failures: Arc<AtomicU32>,
    /// No append is taken.
    full: Arc<AtomicBool>,
    /// No append is answered.
    hangs: Arc<AtomicBool>,
    /// Appends that wait for that to end.
    hanging: Arc<AtomicU32>,
}

impl Failing {
    fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, failures: Arc::default(), full: Arc::default(), hangs: Arc::default(), hanging: Arc::default() }
    }
}

impl Failing {
    fn or<T: Send + 'static>(
        &self,
        call: impl FnOnce(&dyn Store) -> BoxFuture<'static, Result<T, StoreError>>,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        if self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok() {
            let source = Arc::new(io::Error::other("the disk is away"));
            let error = StoreError::Unavailable { what: "could not use the disk".into(), source };
            return Box::pin(std::future::ready(Err(error)));
        }
        call(&*self.inner)
    }
}

impl Store for Failing {
    fn append(&self, group: Vec<Append>) -> BoxFuture<'static, Result<Vec<Appended>, StoreError>> {
        if self.full.load(Ordering::Relaxed) {
            return Box::pin(std::future::ready(Err(StoreError::Full { path: "full".into() })));
        }
        if self.hangs.load(Ordering::Relaxed) {
            let store = self.clone();
            return Box::pin(async move {
                store.hanging.fetch_add(1, Ordering::Relaxed);
                while store.hangs.load(Ordering::Relaxed) {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                store.inner.append(group).await
            });
        }
        self.or(|store| store.append(group))
    }
    fn read(&self, query: ReadBlocks) -> BoxFuture<'static, Result<Vec<Block>, StoreError>> {
        self.or(|store| store.read(query))
    }
    fn extent(&self, thread: ThreadId) -> BoxFuture<'static, Result<Extent, StoreError>> {
        self.or(|store| store.extent(thread))
    }
    fn run(&self, run: RunId) -> BoxFuture<'static, Result<Option<RunFold>, StoreError>> {
        self.or(|store| store.run(run))
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

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_hangs_at_one_process_can_be_tried_at_another() {
    for ground in Ground::each(&[]) {
        let failing = Failing::new(ground.store());
        let (hangs, hanging) = (Arc::clone(&failing.hangs), Arc::clone(&failing.hanging));
        let (slow, other) = (ground.service_on(Arc::new(failing)), ground.service());
        let (run, work) = (RunId::new("mine").unwrap(), Work::External { name: "build".into() });
        let start = Start { run: Some(run), idempotency_key: Some("k".into()), ..Start::new(work) };
        hangs.store(true, Ordering::Relaxed);
        let first = tokio::spawn({
            let (slow, start) = (slow.clone(), start.clone());
            async move { slow.start(start).await }
        });
        while hanging.load(Ordering::Relaxed) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let tried = other.start(start.clone()).await;
        assert!(tried.as_ref().is_err_and(RunsError::is_unavailable), "{tried:?}");
        hangs.store(false, Ordering::Relaxed);
        let begun = first.await.unwrap().unwrap();
        let again = other.start(start.clone()).await.unwrap();
        assert_eq!((begun.existing, again), (false, Started { existing: true, ..begun.clone() }));
        let another = other.start(Start { idempotency_key: None, ..start }).await;
        assert!(matches!(another, Err(RunsError::WrongState { .. })), "{another:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_fails_for_a_while_does_not_harm_the_run() {
    for ground in Ground::each(&[LOUD]) {
        let failing = Failing::new(ground.store());
        let failures = Arc::clone(&failing.failures);
        let host = ground.service_on(Arc::new(failing));
        let other = ground.service();
        let run = begin(&host, "loud").await;
        while !ground.path().join("up").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        failures.store(12, Ordering::Relaxed);
        std::fs::write(ground.path().join("go"), "").unwrap();
        let fold = wait(&other, &run, Until::Ended).await;
        assert_eq!(fold.status, RunStatus::Done, "{fold:?}");
        let expected: Vec<_> = (1..=6000).map(|n: u32| n.to_string()).collect();
        assert_eq!(output(&records(&other, &run).await), expected);
        check(&other, &run).await;
        host.finish(&run, SOON).await;
        let spooled = std::fs::read_to_string(host.spools().path(&run)).unwrap();
        assert_eq!(spooled.lines().count() as u64, fold.last.0 + 1, "the spool has it all");
        assert_eq!(fold.changed, fold.last, "nothing is written behind the end");
    }
}

#[tokio::test]
async fn a_full_disk_keeps_nobody_from_looking_or_ending() {
    for ground in Ground::each(&[LOUD]) {
        let failing = Failing::new(ground.store());
        let full = Arc::clone(&failing.full);
        let service = ground.service_on(Arc::new(failing));
        let lost = RunId::new("lost").unwrap();
        let start =
            RunStart { machine: "loud".into(), depth: 0, entry: "talk".into(), resumed: false, external: false };
        service.relay().commit(&lost.clone().into(), &lost, &[start.into()], None).await.unwrap();
        let hosted = begin(&service, "loud").await;
        full.store(true, Ordering::Relaxed);
        assert_eq!(service.fold(&lost).await.unwrap().status, RunStatus::Interrupted, "told, though not stored");
        let cancel = Cancel { run: hosted.clone(), reason: None, actor: "test".into(), kill: true };
        // It cannot be stored, so nobody is told that it is done; the processes end all the same.
        assert!(tokio::time::timeout(Duration::from_secs(3), service.cancel(cancel)).await.is_err());
        tokio::time::timeout(SOON, service.close()).await.expect("a full disk must not keep a service from ending");
        assert!(!ground.path().join("go").exists());
        let after = ground.service().fold(&lost).await.unwrap();
        assert_eq!(after.status, RunStatus::Interrupted, "stored by who looks later");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spool_folder_that_cannot_be_used_does_not_harm_the_run() {
    for ground in Ground::each(&[LOUD]) {
        std::fs::write(ground.layout().spool(), "not a folder").unwrap();
        std::fs::write(ground.path().join("go"), "").unwrap();
        let service = ground.service();
        let run = begin(&service, "loud").await;
        let fold = wait(&service, &run, Until::Ended).await;
        assert_eq!((fold.status, fold.usage.log_lines), (RunStatus::Done, 6000));
        assert_eq!(service.snapshot(&run).await.unwrap().spool, None, "no path to what is not there");
        let notes = records(&service, &run).await.into_iter().filter(|record| record.event.kind() == "note").count();
        assert_eq!(notes, 1, "the log says why");
        tokio::time::timeout(SOON, service.close()).await.unwrap();
    }
}

/// What a request commits is not kept waiting by a flood that the same process writes to the same thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_leaves_room_for_a_commit() {
    let ground = Ground::sqlite(&[]);
    let relay = Relay::start(ground.store(), Config::default()).unwrap();
    let thread = ThreadId::new("t").unwrap();
    let publisher = relay.publisher(&thread, &RunId::new("flood").unwrap()).await.unwrap();
    let flood = tokio::spawn(async move {
        let mut batch = EventBatch::new();
        loop {
            for n in 0..200 {
                batch.push_line(&LogLine::new("s", Stream::Stdout, format!("line {n} of a flood").as_bytes()));
            }
            publisher.send(&mut batch).await;
        }
    });
    let mut times = Vec::new();
    for n in 0..20 {
        let start = Instant::now();
        let run = RunId::new(format!("r{n}")).unwrap();
        let events = [Note::info("here").into()];
        let commit = relay.commit(&thread, &run, &events, None);
        tokio::time::timeout(SOON, commit).await.expect("never").unwrap();
        times.push(start.elapsed());
    }
    flood.abort();
    times.sort();
    println!("commits beside a flood took {times:?}");
    assert!(times[15] < Duration::from_millis(500), "{times:?}");
    relay.close().await;
}
