//! Processes on several machines, on one store and its leases.

use std::{future::Future, sync::Arc, time::Duration};

use serde_json::{Value, json};
use taffrail_mcp_core::{Event, RunFold, RunId, RunStatus};
use taffrail_relay::{Leases, MemoryStore, Store};
use taffrail_runs::{Hosts, RunsError, Service, Until};
use taffrail_testutils::leases::MemoryLeases;
use tokio::{runtime::Runtime, time::Instant};

use crate::{
    ground::{Ground, SOON, begin, check, output, records, resume, wait},
    line::{Line, OnLine},
};

/// Short, so that a test can wait for it; long for a machine that is busy.
const SILENCE: Duration = Duration::from_secs(2);

/// Says who it is as soon as it runs, and goes on for as long as it may.
const LOOP: &str = "playbook: loop
states:
  first: { run: echo first }
  second: { run: 'echo $$; while [ ! -e go ]; do echo tick; sleep 0.05; done; echo over' }
";

/// What they share.
struct Shared {
    ground: Ground,
    store: MemoryStore,
    leases: MemoryLeases,
}

/// One process: with a runtime of its own, so that it can be killed, and a line that can be cut.
struct Process {
    runtime: Option<Runtime>,
    service: Service,
    line: Line,
}

impl Shared {
    fn new() -> Self {
        Self { ground: Ground::sqlite(&[LOOP]), store: MemoryStore::new(), leases: MemoryLeases::new() }
    }

    /// One that looks after things.
    fn process(&self) -> Process {
        let process = self.quiet_process();
        let service = process.service.clone();
        process.runtime().spawn(async move { service.tend().await });
        process
    }

    /// One that does not, as a command that only looks.
    fn quiet_process(&self) -> Process {
        let line = Line::new();
        let store = OnLine::store(Arc::new(self.store.clone()), &line);
        let leases = OnLine::leases(Arc::new(self.leases.clone()), &line);
        let service = self.ground.service_with(store, |config| {
            config.hosts = Hosts::Leases(leases);
            config.host_silence = SILENCE;
        });
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Process { runtime: Some(runtime), service, line }
    }

    /// A run's state as it is stored, asked of nobody.
    async fn stored(&self, run: &RunId) -> RunFold {
        self.store.run(run.clone()).await.unwrap().unwrap()
    }

    /// Waits until it is stored that the run is `interrupted`, which somebody writes without being asked.
    async fn interrupted(&self, run: &RunId) -> RunFold {
        let stored = async {
            loop {
                let fold = self.stored(run).await;
                if fold.status == RunStatus::Interrupted {
                    return fold;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(SOON, stored).await.expect("it was never interrupted")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nothing that ends reaches the others any more: a process that is killed says no farewell.
        self.line.down();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Process {
    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().unwrap()
    }

    /// Does something in this process.
    async fn does<F>(&self, what: impl FnOnce(Service) -> F) -> F::Output
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.runtime().spawn(what(self.service.clone())).await.unwrap()
    }

    /// Starts a run, and waits for the id of the process of its second state.
    async fn loops(&self) -> (RunId, u32) {
        self.does(|service| async move {
            let run = begin(&service, "loop").await;
            let said = async {
                loop {
                    let said = output(&records(&service, &run).await);
                    if let Some(pid) = said.get(1) {
                        return pid.parse().unwrap();
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            let pid = tokio::time::timeout(SOON, said).await.unwrap();
            (run, pid)
        })
        .await
    }

    async fn resumes(&self, run: &RunId) -> Result<RunId, RunsError> {
        let run = run.clone();
        self.does(|service| async move { service.resume(resume(&run, Value::Null)).await.map(|resumed| resumed.run) })
            .await
    }

    async fn ends(&self, run: &RunId) -> RunFold {
        let run = run.clone();
        self.does(|service| async move { wait(&service, &run, Until::Ended).await }).await
    }

    async fn checks(&self, run: &RunId) -> (Vec<String>, Vec<String>) {
        let run = run.clone();
        self.does(|service| async move { (check(&service, &run).await, output(&records(&service, &run).await)) }).await
    }
}

fn count(kinds: &[String], kind: &str) -> usize {
    kinds.iter().filter(|known| *known == kind).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_a_killed_process_are_interrupted_by_the_others_and_go_on_once() {
    let shared = Shared::new();
    let [host, one, two] = [0, 1, 2].map(|_| shared.process());
    let (run, _) = host.loops().await;
    let (other, _) = one.loops().await;
    let killed = Instant::now();
    drop(host);
    let fold = shared.interrupted(&run).await;
    let noticed = killed.elapsed();
    // The second of grace is for a busy machine; with the default silence of 5 s this is below 10 s.
    assert!(noticed > SILENCE / 2 && noticed < SILENCE * 2, "{noticed:?}");
    assert_eq!(fold.error.unwrap().as_str(), "process-gone");
    let (first, second) = tokio::join!(one.resumes(&run), two.resumes(&run));
    assert_eq!(u32::from(first.is_ok()) + u32::from(second.is_ok()), 1, "{first:?} {second:?}");
    std::fs::write(shared.ground.path().join("go"), "").unwrap();
    assert_eq!(two.ends(&run).await.status, RunStatus::Done);
    assert_eq!(one.ends(&other).await.status, RunStatus::Done, "its own runs went on");
    let (kinds, said) = two.checks(&run).await;
    assert_eq!(["run-start", "run-finished"].map(|kind| count(&kinds, kind)), [2, 2], "{kinds:?}");
    assert_eq!((said.iter().filter(|line| *line == "first").count(), said.last().unwrap().as_str()), (1, "over"));
    let (kinds, _) = two.checks(&other).await;
    assert_eq!(count(&kinds, "run-finished"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_only_asks_finds_out_too() {
    let shared = Shared::new();
    let (host, asker) = (shared.quiet_process(), shared.quiet_process());
    let (run, _) = host.loops().await;
    let seen = run.clone();
    let now = asker.does(|service| async move { service.fold(&seen).await.unwrap() }).await;
    assert_eq!(now.status, RunStatus::Running);
    drop(host);
    let fold = asker.ends(&run).await;
    assert_eq!(fold.status, RunStatus::Interrupted);
    assert_eq!(fold, shared.stored(&run).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_was_taken_for_gone_and_is_not_changes_nothing_any_more() {
    let shared = Shared::new();
    let [stalled, other] = [0, 1].map(|_| shared.process());
    let (run, pid) = stalled.loops().await;
    stalled.line.stall();
    shared.interrupted(&run).await;
    other.resumes(&run).await.unwrap();
    assert!(std::fs::exists(format!("/proc/{pid}")).unwrap(), "it does not know yet");
    stalled.line.up();
    let ended = async {
        while std::fs::exists(format!("/proc/{pid}")).unwrap() || stalled.service.gauges().hosted > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, ended).await.expect("its processes are ended");
    assert_eq!(shared.stored(&run).await.status, RunStatus::Running, "where it was resumed, it goes on");

    // It is of use again, under another name.
    let (next, _) = stalled.loops().await;
    std::fs::write(shared.ground.path().join("go"), "").unwrap();
    assert_eq!(other.ends(&run).await.status, RunStatus::Done);
    assert_eq!(stalled.ends(&next).await.status, RunStatus::Done);
    let (kinds, said) = other.checks(&run).await;
    assert_eq!(["run-start", "run-finished"].map(|kind| count(&kinds, kind)), [2, 2], "{kinds:?}");
    // After the interruption there is nothing but what the other process has written.
    let all = other.does({
        let run = run.clone();
        |service| async move { records(&service, &run).await }
    });
    let all = all.await;
    let end = all.iter().position(|record| matches!(record.event, Event::RunFinished(_))).unwrap();
    assert!(matches!(all[end + 1].event, Event::CheckpointClaimed(_)), "{:?}", all[end + 1]);
    assert_eq!(said.iter().filter(|line| **line == pid.to_string()).count(), 1, "it said nothing twice");
    check(&shared.ground.service_on(Arc::new(shared.store.clone())), &next).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_away_ends_nobody() {
    let shared = Shared::new();
    let processes = [0, 1, 2].map(|_| shared.process());
    let (run, _) = processes[0].loops().await;
    processes.iter().for_each(|process| process.line.down());
    tokio::time::sleep(SILENCE * 3).await;
    // Not all at the same moment.
    for process in &processes[1..] {
        process.line.up();
    }
    tokio::time::sleep(SILENCE / 4).await;
    processes[0].line.up();
    tokio::time::sleep(SILENCE * 2).await;
    assert_eq!(shared.stored(&run).await.status, RunStatus::Running);
    std::fs::write(shared.ground.path().join("go"), "").unwrap();
    assert_eq!(processes[1].ends(&run).await.status, RunStatus::Done);
    let (kinds, _) = processes[2].checks(&run).await;
    assert_eq!(["run-start", "run-finished"].map(|kind| count(&kinds, kind)), [1, 1]);
    assert_eq!(shared.leases.holders().await.unwrap().len(), 1, "one process hosts");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_leaves_in_good_order_leaves_nothing() {
    let shared = Shared::new();
    let [host, other] = [0, 1].map(|_| shared.process());
    let (run, _) = host.loops().await;
    let left = Instant::now();
    host.does(|service| async move { service.close().await }).await;
    let fold = shared.stored(&run).await;
    assert_eq!((fold.status, fold.error.unwrap().as_str()), (RunStatus::Interrupted, "shutdown"));
    assert_eq!(shared.leases.holder(format!("run:{run}")).await.unwrap(), None);
    assert_eq!(shared.leases.holders().await.unwrap(), []);
    std::fs::write(shared.ground.path().join("go"), "").unwrap();
    other.resumes(&run).await.unwrap();
    assert_eq!(other.ends(&run).await.status, RunStatus::Done);
    assert!(left.elapsed() < SOON, "{:?}", left.elapsed());
    let again = other.does(|service| async move {
        let request = resume(&run, json!({}));
        service.resume(request).await
    });
    assert!(matches!(again.await, Err(RunsError::WrongState { .. })));
}
