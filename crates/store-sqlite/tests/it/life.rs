//! Opening, closing, and what stands in the folder.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

use taffrail_mcp_core::Seq;
use taffrail_relay::{Appended, Store};
use taffrail_store_sqlite::{Config, SqliteStore};
use taffrail_testutils::store_suite::{all_of, append, block, blocks, numbered, put, thread_id};

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn only_the_owner_can_read() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path().join("store.db"), Config::default()).unwrap();
    put(&store, append("t", 0, blocks("r", 0, &[1]))).await;
    assert_eq!(names(dir.path()), ["store.db", "store.db-shm", "store.db-turn", "store.db-wal"]);
    for name in names(dir.path()) {
        let mode = fs::metadata(dir.path().join(&name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    drop(store);
    assert_eq!(names(dir.path()), ["store.db", "store.db-turn"], "closed properly");
}

#[tokio::test]
async fn dropping_writes_what_was_handed_over() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    let store = SqliteStore::open(&path, Config::default()).unwrap();
    let waiting: Vec<_> =
        (0..200).map(|i| store.append(vec![append("t", i * 50, blocks("r", i * 50, &[50]))])).collect();
    let changes = store.changes();
    drop(store);
    for answer in waiting {
        assert_eq!(answer.await.unwrap(), [Appended::Stored]);
    }
    drop(changes);
    let store = SqliteStore::open(&path, Config::default()).unwrap();
    assert_eq!(store.extent(thread_id("t")).await.unwrap().head, Seq(10_000));
}

#[tokio::test]
async fn odd_paths_are_paths() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["file:x?mode=memory", "a b%20#é.db", ":memory:"] {
        let path = dir.path().join(name);
        let store = SqliteStore::open(&path, Config::default()).unwrap();
        put(&store, append("t", 0, blocks("r", 0, &[1]))).await;
        assert!(path.is_file(), "{name}");
    }
}

#[test]
fn many_threads_open_a_new_store_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    thread::scope(|scope| {
        for i in 0..8 {
            let path = &path;
            scope.spawn(move || {
                let store = SqliteStore::open(path, Config::default()).unwrap();
                let thread = format!("t{i}");
                assert_eq!(block_on(put(&store, append(&thread, 0, blocks("r", 0, &[1])))), Appended::Stored);
            });
        }
    });
    let store = SqliteStore::open(&path, Config::default()).unwrap();
    assert_eq!(block_on(store.threads()).unwrap().len(), 8);
}

/// A runtime that is not Tokio's.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn no_runtime_is_needed() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path().join("store.db"), Config::default()).unwrap();
    let written = numbered("r", 1, 700);
    assert_eq!(block_on(put(&store, append("t", 0, vec![written.clone()]))), Appended::Stored);
    assert_eq!(block_on(store.read(all_of("t"))).unwrap(), [written]);
}

#[tokio::test]
async fn compressed_blocks_take_less_room() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path().join("store.db"), Config::default()).unwrap();
    put(&store, append("t", 0, vec![block("r", 1, &vec!["the same line again and again"; 1000])])).await;
    let usage = &store.threads().await.unwrap()[0];
    assert!(usage.stored_bytes * 10 < usage.bytes, "{usage:?}");
}
