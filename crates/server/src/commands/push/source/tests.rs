//! What is sent, from wherever it is asked for.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use taffrail_mcp_core::{CancelRequested, EventSink as _, Note, RunFinished, RunId, RunStart, RunStatus};
use taffrail_relay::{Config, MemoryStore};

use super::*;

/// A run's log: its start, notes, a request that came from the server and one that did not, its end.
async fn log(notes: usize) -> (Relay, ThreadId) {
    let relay = Relay::start(Arc::new(MemoryStore::new()), Config::default()).unwrap();
    let run = RunId::new("r").unwrap();
    let thread = ThreadId::from(run.clone());
    let publisher = relay.publisher(&thread, &run).await.unwrap();
    let start = RunStart { machine: "m".into(), depth: 0, entry: "e".into(), resumed: false, external: false };
    publisher.emit(start.into());
    for n in 0..notes {
        if n == notes / 2 {
            for actor in ["server:op", "cli:me"] {
                publisher.emit(CancelRequested { actor: actor.into(), reason: None, kill: false }.into());
            }
        }
        publisher.emit(Note::info(format!("note {n}")).into());
        if n % 3 == 0 {
            publisher.flush().await.unwrap();
        }
    }
    let end = RunFinished {
        machine: "m".into(),
        depth: 0,
        status: RunStatus::Done,
        error: None,
        at: None,
        usage: Default::default(),
        detail: None,
    };
    publisher.emit(end.into());
    publisher.flush().await.unwrap();
    (relay, thread)
}

/// What is to be sent of it.
fn expected(notes: usize) -> Vec<String> {
    let mut texts: Vec<_> = (0..notes).map(|n| format!("note {n}")).collect();
    texts.insert(notes / 2, "cli:me".into());
    texts.push("run-finished".into());
    texts
}

fn texts(batch: &Batch) -> Vec<String> {
    let lines = std::str::from_utf8(&batch.lines).unwrap().lines();
    let text = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        assert!(event["ts"].is_string() && event["seq"].is_null() && event["run"].is_null(), "{event}");
        let text = event["text"].as_str().or_else(|| event["actor"].as_str()).or_else(|| event["type"].as_str());
        text.unwrap().to_owned()
    };
    let texts: Vec<_> = lines.map(text).collect();
    assert_eq!(texts.len() as u64, batch.count);
    texts
}

fn number(n: u64) -> NonZeroU64 {
    NonZeroU64::new(n).unwrap()
}

fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
}

#[test]
fn what_is_sent_is_the_event_with_its_time() {
    run(async {
        let (relay, thread) = log(1).await;
        let mut source = LocalLog::new(relay, thread);
        let batch = source.read(number(1), 1).await;
        let event: Value = serde_json::from_slice(&batch.lines).unwrap();
        assert_eq!((batch.count, &event["type"], &event["actor"]), (1, &json!("cancel-requested"), &json!("cli:me")));
        assert!(batch.lines.starts_with(b"{\"ts\":\"") && batch.lines.ends_with(b"}\n"));
        let all = source.read(number(1), 1 << 20).await;
        assert!(all.last && all.count == 3);
    });
}

#[test]
fn the_end_of_the_log_is_waited_at() {
    run(async {
        let (relay, thread) = log(5).await;
        let mut source = LocalLog::new(relay.clone(), thread);
        let batch = source.read(number(1), 1 << 20).await;
        assert_eq!(texts(&batch), expected(5));
        let next = number(batch.count + 1);
        assert_eq!(source.read(next, 1 << 20).await, Batch::default());
        relay.close().await;
        // Told once, so that the last records are read; then there is nothing to wait for.
        source.more().await;
        assert_eq!(source.read(next, 1 << 20).await, Batch::default());
        assert!(tokio::time::timeout(Duration::from_millis(5), source.more()).await.is_err());
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A number means the same event, whatever was asked for before.
    #[test]
    fn numbers_mean_the_same_events(
        notes in 1..40usize,
        asked in prop::collection::vec((1..50u64, 1..600usize), 1..20),
    ) {
        run(async {
            let (relay, thread) = log(notes).await;
            let mut source = LocalLog::new(relay, thread);
            let expected = expected(notes);
            for (from, most_bytes) in asked {
                let batch = source.read(number(from), most_bytes).await;
                let at = from as usize - 1;
                if at >= expected.len() {
                    prop_assert_eq!(batch, Batch::default());
                    continue;
                }
                let texts = texts(&batch);
                prop_assert!(!texts.is_empty());
                prop_assert_eq!(&texts[..], &expected[at..at + texts.len()]);
                prop_assert_eq!(batch.last, at + texts.len() == expected.len());
                prop_assert!(batch.count == 1 || batch.lines.len() <= most_bytes);
            }
            Ok(())
        })?;
    }
}
