//! Events from elsewhere: sent again, out of order, by two at once, to two processes, and still stored once.

use std::num::NonZeroU64;

use proptest::prelude::*;
use taffrail_mcp_core::{
    Event, EventBatch, ProducerId, RunFinished, RunFold, RunStart, RunStatus, Seq, Stream, Timestamp, Usage,
};
use taffrail_relay::{Arrival, MemoryStore, Numbered, Publisher, Receipt, Relay, RelayError};

use crate::support::{assert_dense, log, memory, message, relay, run, text, thread, whole};

fn started() -> Event {
    RunStart { machine: "m".into(), depth: 0, entry: "s".into(), resumed: false, external: true }.into()
}

fn finished() -> Event {
    let (usage, status) = (Usage::default(), RunStatus::Done);
    RunFinished { machine: "m".into(), depth: 0, status, error: None, at: None, usage, detail: None }.into()
}

/// The events that producer `name` has numbered `first` and so on.
fn batch(name: &str, first: u64, count: u64) -> Arrival {
    let mut batch = EventBatch::new();
    (first..first + count).for_each(|n| batch.push(log("s", Stream::Stdout, &format!("{name}{n}"))));
    numbered(name, first, batch)
}

fn numbered(name: &str, first: u64, batch: EventBatch) -> Arrival {
    let (producer, first) = (ProducerId::new(name).unwrap(), NonZeroU64::new(first).unwrap());
    Arrival { parts: vec![(None, batch)], numbered: Some(Numbered { producer, first }) }
}

async fn open(relay: &Relay) -> Publisher {
    relay.publisher(&thread(), &run("r")).await.unwrap()
}

fn receipt(first: u64, last: u64, stored: u64, known: u64) -> Receipt {
    Receipt { first: Some(Seq(first)), last: Some(Seq(last)), stored, known }
}

async fn texts(relay: &Relay) -> Vec<String> {
    let head = relay.extent(&thread()).await.unwrap().head;
    let records = whole(relay, head.0 as usize).await;
    assert_dense(&records, Seq::START);
    let stored = relay.run(&run("r")).await.unwrap().unwrap();
    let mut folded = RunFold::new(run("r"), thread());
    records.iter().for_each(|record| folded.apply_record(record));
    assert_eq!(stored, folded, "the index is the fold of the log");
    records.iter().map(text).collect()
}

#[tokio::test]
async fn what_arrives_again_is_known() {
    let relay = memory();
    let to = open(&relay).await;
    assert_eq!(to.ingest(batch("a", 1, 3)).await.unwrap(), receipt(1, 3, 3, 0));
    assert_eq!(to.ingest(batch("a", 1, 3)).await.unwrap(), receipt(1, 3, 0, 3));
    assert_eq!(to.ingest(batch("b", 1, 1)).await.unwrap(), receipt(4, 4, 1, 0));
    assert_eq!(to.ingest(batch("a", 2, 4)).await.unwrap(), receipt(2, 6, 2, 2));
    // Its place is not known any more, only that it is there.
    let old = Receipt { first: None, last: None, stored: 0, known: 2 };
    assert_eq!(to.ingest(batch("a", 1, 2)).await.unwrap(), old);
    assert_eq!(texts(&relay).await, ["a1", "a2", "a3", "b1", "a4", "a5"]);
}

#[tokio::test]
async fn a_hole_tells_what_is_missing_and_stores_nothing() {
    let relay = memory();
    let to = open(&relay).await;
    to.ingest(batch("a", 1, 2)).await.unwrap();
    let error = to.ingest(batch("a", 4, 1)).await.unwrap_err();
    assert!(matches!(error, RelayError::Hole { expected: 3, given: 4, .. }), "{error}");
    let error = to.ingest(batch("b", 2, 1)).await.unwrap_err();
    assert!(matches!(error, RelayError::Hole { expected: 1, given: 2, .. }), "{error}");
    to.ingest(batch("a", 3, 2)).await.unwrap();
    assert_eq!(texts(&relay).await, ["a1", "a2", "a3", "a4"]);
}

/// Two API processes: what one took, the other knows, though it has never looked.
#[tokio::test]
async fn another_process_knows_what_arrived() {
    let store = MemoryStore::new();
    let relays = [relay(store.clone()), relay(store)];
    let to = [open(&relays[0]).await, open(&relays[1]).await];
    for n in 0..20 {
        to[n as usize % 2].ingest(batch("a", n * 3 + 1, 3)).await.unwrap();
        assert_eq!(to[(n as usize + 1) % 2].ingest(batch("a", n * 3 + 1, 3)).await.unwrap().known, 3);
    }
    assert_eq!(texts(&relays[0]).await.len(), 60);
}

#[tokio::test]
async fn a_run_that_is_over_takes_nothing_but_knows_what_it_has() {
    let relay = memory();
    let to = open(&relay).await;
    let mut all = EventBatch::new();
    all.push(started());
    all.push(finished());
    to.ingest(numbered("a", 1, all)).await.unwrap();
    let mut again = EventBatch::new();
    again.push(started());
    again.push(finished());
    assert_eq!(to.ingest(numbered("a", 1, again)).await.unwrap(), receipt(1, 2, 0, 2));
    for late in [batch("a", 3, 1), batch("b", 1, 1), batch("a", 2, 2)] {
        let error = to.ingest(late).await.unwrap_err();
        assert!(matches!(error, RelayError::RunOver { status: RunStatus::Done, .. }), "{error}");
    }
    let unnumbered = Arrival { numbered: None, ..batch("a", 1, 1) };
    assert!(matches!(to.ingest(unnumbered).await, Err(RelayError::RunOver { .. })));
    assert_eq!(relay.extent(&thread()).await.unwrap().head, Seq(2));
}

#[tokio::test]
async fn times_from_elsewhere_are_kept_but_never_go_back_or_ahead() {
    let relay = memory();
    let to = open(&relay).await;
    let part = |ts: &str, text: &str| {
        let mut batch = EventBatch::new();
        batch.push(message(text));
        (Some(ts.parse::<Timestamp>().unwrap()), batch)
    };
    let (one, two) = ("2020-01-01T00:00:01.000000Z", "2020-01-01T00:00:02.000000Z");
    let parts = vec![part(one, "1"), part(two, "2"), part(one, "back"), part("2999-01-01T00:00:00.000000Z", "ahead")];
    assert_eq!(to.ingest(Arrival { parts, numbered: None }).await.unwrap(), receipt(1, 4, 4, 0));
    let records = whole(&relay, 4).await;
    let times: Vec<_> = records.iter().map(|record| record.ts.to_string()).collect();
    assert_eq!(times[..3], [one, two, two]);
    assert!(times[3].as_str() > "2026" && times[3].as_str() < "2900", "{times:?}");
}

/// What a producer kept while the server was away is older than the start that the server then wrote.
#[tokio::test]
async fn what_is_older_than_the_start_of_its_run_does_not_go_before_it() {
    let store = std::sync::Arc::new(MemoryStore::new());
    let on = || Relay::start(std::sync::Arc::<MemoryStore>::clone(&store), Default::default()).unwrap();
    let first = on();
    let start = first.commit(&thread(), &run("r"), &[started()], None).await.unwrap().updated_at;
    // Of the process that wrote it, and of one that has not looked.
    for (n, relay) in (1..).zip([first, on()]) {
        let (_, events) = batch("a", n, 1).parts.remove(0);
        let old = Arrival { parts: vec![(Some(Timestamp::from_micros(1)), events)], ..batch("a", n, 1) };
        open(&relay).await.ingest(old).await.unwrap();
        let records = whole(&relay, n as usize + 1).await;
        assert!(records.iter().all(|record| record.ts >= start), "{records:?}");
        assert!(records.is_sorted_by_key(|record| record.ts));
    }
}

#[tokio::test]
async fn a_run_has_so_many_producers() {
    let relay = memory();
    let to = open(&relay).await;
    for n in 0..256 {
        to.ingest(batch(&format!("p{n}"), 1, 1)).await.unwrap();
    }
    let error = to.ingest(batch("one-more", 1, 1)).await.unwrap_err();
    assert!(matches!(error, RelayError::TooManyProducers { limit: 256, .. }), "{error}");
    to.ingest(batch("p0", 2, 1)).await.unwrap();
}

#[derive(Debug, Clone)]
struct Sent {
    relay: usize,
    producer: usize,
    /// How far before what comes next the batch begins.
    back: u64,
    count: u64,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Batches of three producers, with any overlap, to either of two processes, many at a time: each event is there once,
    /// and in its producer's order.
    #[test]
    fn each_event_is_stored_once(sent in prop::collection::vec(
        (0..2usize, 0..3usize, 0..6u64, 0..6u64).prop_map(|(relay, producer, back, count)| Sent { relay, producer, back, count }),
        1..40,
    )) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let store = MemoryStore::new();
            let relays = [relay(store.clone()), relay(store)];
            let to = [open(&relays[0]).await, open(&relays[1]).await];
            let mut next = [1u64; 3];
            for round in sent.chunks(4) {
                let mut calls = Vec::new();
                let at = next;
                for Sent { relay, producer, back, count } in round.iter().cloned() {
                    let first = at[producer].saturating_sub(back).max(1);
                    next[producer] = next[producer].max(first + count);
                    let arrival = batch(["a", "b", "c"][producer], first, count);
                    let to = to[relay].clone();
                    calls.push(tokio::spawn(async move { to.ingest(arrival).await }));
                }
                for call in calls {
                    call.await.unwrap().unwrap();
                }
            }
            let stored = if next == [1; 3] { Vec::new() } else { texts(&relays[0]).await };
            for (producer, next) in ["a", "b", "c"].into_iter().zip(next) {
                let mine: Vec<_> = stored.iter().filter(|text| text.starts_with(producer)).cloned().collect();
                let all: Vec<_> = (1..next).map(|n| format!("{producer}{n}")).collect();
                assert_eq!(mine, all);
            }
        });
    }
}
