//! What a sweep removes, and what it says to those who come too late.

use std::time::Duration;

use taffrail_mcp_core::{
    Event, EventSink, Note, Record, RunFinished, RunId, RunStart, RunStatus, Seq, Start, ThreadId, Usage,
};
use taffrail_relay::{Delivery, ListRuns, Relay, Retention, Trimmed, sweep};

use crate::{
    ground::{Ground, SOON, begin, check},
    line::{Line, OnLine},
};

const NAP: &str = "playbook: nap
states:
  nap: { run: sleep 600 }
";

/// Everything that may go.
const ALL: Retention = Retention { max_age: Some(Duration::ZERO), max_bytes: None, keep_records: 0 };

fn start() -> RunStart {
    RunStart { machine: "m".into(), depth: 0, entry: "s".into(), resumed: false, external: false }
}

fn started() -> Event {
    start().into()
}

fn finished(status: RunStatus) -> Event {
    let usage = Usage::default();
    RunFinished { machine: "m".into(), depth: 0, status, error: None, at: None, usage, detail: None }.into()
}

/// A run of 102 records in blocks of 10 or so.
async fn written(relay: &Relay, name: &str, end: Option<RunStatus>) -> RunId {
    let run = RunId::new(name).unwrap();
    let publisher = relay.publisher(&run.clone().into(), &run).await.unwrap();
    publisher.emit(started());
    for n in 0..100 {
        publisher.emit(Note::info(format!("note {n}")).into());
        if n % 10 == 9 {
            publisher.flush().await.unwrap();
        }
    }
    publisher.emit(end.map_or_else(|| Note::info("goes on").into(), finished));
    publisher.flush().await.unwrap();
    run
}

/// Reads all that is left of a thread, after `after`: the gap that is told, and the positions of the records.
async fn left(relay: &Relay, run: &RunId, after: u64) -> (Option<(u64, u64)>, Vec<u64>) {
    let thread = run.clone().into();
    let mut follower = relay.follow(&thread, None, Start::After(Seq(after))).await.unwrap();
    let (mut gap, mut seqs) = (None, Vec::new());
    while let Some(delivery) = follower.try_next().await.unwrap() {
        match delivery {
            Delivery::Gap(told) => {
                assert!(gap.is_none() && seqs.is_empty(), "one gap, before everything");
                gap = Some((told.from.0, told.to.0));
            }
            Delivery::Blocks(blocks) => {
                let lines = blocks.iter().flat_map(|block| block.lines().collect::<Vec<_>>());
                seqs.extend(lines.map(|line| Record::parse(&line).unwrap().seq.0));
            }
        }
    }
    (gap, seqs)
}

#[tokio::test]
async fn a_sweep_leaves_what_goes_on_and_tells_exactly_what_is_gone() {
    for ground in [Ground::sqlite(&[]), Ground::memory(&[])] {
        let relay = Relay::start(ground.store(), Default::default()).unwrap();
        let done = written(&relay, "done", Some(RunStatus::Done)).await;
        let mut alive = Vec::new();
        for (name, end) in [("running", None), ("suspended", Some(RunStatus::Suspended))] {
            alive.push(written(&relay, name, end).await);
        }
        let retention = Retention { max_age: Some(Duration::ZERO), max_bytes: Some(0), keep_records: 30 };
        let planned = sweep(&relay, &retention, true).await.unwrap();
        assert_eq!((planned.threads, left(&relay, &done, 0).await.1.len()), (1, 102), "a dry run removes nothing");
        let swept = sweep(&relay, &retention, false).await.unwrap();
        assert_eq!((swept.threads, swept.runs.len()), (1, 0), "{swept:?}");

        // Another process, which has nothing in memory, and this one.
        let fresh = Relay::start(ground.store(), Default::default()).unwrap();
        for relay in [&relay, &fresh] {
            for run in &alive {
                assert_eq!(left(relay, run, 0).await, (None, (1..=102).collect()), "{run}");
            }
        }
        let first = relay.extent(&done.clone().into()).await.unwrap().first.0;
        assert!(first > 50 && first <= 73, "whole blocks, and 30 records at least: {first}");
        assert_eq!(swept.trimmed.records, first - 1);
        let kept: Vec<u64> = (first..=102).collect();
        assert_eq!(left(&fresh, &done, 0).await, (Some((1, first - 1)), kept.clone()));
        assert_eq!(left(&fresh, &done, 20).await, (Some((21, first - 1)), kept.clone()));
        assert_eq!(left(&fresh, &done, first - 1).await, (None, kept.clone()));
        assert_eq!(left(&fresh, &done, first).await, (None, kept[1..].to_vec()));

        // All of it: the run leaves the index, and its numbers are not used again.
        let all = Retention { keep_records: 0, ..retention };
        assert_eq!(sweep(&relay, &all, false).await.unwrap().runs, std::slice::from_ref(&done));
        assert_eq!(left(&fresh, &done, 5).await, (Some((6, 102)), vec![]));
        assert_eq!(fresh.run(&done).await.unwrap(), None);
        let ids: Vec<_> = fresh.runs(ListRuns::default()).await.unwrap().into_iter().map(|fold| fold.run).collect();
        assert_eq!(ids.len(), 2);
        let fold = fresh.commit(&done.clone().into(), &done, &[Note::info("again").into()], None).await.unwrap();
        assert_eq!(fold.last, Seq(103));
        assert_eq!(left(&relay, &done, 0).await, (Some((1, 102)), vec![103]));
    }
}

/// A run that goes on writes while its neighbours are removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sweeps_beside_a_writer_lose_nothing_of_it() {
    let ground = Ground::sqlite(&[]);
    let relay = Relay::start(ground.store(), Default::default()).unwrap();
    let live = RunId::new("live").unwrap();
    let publisher = relay.publisher(&live.clone().into(), &live).await.unwrap();
    publisher.emit(started());
    publisher.flush().await.unwrap();
    let sweeper = Relay::start(ground.store(), Default::default()).unwrap();
    let retention = Retention { max_age: Some(Duration::ZERO), max_bytes: Some(0), keep_records: 0 };
    for round in 0..10 {
        let name = format!("done-{round}");
        let (done, ()) = tokio::join!(written(&relay, &name, Some(RunStatus::Done)), async {
            for n in 0..50 {
                publisher.emit(Note::info(n.to_string()).into());
            }
        });
        assert_eq!(sweep(&sweeper, &retention, false).await.unwrap().runs, [done]);
    }
    publisher.flush().await.unwrap();
    assert_eq!(left(&sweeper, &live, 0).await, (None, (1..=501).collect()));
}

/// What a kill leaves goes when it is old, and what somebody runs does not, whoever sweeps.
#[tokio::test(flavor = "multi_thread")]
async fn lost_runs_go_and_hosted_ones_stay() {
    for ground in Ground::each(&[NAP]) {
        let (host, sweeper) = (ground.service(), ground.service());
        let hosted = begin(&host, "nap").await;
        let lost = written(host.relay(), "lost", None).await;
        let interrupted = written(host.relay(), "interrupted", Some(RunStatus::Interrupted)).await;
        let kept = Retention { max_age: Some(Duration::from_secs(600)), max_bytes: Some(0), keep_records: 0 };
        assert_eq!(sweeper.sweep_log(&kept, true).await.unwrap().runs, [], "they may be resumed");
        assert_eq!(host.fold(&lost).await.unwrap().status, RunStatus::Interrupted);

        let mut planned = sweeper.plan_sweep(&ALL).await.unwrap();
        planned.runs.sort();
        assert_eq!(planned.runs, [interrupted.clone(), lost.clone()]);
        let mut swept = sweeper.sweep_log(&ALL, true).await.unwrap();
        swept.runs.sort();
        assert_eq!(swept, planned, "whole threads go, so a plan is exact");
        assert_eq!(sweeper.gauges().removed.records, swept.trimmed.records);
        assert_eq!(left(host.relay(), &lost, 0).await, (Some((1, 103)), vec![]));
        let resumed = host.resume(crate::ground::resume(&interrupted, serde_json::Value::Null)).await;
        assert!(resumed.as_ref().is_err_and(taffrail_runs::RunsError::is_not_found), "{resumed:?}");
        check(&sweeper, &hosted).await;
        assert_eq!(sweeper.fold(&hosted).await.unwrap().status, RunStatus::Running);
        host.close().await;
    }
}

/// A run that filled a disk cannot even be marked as interrupted any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_run_goes_when_nothing_can_be_written() {
    let ground = Ground::sqlite(&[]);
    let line = Line::new();
    let service = ground.service_on(OnLine::store(ground.store(), &line));
    let lost = written(service.relay(), "lost", None).await;
    line.full();
    assert_eq!(service.fold(&lost).await.unwrap().status, RunStatus::Interrupted, "as far as can be told");
    assert_eq!(ground.service().relay().run(&lost).await.unwrap().unwrap().status, RunStatus::Running);
    assert_eq!(service.sweep_log(&ALL, true).await.unwrap().runs, [lost]);
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_are_held_to_the_limit_by_several_processes_at_once() {
    for ground in Ground::each(&[]) {
        let services: Vec<_> = (0..3).map(|_| ground.service()).collect();
        let total = async || -> u64 {
            let threads = services[0].relay().store().threads().await.unwrap();
            threads.iter().map(|thread| thread.stored_bytes).sum()
        };
        for n in 0..12 {
            written(services[0].relay(), &format!("r{n:02}"), Some(RunStatus::Done)).await;
        }
        let limit = total().await / 3;
        let retention = Retention { max_bytes: Some(limit), ..Retention::default() };
        let (one, two, three) = tokio::join!(
            services[0].sweep_log(&retention, false),
            services[1].sweep_log(&retention, true),
            services[2].sweep_log(&retention, false),
        );
        let mut removed = Trimmed::default();
        for swept in [one, two, three] {
            let trimmed = swept.unwrap().trimmed;
            removed.records += trimmed.records;
            removed.bytes += trimmed.bytes;
        }
        let left = total().await;
        assert!(left <= limit && left > limit / 2, "{left} of {limit}");
        // Each record was removed once, and is accounted for where it was.
        let threads = services[0].relay().store().threads().await.unwrap();
        assert_eq!(threads.iter().map(|thread| thread.trimmed.records).sum::<u64>(), removed.records);
        assert_eq!(threads.iter().map(|thread| thread.trimmed.bytes).sum::<u64>(), removed.bytes);
        assert_eq!(removed.records % 102, 0, "the oldest threads, whole");
        let names = services[1].relay().runs(ListRuns::default()).await.unwrap();
        let expected = (0..12).rev().take(12 - (removed.records / 102) as usize).map(|n| format!("r{n:02}"));
        assert_eq!(names.iter().map(|fold| fold.run.to_string()).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }
}

/// One thread that runs come and go in: its old beginning is removed under those who write and read it.
#[tokio::test(flavor = "multi_thread")]
async fn sweeps_of_a_thread_in_use_leave_exact_gaps() {
    for ground in Ground::each(&[]) {
        let (service, reader) = (ground.service(), ground.service());
        let thread = ThreadId::new("shared").unwrap();
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let relay = service.relay().clone();
        let writing = tokio::spawn({
            let thread = thread.clone();
            async move {
                let mut written = 0;
                for n in 0.. {
                    let run = RunId::new(format!("r{n}")).unwrap();
                    let publisher = relay.publisher(&thread, &run).await.unwrap();
                    // Not one that whoever looks finds without a host.
                    publisher.emit(RunStart { external: true, ..start() }.into());
                    (0..30).for_each(|_| publisher.emit(Note::info("x".repeat(200)).into()));
                    publisher.emit(finished(RunStatus::Done));
                    publisher.flush().await.unwrap();
                    written += 32;
                    if *stopped.borrow() {
                        return written;
                    }
                }
                written
            }
        });
        // Readers that come again and again, and one that stays.
        let mut stays = reader.relay().follow(&thread, None, Start::Beginning).await.unwrap();
        let (mut seen, mut gaps) = (0, 0);
        let mut take = |delivery: Delivery| match delivery {
            Delivery::Gap(gap) => {
                assert_eq!(gap.from.0, seen + 1, "what comes next is told of");
                gaps += 1;
                seen = gap.to.0;
            }
            Delivery::Blocks(blocks) => {
                for block in blocks {
                    assert_eq!(block.first.0, seen + 1);
                    seen = block.last().0;
                }
            }
        };
        let mut removed = 0;
        for _ in 0..20 {
            let before = reader.relay().extent(&thread).await.unwrap();
            let swept = service.sweep_log(&ALL, true).await.unwrap();
            removed += swept.trimmed.records;
            let first = reader.relay().extent(&thread).await.unwrap().first.0.max(1);
            assert_eq!(first - before.first.0.max(1), swept.trimmed.records);
            let mut comes = reader.relay().follow(&thread, None, Start::Beginning).await.unwrap();
            if let Delivery::Gap(gap) = tokio::time::timeout(SOON, comes.next()).await.unwrap().unwrap() {
                assert!(gap.from.0 == 1 && gap.to.0 >= removed, "{gap:?} {removed}");
            }
            // Slowly: it is overtaken.
            take(tokio::time::timeout(SOON, stays.next()).await.unwrap().unwrap());
        }
        stop.send_replace(true);
        let written = writing.await.unwrap();
        while stays.position().0 < written {
            take(tokio::time::timeout(SOON, stays.next()).await.unwrap().unwrap());
        }
        assert_eq!(seen, written, "nothing twice, nothing silently lost");
        assert!(removed > 0);
        let usage = reader.relay().store().threads().await.unwrap();
        assert_eq!(usage.iter().find(|usage| usage.thread == thread).unwrap().trimmed.records, removed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_tends_removes_by_itself() {
    let ground = Ground::sqlite(&[]);
    let service = ground.service_with(ground.store(), |config| config.retention = Some(ALL));
    let done = written(service.relay(), "done", Some(RunStatus::Done)).await;
    std::fs::create_dir_all(ground.layout().spool()).unwrap();
    let tending = tokio::spawn({
        let service = service.clone();
        async move { service.tend().await }
    });
    let gone = async {
        while service.relay().run(&done).await.unwrap().is_some() || service.gauges().removed.runs == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, gone).await.unwrap();
    let removed = service.gauges().removed;
    assert_eq!((removed.sweeps, removed.runs, removed.records), (1, 1, 102));
    tending.abort();
}
