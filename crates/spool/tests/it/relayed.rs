//! A spool behind a real relay.

use std::{fs, sync::Arc, time::Duration};

use taffrail_mcp_core::{Event, EventSink, Note, Record, RunFinished, RunStart, RunStatus, Seq, ThreadId, Usage};
use taffrail_relay::{Config, MemoryStore, Relay};
use taffrail_spool::{Drained, Limits, RelaySource, Spools, segments};
use tempfile::TempDir;

use crate::support::run;

const SOON: Duration = Duration::from_secs(20);

fn finished(status: RunStatus) -> Event {
    let (machine, usage) = ("m".to_owned(), Usage::default());
    RunFinished { machine, depth: 0, status, error: None, at: None, usage, detail: None }.into()
}

fn started() -> Event {
    RunStart { machine: "m".to_owned(), depth: 0, entry: "e".to_owned(), resumed: false, external: false }.into()
}

#[tokio::test]
async fn two_runs_of_one_thread_have_a_spool_each_until_they_end() {
    let folder = TempDir::new().unwrap();
    let limits = Limits { file_bytes: 4096, ..Limits::default() };
    let spools = Spools::new(folder.path().join("spool"), limits);
    let relay = Relay::start(Arc::new(MemoryStore::new()), Config::default()).unwrap();
    let thread = ThreadId::new("thread").unwrap();
    let runs = [run("one"), run("two")];
    let mut publishers = Vec::new();
    for run in &runs {
        let publisher = relay.publisher(&thread, run).await.unwrap();
        publisher.emit(started());
        publisher.flush().await.unwrap();
        let source = RelaySource::new(relay.clone(), thread.clone(), run.clone());
        spools.attach(run, source).await.unwrap();
        publishers.push(publisher);
    }
    for i in 0..100 {
        for publisher in &publishers {
            publisher.emit(Note::info(format!("note {i}")).into());
            if i % 7 == 0 {
                publisher.flush().await.unwrap();
            }
        }
    }
    // A suspension is no end.
    publishers[0].emit(finished(RunStatus::Suspended));
    publishers[0].flush().await.unwrap();
    publishers[0].emit(started());
    for (publisher, run) in publishers.iter().zip(&runs) {
        publisher.emit(finished(RunStatus::Done));
        publisher.flush().await.unwrap();
        let last = relay.run(run).await.unwrap().unwrap().last;
        assert_eq!(spools.drain(run, last, SOON).await, Drained::Complete);
    }
    let mut gone = tokio::time::interval(Duration::from_millis(1));
    while runs.iter().any(|run| spools.is_attached(run)) {
        gone.tick().await;
    }
    let mut seqs = Vec::new();
    for run in &runs {
        let segments = segments(folder.path().join("spool"), run).unwrap();
        assert!(segments.len() > 1);
        let mut last = Seq::START;
        for segment in segments {
            let text = fs::read_to_string(segment.path).unwrap();
            for line in text.lines().skip(1) {
                let record = Record::parse(line.as_bytes()).unwrap();
                assert!(record.seq > last && record.run == *run);
                last = record.seq;
                seqs.push(record.seq.0);
            }
        }
    }
    seqs.sort_unstable();
    assert_eq!(seqs, (1..=relay.extent(&thread).await.unwrap().head.0).collect::<Vec<_>>());
    // Attached once more after its end, a run has nothing to add.
    spools.attach(&runs[0], RelaySource::new(relay.clone(), thread, runs[0].clone())).await.unwrap();
    while spools.is_attached(&runs[0]) {
        gone.tick().await;
    }
    relay.close().await;
}
