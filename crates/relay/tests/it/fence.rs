//! Who was taken for gone writes nothing more, whenever it comes back.

use std::sync::Arc;

use taffrail_mcp_core::{
    Event, EventBatch, EventSink, Note, Record, RunFinished, RunFold, RunId, RunStart, RunStatus, ThreadId, Usage,
};
use taffrail_relay::{Config, MemoryStore, PageQuery, Publisher, Relay};

fn run() -> (ThreadId, RunId) {
    (ThreadId::new("t").unwrap(), RunId::new("r").unwrap())
}

async fn start(relay: &Relay, resumed: bool) -> RunFold {
    let (thread, run) = run();
    let start = RunStart { machine: "m".into(), depth: 0, entry: "s".into(), resumed, external: false };
    relay.commit(&thread, &run, &[start.into()], None).await.unwrap()
}

async fn interrupt(relay: &Relay) {
    let (thread, run) = run();
    let (status, usage) = (RunStatus::Interrupted, Usage::default());
    let end = RunFinished { machine: "m".into(), depth: 0, status, error: None, at: None, usage, detail: None };
    relay.commit(&thread, &run, &[end.into()], None).await.unwrap();
}

async fn host(relay: &Relay, fold: &RunFold) -> Publisher {
    let (thread, run) = run();
    relay.publisher(&thread, &run).await.unwrap().fenced(fold.resumed_at)
}

/// Through both doors. What is dropped is waited for like everything else.
async fn say(publisher: &Publisher, text: &'static str) {
    publisher.emit(Note::info(text).into());
    let mut batch = EventBatch::new();
    batch.push(Note::info(text).into());
    publisher.send(&mut batch).await;
    publisher.flush().await.unwrap();
}

/// All that is in the log, and the index is what it says.
async fn said(relay: &Relay) -> String {
    let (thread, run) = run();
    let page = relay.page(&thread, &PageQuery::default()).await.unwrap();
    let records: Vec<Record> = page.lines.iter().map(|line| Record::parse(line).unwrap()).collect();
    let mut fold = RunFold::new(run.clone(), thread);
    records.iter().for_each(|record| fold.apply_record(record));
    assert_eq!(relay.run(&run).await.unwrap(), Some(fold));
    let words = records.iter().enumerate().map(|(at, record)| {
        assert_eq!(record.seq.0, at as u64 + 1);
        match &record.event {
            Event::Note(note) => note.text.to_string(),
            event => event.kind().to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn a_host_that_was_replaced_writes_nothing_more() {
    let store = Arc::new(MemoryStore::new());
    let [stalled, other] = [0, 1].map(|_| Relay::start(store.clone(), Config::default()).unwrap());
    let old = host(&stalled, &start(&stalled, false).await).await;
    say(&old, "a").await;
    interrupt(&other).await;
    say(&old, "too-late").await;
    let new = host(&other, &start(&other, true).await).await;
    say(&old, "too-late").await;
    say(&new, "b").await;
    say(&old, "too-late").await;
    assert_eq!(said(&other).await, "run-start a a run-finished run-start b b");

    // Back where it was first, which has not heard of anything in between.
    interrupt(&other).await;
    let again = host(&stalled, &start(&stalled, true).await).await;
    say(&again, "c").await;
    say(&new, "too-late").await;
    say(&again, "d").await;
    assert_eq!(said(&stalled).await, "run-start a a run-finished run-start b b run-finished run-start c c d d");
}

/// A writer that was just told otherwise must not drop what is right.
#[tokio::test]
async fn a_host_in_the_same_process_is_not_taken_for_the_one_before() {
    let relay = Relay::start(Arc::new(MemoryStore::new()), Config::default()).unwrap();
    let mut expected = Vec::new();
    for round in 0..50 {
        let fold = start(&relay, round > 0).await;
        let publisher = host(&relay, &fold).await;
        say(&publisher, "x").await;
        interrupt(&relay).await;
        expected.extend(["run-start", "x", "x", "run-finished"]);
    }
    assert_eq!(said(&relay).await, expected.join(" "));
}
