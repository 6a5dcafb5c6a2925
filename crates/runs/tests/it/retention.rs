//! What a sweep removes, and what it says to those who come too late.

use std::time::Duration;

use taffrail_mcp_core::{Event, EventSink, Note, Record, RunFinished, RunId, RunStart, RunStatus, Seq, Start, Usage};
use taffrail_relay::{Delivery, ListRuns, Relay, Retention, sweep};

use crate::ground::Ground;

fn started() -> Event {
    RunStart { machine: "m".into(), depth: 0, entry: "s".into(), resumed: false, external: false }.into()
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
    for ground in Ground::each(&[]) {
        let relay = Relay::start(ground.store(), Default::default()).unwrap();
        let done = written(&relay, "done", Some(RunStatus::Done)).await;
        let mut alive = Vec::new();
        for (name, end) in [
            ("running", None),
            ("suspended", Some(RunStatus::Suspended)),
            ("interrupted", Some(RunStatus::Interrupted)),
        ] {
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
        assert_eq!(ids.len(), 3);
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
