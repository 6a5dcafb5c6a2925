//! Full disks, locks held by others, logs that grow.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use rusqlite::Connection;
use taffrail_mcp_core::{RunStatus, Seq};
use taffrail_relay::{Append, Appended, Store, StoreError};
use taffrail_store_sqlite::{Config, Durability, SqliteStore};
use taffrail_testutils::store_suite::{all_of, append, block, blocks, fold, put, run_id, thread_id};

/// One block of `size` bytes that do not compress.
fn noise(first: u64, size: usize) -> taffrail_relay::Block {
    let mut state = first;
    let line = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 57) as u8 | 0x80
    });
    block("r", first, &[line.take(size - 1).collect::<Vec<u8>>()])
}

#[tokio::test]
async fn a_full_store_takes_nothing_and_a_trim_makes_room() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    let config = Config { max_bytes: Some(4 << 20), ..Config::default() };
    let store = SqliteStore::open(&path, config).unwrap();
    let mut head = 0;
    let error = loop {
        let all = Append {
            runs: vec![fold("r", "t", RunStatus::Running)],
            ..append("t", head, vec![noise(head + 1, 100_000)])
        };
        match store.append(vec![all]).await {
            Ok(answers) => assert_eq!(answers, [Appended::Stored]),
            Err(error) => break error,
        }
        head += 1;
    };
    assert!(matches!(&error, StoreError::Full { path: named } if *named == path), "{error:?}");
    assert!(error.is_transient());
    assert!((30..42).contains(&head), "{head} blocks of 100 kB");
    // Whole groups fail, and what was there stays readable.
    let group = vec![append("u", 0, blocks("r", 0, &[1])), append("t", head, vec![noise(head + 1, 1 << 20)])];
    assert!(matches!(store.append(group).await, Err(StoreError::Full { .. })));
    assert_eq!(store.extent(thread_id("u")).await.unwrap().head, Seq(0));
    assert_eq!(store.read(all_of("t")).await.unwrap().len() as u64, head);

    assert_eq!(store.trim(thread_id("t"), Seq(20)).await.unwrap().records, 20);
    for _ in 0..19 {
        assert_eq!(put(&store, append("t", head, vec![noise(head + 1, 100_000)])).await, Appended::Stored);
        head += 1;
    }
    assert!(fs::metadata(&path).unwrap().len() <= 4 << 20);
}

#[tokio::test]
async fn a_lock_that_is_held_too_long_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    let config = Config { busy_timeout: Duration::from_millis(300), ..Config::default() };
    let store = SqliteStore::open(&path, config).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let start = Instant::now();
    let waiting = store.append(vec![append("t", 0, blocks("r", 0, &[1]))]);
    assert_eq!(store.extent(thread_id("t")).await.unwrap().head, Seq(0), "reads go on");
    let error = waiting.await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }) && error.is_transient(), "{error:?}");
    assert!(start.elapsed() >= Duration::from_millis(300));

    let waiting = store.append(vec![append("t", 0, blocks("r", 0, &[1]))]);
    std::thread::sleep(Duration::from_millis(50));
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(waiting.await.unwrap(), [Appended::Stored], "a short wait is nobody's business");
}

#[tokio::test]
async fn a_trim_goes_in_steps_and_appends_go_between() {
    let dir = tempfile::tempdir().unwrap();
    let config = Config { durability: Durability::Process, ..Config::default() };
    let store = SqliteStore::open(dir.path().join("store.db"), config).unwrap();
    for i in 0..80 {
        put(&store, append("t", i, vec![noise(i + 1, 1 << 20)])).await;
    }
    let trim = store.trim(thread_id("t"), Seq(75));
    let later = store.append(vec![append("t", 80, blocks("r", 80, &[1]))]);
    assert_eq!(later.await.unwrap(), [Appended::Stored]);
    let removed = trim.await.unwrap();
    assert_eq!((removed.records, removed.bytes), (75, 75 << 20));
    let extent = store.extent(thread_id("t")).await.unwrap();
    assert_eq!((extent.first, extent.head), (Seq(76), Seq(81)));
    assert_eq!(store.read(all_of("t")).await.unwrap().len(), 6);
    store.forget(run_id("r")).await.unwrap();
}

fn wal(path: &Path) -> u64 {
    fs::metadata(path.with_file_name("store.db-wal")).unwrap().len()
}

#[tokio::test]
async fn the_write_ahead_log_stays_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    let config = Config { durability: Durability::Process, ..Config::default() };
    let store = SqliteStore::open(&path, config).unwrap();
    let mut head = 0;
    let mut write = async |mebibytes: u64| {
        for _ in 0..mebibytes {
            put(&store, append("t", head, vec![noise(head + 1, 1 << 20)])).await;
            head += 1;
        }
    };
    write(200).await;
    assert!(wal(&path) < 80 << 20, "{} bytes", wal(&path));
    // A reader that stays in its transaction pins the log; when it goes the log is cut.
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    reader.query_row("SELECT count(*) FROM blocks", [], |row| row.get::<_, i64>(0)).unwrap();
    write(100).await;
    assert!(wal(&path) > 80 << 20, "{} bytes: pinned", wal(&path));
    reader.execute_batch("COMMIT").unwrap();
    write(10).await;
    assert!(wal(&path) < 80 << 20, "{} bytes", wal(&path));
}
