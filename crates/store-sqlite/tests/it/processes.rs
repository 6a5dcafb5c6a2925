//! Several processes on one file, some of which are killed.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::mpsc,
    time::{Duration, Instant, SystemTime},
};

use rusqlite::Connection;
use taffrail_mcp_core::Seq;
use taffrail_relay::Store;
use taffrail_store_sqlite::{Config, SqliteStore};
use taffrail_testutils::store_suite::{all_of, lines};

use crate::child::{Ack, Writer};

#[tokio::test]
async fn processes_open_a_new_store_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    let writers: Vec<_> = (0..6).map(|i| Writer::start("once", &path, &format!("w{i}"), |_| ())).collect();
    let acks: Vec<_> = writers.into_iter().flat_map(Writer::join).collect();
    assert_eq!(acks.len(), 6);
    check(&path, &acks).await;
}

#[tokio::test]
async fn two_floods_share_the_file_fairly() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    let writers = ["a", "b"].map(|name| Writer::start("flood", &path, name, |_| ()));
    let acks = writers.map(Writer::join);
    let counts = [acks[0].len(), acks[1].len()];
    println!("two floods: {counts:?} appends");
    assert!(counts.iter().all(|count| count * 5 > counts[0] + counts[1]), "{counts:?}");
    check(&path, &acks.concat()).await;
}

#[tokio::test]
async fn a_change_by_another_process_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    let store = SqliteStore::open(&path, Config::default()).unwrap();
    let mut changes = store.changes();
    let (sender, acks) = mpsc::channel();
    let writer = Writer::start("paced", &path, "w", move |_| _ = sender.send(Instant::now()));
    let mut noticed = Vec::new();
    while tokio::time::timeout(Duration::from_secs(2), changes.changed()).await.is_ok() {
        noticed.push(Instant::now());
    }
    writer.join();
    // From when the writer said so until the first change after it, or just before: it may be noticed first.
    let mut delays: Vec<_> = acks
        .iter()
        .map(|ack| {
            let first = noticed.iter().find(|at| **at + Duration::from_millis(20) > ack);
            first.map_or(Duration::MAX, |at| at.saturating_duration_since(ack))
        })
        .collect();
    delays.sort_unstable();
    println!("noticed after {delays:?}");
    assert_eq!(delays.len(), 20);
    assert!(delays[15] <= <dyn Store>::CHANGE_DELAY, "{delays:?}");
}

/// How many rounds of killing; more in a long run.
const ROUNDS: &str = "TAFFRAIL_KILL_ROUNDS";

#[tokio::test]
async fn killed_writers_lose_nothing_that_was_acknowledged() {
    let rounds = std::env::var(ROUNDS).map_or(20, |rounds| rounds.parse().unwrap());
    let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().subsec_nanos();
    let mut random = u64::from(seed);
    let dir = tempfile::tempdir().unwrap();
    let (mut path, mut acks) = (dir.path().join("0.db"), Vec::new());
    for round in 0..rounds {
        if round % 10 == 0 {
            // A new file now and then: making it can be interrupted as well.
            (path, acks) = (dir.path().join(format!("{round}.db")), Vec::new());
        }
        let writers = ["a", "b"].map(|name| Writer::start("all", &path, &format!("{name}{round}"), |_| ()));
        for writer in writers {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            std::thread::sleep(Duration::from_millis((random >> 33) % if round % 10 == 0 { 60 } else { 150 }));
            acks.extend(writer.kill());
        }
        check(&path, &acks).await;
    }
    println!("{} acknowledged in the last file, seed {seed}", acks.len());
}

/// Checks the file itself, that threads are dense, and that all that was acknowledged is there, or was trimmed.
async fn check(path: &Path, acks: &[Ack]) {
    let store = SqliteStore::open(path, Config::default()).unwrap();
    let integrity: String =
        Connection::open(path).unwrap().pragma_query_value(None, "integrity_check", |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok");
    let mut threads = std::collections::BTreeMap::new();
    for usage in store.threads().await.unwrap() {
        let read = store.read(all_of(usage.thread.as_str())).await.unwrap();
        let mut next = usage.extent.first;
        for block in &read {
            assert_eq!(block.first, next, "{usage:?}");
            next = block.last().next();
        }
        assert_eq!(next, usage.extent.head.next(), "{usage:?}");
        assert_eq!(usage.trimmed.records, usage.extent.first.0 - 1);
        assert_eq!(usage.bytes, read.iter().map(|b| b.bytes.len() as u64).sum::<u64>());
        let lines: Vec<_> = lines(&read).iter().map(|l| String::from_utf8(l.to_vec()).unwrap()).collect();
        assert_eq!(lines.iter().collect::<BTreeSet<_>>().len(), lines.len(), "something is there twice");
        threads.insert(usage.thread.to_string(), (usage.extent.first, lines));
    }
    for Ack { thread, seq, line } in acks {
        let (first, lines) = &threads[thread];
        if Seq(*seq) >= *first {
            let stored = lines.get((seq - first.0) as usize).map(|stored| stored.trim_end());
            assert_eq!(stored, Some(line.as_str()), "{thread} {seq}");
        } else {
            assert_eq!(thread, "trimmed");
        }
    }
}
