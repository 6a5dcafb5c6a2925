//! Things that go wrong between two steps: an answer that is lost, a reader that gives up, a writer that was overtaken.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use taffrail_mcp_core::{
    BoxFuture, EventSink, Record, RunFinished, RunFold, RunId, RunStart, RunStatus, Seq, Start, Stream, ThreadId, Usage,
};
use taffrail_relay::{
    Append, Appended, Block, Extent, ListRuns, MemoryStore, ReadBlocks, Store, StoreError, ThreadUsage, Trimmed,
};
use tokio::sync::{Semaphore, watch};

use crate::support::{assert_dense, log, note, read, relay, run, text, thread, whole};

const SOON: Duration = Duration::from_secs(10);

/// A memory store that can be held up where a caller asks how far a thread goes, and whose answers can be lost.
#[derive(Clone)]
struct Unlucky {
    inner: MemoryStore,
    /// One permit lets all through.
    extents: Arc<Semaphore>,
    lost: Arc<AtomicU32>,
    /// The answers of this many questions about runs are as old as the question, and late.
    stale: Arc<AtomicU32>,
    late: Arc<Semaphore>,
}

impl Unlucky {
    fn new() -> Self {
        let (extents, late) = (Arc::new(Semaphore::new(1)), Arc::new(Semaphore::new(0)));
        Self { inner: MemoryStore::new(), extents, lost: Arc::default(), stale: Arc::default(), late }
    }
}

/// Counts down; whether it was above zero.
fn take(counter: &AtomicU32) -> bool {
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok()
}

impl Store for Unlucky {
    fn append(&self, group: Vec<Append>) -> BoxFuture<'static, Result<Vec<Appended>, StoreError>> {
        let answers = self.inner.append(group);
        let lose = take(&self.lost);
        Box::pin(async move {
            let answers = answers.await?;
            if lose {
                let source = Arc::new(io::Error::other("the line was cut"));
                return Err(StoreError::Unavailable { what: "could not hear the answer".into(), source });
            }
            Ok(answers)
        })
    }
    fn extent(&self, thread: ThreadId) -> BoxFuture<'static, Result<Extent, StoreError>> {
        let this = self.clone();
        Box::pin(async move {
            drop(this.extents.acquire().await);
            this.inner.extent(thread).await
        })
    }
    fn read(&self, query: ReadBlocks) -> BoxFuture<'static, Result<Vec<Block>, StoreError>> {
        self.inner.read(query)
    }
    fn run(&self, run: RunId) -> BoxFuture<'static, Result<Option<RunFold>, StoreError>> {
        let answer = self.inner.run(run);
        let late = take(&self.stale).then(|| Arc::clone(&self.late));
        Box::pin(async move {
            if let Some(late) = late {
                late.acquire().await.unwrap().forget();
            }
            answer.await
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

fn started() -> RunStart {
    RunStart { machine: "m".into(), depth: 0, entry: "s".into(), resumed: false, external: false }
}

fn finished(status: RunStatus) -> RunFinished {
    let usage = Usage::default();
    RunFinished { machine: "m".into(), depth: 0, status, error: None, at: None, usage, detail: None }
}

/// What the log says about a run.
fn folded(records: &[Record], run: &RunId) -> RunFold {
    let mut fold = RunFold::new(run.clone(), thread());
    records.iter().filter(|record| record.run == *run).for_each(|record| fold.apply_record(record));
    fold
}

#[tokio::test]
async fn an_append_whose_answer_was_lost_is_not_stored_twice() {
    let store = Unlucky::new();
    let relay = relay(store.clone());
    let publisher = relay.publisher(&thread(), &run("r")).await.unwrap();
    publisher.emit(started().into());
    for i in 0..5 {
        store.lost.store(2, Ordering::Relaxed);
        publisher.emit(note(format!("{i}")));
        publisher.flush().await.unwrap();
    }
    publisher.flush().await.unwrap();
    let head = relay.extent(&thread()).await.unwrap().head;
    let records = whole(&relay, head.0 as usize).await;
    assert_dense(&records, Seq::START);
    let notes: Vec<_> = records.iter().map(text).filter(|text| text.len() == 1).collect();
    assert_eq!(notes, ["0", "1", "2", "3", "4"]);
    assert_eq!(relay.run(&run("r")).await.unwrap(), Some(folded(&records, &run("r"))));
}

#[tokio::test]
async fn nothing_is_noted_behind_the_end_of_a_run() {
    let store = Unlucky::new();
    store.lost.store(1, Ordering::Relaxed);
    let relay = relay(store);
    let publisher = relay.publisher(&thread(), &run("r")).await.unwrap();
    let mut batch = taffrail_mcp_core::EventBatch::new();
    batch.push(started().into());
    batch.push(finished(RunStatus::Done).into());
    publisher.send(&mut batch).await;
    publisher.flush().await.unwrap();
    relay.close().await;
    assert_eq!(relay.extent(&thread()).await.unwrap().head, Seq(2));
}

#[tokio::test]
async fn a_reader_that_gives_up_leaves_the_others_their_news() {
    let store = Unlucky::new();
    let (here, elsewhere) = (relay(store.clone()), relay(store.inner.clone()));
    let mut hasty = here.follow(&thread(), None, Start::Beginning).await.unwrap();
    let mut patient = here.follow(&thread(), None, Start::Beginning).await.unwrap();
    elsewhere.commit(&thread(), &run("r"), &[note("1")], None).await.unwrap();
    assert_eq!(text(&read(&mut hasty, 1).await[0]), "1");
    assert_eq!(text(&read(&mut patient, 1).await[0]), "1");
    store.extents.acquire().await.unwrap().forget();
    elsewhere.commit(&thread(), &run("r"), &[note("2")], None).await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(20), hasty.next()).await.is_err());
    drop(hasty);
    store.extents.add_permits(1);
    let seen = tokio::time::timeout(SOON, read(&mut patient, 1)).await.expect("nobody looked");
    assert_eq!(text(&seen[0]), "2");
}

#[tokio::test]
async fn a_run_that_began_elsewhere_keeps_its_state_when_this_relay_writes_to_it() {
    let store = MemoryStore::new();
    let (here, elsewhere) = (relay(store.clone()), relay(store));
    let busy = here.publisher(&thread(), &run("busy")).await.unwrap();
    // Opened before anything is known about the run.
    let early = here.publisher(&thread(), &run("r")).await.unwrap();
    busy.emit(started().into());
    busy.flush().await.unwrap();
    elsewhere.commit(&thread(), &run("r"), &[started().into()], None).await.unwrap();
    // A conflict: this relay catches up with the thread.
    busy.emit(note("x"));
    busy.flush().await.unwrap();
    early.emit(note("y"));
    early.flush().await.unwrap();
    let records = whole(&here, 4).await;
    for name in ["r", "busy"] {
        let stored = here.run(&run(name)).await.unwrap().unwrap();
        assert_eq!(stored, folded(&records, &run(name)));
        assert_eq!(stored.playbook, "m");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_index_is_the_fold_of_the_log_however_writers_meet() {
    let store = MemoryStore::new();
    let relays = [relay(store.clone()), relay(store.clone())];
    let mut tasks = Vec::new();
    for (place, relay) in relays.iter().enumerate() {
        for task in 0..2 {
            let relay = relay.clone();
            tasks.push(tokio::spawn(async move {
                for i in 0..60 {
                    let run = run(&format!("r{place}-{task}-{i}"));
                    relay.commit(&thread(), &run, &[started().into()], None).await.unwrap();
                    let publisher = relay.publisher(&thread(), &run).await.unwrap();
                    for n in 0..20 {
                        publisher.emit(note(format!("{place} {task} {i} {n}")));
                    }
                    publisher.emit(finished(RunStatus::Done).into());
                    publisher.flush().await.unwrap();
                }
            }));
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
    let records = whole(&relays[0], 2 * 2 * 60 * 22).await;
    assert_dense(&records, Seq::START);
    let all = relays[0].runs(ListRuns { limit: usize::MAX, ..ListRuns::default() }).await.unwrap();
    assert_eq!(all.len(), 240);
    for fold in all {
        assert_eq!(fold, folded(&records, &fold.run));
        let texts: Vec<_> = records.iter().filter(|record| record.run == fold.run).map(text).collect();
        let numbers: Vec<_> = texts[1..21].iter().map(|text| text.rsplit(' ').next().unwrap()).collect();
        assert_eq!(numbers, (0..20).map(|n| n.to_string()).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_commit_while_the_writer_learns_of_its_run_is_not_forgotten() {
    let store = Unlucky::new();
    let relay = relay(store.clone());
    relay.commit(&thread(), &run("r"), &[started().into()], None).await.unwrap();
    let publisher = relay.publisher(&thread(), &run("r")).await.unwrap();
    store.stale.store(1, Ordering::Relaxed);
    publisher.emit(note("x"));
    while store.stale.load(Ordering::Relaxed) > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let asked = taffrail_mcp_core::CancelRequested { actor: "me".into(), reason: None, kill: false };
    relay.commit(&thread(), &run("r"), &[asked.into()], None).await.unwrap();
    store.late.add_permits(1);
    publisher.flush().await.unwrap();
    let fold = relay.run(&run("r")).await.unwrap().unwrap();
    assert_eq!(fold, folded(&whole(&relay, 3).await, &run("r")));
    assert!(fold.cancel.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_written_by_a_publisher_and_by_commits() {
    let relay = relay(MemoryStore::new());
    let publisher = relay.publisher(&thread(), &run("r")).await.unwrap();
    publisher.emit(started().into());
    let emitter = tokio::spawn(async move {
        for n in 0..10_000 {
            publisher.emit(note(n.to_string()));
            if n % 3 == 0 {
                tokio::task::yield_now().await;
            }
        }
        publisher.flush().await.unwrap();
    });
    let mut commits = 0;
    while !emitter.is_finished() {
        relay.commit(&thread(), &run("r"), &[log("s", Stream::Stdout, "c")], None).await.unwrap();
        commits += 1;
    }
    emitter.await.unwrap();
    let records = whole(&relay, 10_001 + commits).await;
    assert_dense(&records, Seq::START);
    assert_eq!(relay.run(&run("r")).await.unwrap(), Some(folded(&records, &run("r"))));
}

#[tokio::test]
async fn who_waits_for_a_relay_that_is_gone_is_told() {
    let relay = relay(MemoryStore::new());
    let publisher = relay.publisher(&thread(), &run("r")).await.unwrap();
    publisher.emit(note("before"));
    relay.close().await;
    publisher.flush().await.unwrap();
    publisher.emit(note("after"));
    tokio::time::timeout(SOON, publisher.flush()).await.expect("waits for ever").unwrap_err();
}
