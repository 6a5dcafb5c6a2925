//! Many publishers, many readers, some of them stuck.

use std::{sync::Arc, thread::JoinHandle, time::Duration};

use bytes::Bytes;
use rustix::time::{ClockId, clock_gettime};
use taffrail_mcp_core::{EventBatch, EventSink, LogLine, Seq, Start, Stream};
use taffrail_relay::{Delivery, Follower, Publisher, RelayError};

use crate::support::{assert_dense, log, memory, message, note, read, run, text, thread, whole};

const THREADS: usize = 32;
const EMITS: usize = 10_000;
const READERS: u64 = 40;
const STALLED: u64 = 10;

/// Processor time of the calling thread: what `emit` itself costs, whoever else the machine runs meanwhile.
fn cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

fn start_writers(publisher: &Publisher) -> Vec<JoinHandle<Duration>> {
    (0..THREADS)
        .map(|writer| {
            let publisher = publisher.clone();
            std::thread::spawn(move || {
                let mut slowest = Duration::ZERO;
                for i in 0..EMITS {
                    let event = message(format!("{writer} {i}"));
                    let before = cpu();
                    publisher.emit(event);
                    slowest = slowest.max(cpu() - before);
                }
                slowest
            })
        })
        .collect()
}

fn slowest_of(writers: Vec<JoinHandle<Duration>>) -> Duration {
    writers.into_iter().map(|writer| writer.join().unwrap()).max().unwrap()
}

/// Follows up to a record. In memory these are the stored bytes themselves, so that many readers cost little.
async fn bytes_up_to(follower: &mut Follower, last: u64) -> Vec<Bytes> {
    let mut all = Vec::new();
    while follower.position() < Seq(last) {
        let Delivery::Blocks(blocks) = follower.next().await.unwrap() else { panic!("a gap") };
        all.extend(blocks.into_iter().map(|block| block.bytes));
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_two_threads_and_fifty_readers_see_one_log() {
    let relay = memory();
    let publisher = relay.publisher(&thread(), &run("r")).await.unwrap();
    let total = THREADS * EMITS;
    publisher.emit(note("first"));
    publisher.flush().await.unwrap();

    // Stalled for ever: they took a first delivery and never come back.
    let mut stalled = Vec::new();
    for _ in 0..STALLED {
        let mut follower = relay.follow(&thread(), None, Start::Beginning).await.unwrap();
        follower.next().await.unwrap();
        stalled.push(follower);
    }
    let writers = start_writers(&publisher);
    let readers: Vec<_> = (0..READERS)
        .map(|reader| {
            let relay = relay.clone();
            tokio::spawn(async move {
                // They join wherever the log happens to be, at cursors spread over it.
                let mut live = relay.follow(&thread(), None, Start::Live).await.unwrap();
                let after = Seq(live.head().0 * reader / READERS);
                if reader % 7 == 0 {
                    live.next().await.unwrap();
                }
                let mut follower = relay.follow(&thread(), None, Start::After(after)).await.unwrap();
                (after, bytes_up_to(&mut follower, total as u64 + 1).await)
            })
        })
        .collect();
    let mut slowest = slowest_of(writers);
    publisher.flush().await.unwrap();
    let log = whole(&relay, total + 1).await;
    assert_dense(&log, Seq::START);
    let log: Vec<String> = log.iter().map(text).collect();
    // Each publisher's events are there once, in its order.
    let mut next = [0; THREADS];
    for text in &log[1..] {
        let (writer, i) = text.split_once(' ').unwrap();
        let next = &mut next[writer.parse::<usize>().unwrap()];
        assert_eq!(i.parse::<usize>().unwrap(), *next);
        *next += 1;
    }
    assert_eq!(next, [EMITS; THREADS]);
    let mut follower = relay.follow(&thread(), None, Start::Beginning).await.unwrap();
    let reference = bytes_up_to(&mut follower, total as u64 + 1).await.concat();
    let starts: Vec<usize> =
        std::iter::once(0).chain(memchr::memchr_iter(b'\n', &reference).map(|end| end + 1)).collect();
    for reader in readers {
        let (after, seen) = reader.await.unwrap();
        let mut at = starts[after.0 as usize];
        for bytes in seen {
            assert!(bytes == reference[at..at + bytes.len()], "a reader from {after} got something else at byte {at}");
            at += bytes.len();
        }
        assert_eq!(at, reference.len(), "a reader from {after} did not get all");
    }
    for mut follower in stalled {
        // A stalled reader that comes back finds everything.
        let position = follower.position();
        assert_eq!(
            bytes_up_to(&mut follower, total as u64 + 1).await.concat(),
            reference[starts[position.0 as usize]..]
        );
    }
    // A page fault or an interrupt is counted to whom it hits, so one slow call may be the machine's: not three times.
    for _ in 0..2 {
        if slowest >= Duration::from_millis(1) {
            slowest = slowest_of(start_writers(&publisher));
        }
    }
    assert!(slowest < Duration::from_millis(1), "slowest emit took {slowest:?} of processor time");
}

#[tokio::test]
async fn nothing_is_visible_live_before_it_is_asked_for_and_all_after() {
    let relay = memory();
    let publisher = relay.publisher(&thread(), &run("r")).await.unwrap();
    publisher.emit(note("before"));
    publisher.flush().await.unwrap();
    let mut live = relay.follow(&thread(), None, Start::Live).await.unwrap();
    assert_eq!(live.try_next().await.unwrap(), None);
    publisher.emit(note("after"));
    assert_eq!(text(&read(&mut live, 1).await[0]), "after");
}

#[tokio::test]
async fn a_batch_waits_for_room_and_is_whole() {
    let relay = memory();
    let publisher = relay.publisher(&thread(), &run("r")).await.unwrap();
    let mut batch = EventBatch::new();
    let line = "x".repeat(1000);
    let (batches, lines) = (200, 100);
    for _ in 0..batches {
        for _ in 0..lines {
            batch.push_line(&LogLine::new("s", Stream::Stdout, line.as_bytes()));
        }
        batch.push(note("end of batch"));
        publisher.send(&mut batch).await;
        assert!(batch.is_empty());
    }
    publisher.flush().await.unwrap();
    let records = whole(&relay, batches * (lines + 1)).await;
    assert_dense(&records, Seq::START);
    let fold = relay.run(&run("r")).await.unwrap().unwrap();
    assert_eq!(fold.usage.log_lines, (batches * lines) as u64);
    assert_eq!(fold.usage.log_bytes, (batches * lines * 1001) as u64);
    assert_eq!(fold.last, Seq((batches * (lines + 1)) as u64));
}

#[tokio::test]
async fn runs_of_one_thread_are_told_apart() {
    let relay = memory();
    let (a, b) = (run("a"), run("b"));
    let publisher_a = relay.publisher(&thread(), &a).await.unwrap();
    let publisher_b = relay.publisher(&thread(), &b).await.unwrap();
    for i in 0..50 {
        publisher_a.emit(note(format!("a{i}")));
        publisher_b.emit(log("s", Stream::Stdout, &format!("b{i}")));
    }
    publisher_a.flush().await.unwrap();
    let mut follower = relay.follow(&thread(), Some(b.clone()), Start::Beginning).await.unwrap();
    let records = read(&mut follower, 50).await;
    assert!(records.iter().all(|record| record.run == b));
    assert_eq!(text(&records[49]), "b49");
    assert_eq!(relay.run(&b).await.unwrap().unwrap().usage.log_lines, 50);
    assert_eq!(relay.run(&a).await.unwrap().unwrap().usage.log_lines, 0);
}

#[tokio::test]
async fn closing_stores_what_was_accepted() {
    let store = taffrail_relay::MemoryStore::new();
    let relay = crate::support::relay(store.clone());
    let publisher = relay.publisher(&thread(), &run("r")).await.unwrap();
    for i in 0..1000 {
        publisher.emit(note(i.to_string()));
    }
    relay.close().await;
    let reader = crate::support::relay(store);
    assert_eq!(whole(&reader, 1000).await.len(), 1000);
    let mut follower = Arc::new(reader).follow(&thread(), None, Start::Beginning).await.unwrap();
    assert!(matches!(follower.try_next().await.unwrap(), Some(Delivery::Blocks(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_outlive_a_relay_and_are_told_when_they_have_everything() {
    let relay = memory();
    let publisher = relay.publisher(&thread(), &run("r")).await.unwrap();
    publisher.emit(note("first"));
    publisher.flush().await.unwrap();
    let [mut waiting, mut behind] = [
        relay.follow(&thread(), None, Start::Live).await.unwrap(),
        relay.follow(&thread(), None, Start::Beginning).await.unwrap(),
    ];
    let waiting = tokio::spawn(async move {
        let last = read(&mut waiting, 1).await;
        (last, waiting.next().await)
    });
    publisher.emit(note("last"));
    relay.close().await;
    let (last, then) = waiting.await.unwrap();
    assert_eq!(text(&last[0]), "last");
    assert!(matches!(then, Err(RelayError::Closed)), "{then:?}");
    assert_eq!(read(&mut behind, 2).await.len(), 2);
    assert!(matches!(behind.next().await, Err(RelayError::Closed)));
    // So is who comes after the end.
    let mut late = relay.follow(&thread(), None, Start::Live).await.unwrap();
    assert!(matches!(late.wait().await, Err(RelayError::Closed)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_readers_are_woken_together_and_each_gets_everything() {
    let relay = memory();
    let publisher = relay.publisher(&thread(), &run("r")).await.unwrap();
    let mut readers = Vec::new();
    for _ in 0..200 {
        let mut follower = relay.follow(&thread(), None, Start::Live).await.unwrap();
        readers.push(tokio::spawn(async move { read(&mut follower, 301).await }));
    }
    for i in 0..300 {
        publisher.emit(note(i.to_string()));
        publisher.flush().await.unwrap();
    }
    // Nothing comes after it that could wake them.
    publisher.emit(note("last"));
    for reader in readers {
        let records = tokio::time::timeout(Duration::from_secs(30), reader).await.unwrap().unwrap();
        assert_dense(&records, Seq::START);
        assert_eq!(text(records.last().unwrap()), "last");
    }
}
