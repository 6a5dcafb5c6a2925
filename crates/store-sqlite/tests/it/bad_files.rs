//! Files that are not ours, from the future, or damaged.

use std::{fs, path::Path, sync::Arc};

use rusqlite::Connection;
use taffrail_mcp_core::Seq;
use taffrail_relay::{Appended, ReadBlocks, Store, StoreError};
use taffrail_store_sqlite::{Config, FORMAT_VERSION, SqliteStore};
use taffrail_testutils::store_suite::{all_of, append, blocks, put, thread_id};

fn open(path: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(path, Config::default())
}

/// Opens what `make` has made, and checks that it is refused and nothing was touched.
fn refused(make: impl FnOnce(&Path)) -> StoreError {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    make(&path);
    let before = fs::read(&path).unwrap();
    let error = open(&path).unwrap_err();
    assert_eq!(fs::read(&path).unwrap(), before, "{error}: the file was changed");
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["store.db"], "{error}: something was left beside it");
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    error
}

#[test]
fn not_a_database() {
    for bytes in [&b"x"[..], b"hello, world\n", &[0; 8192], &[b'a'; 100_000], b"SQLite format 3\0 but no more"] {
        let error = refused(|path| fs::write(path, bytes).unwrap());
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
        assert!(!error.is_transient());
    }
}

#[test]
fn another_programs_database() {
    for sql in ["CREATE TABLE t (a)", "PRAGMA user_version = 1", "PRAGMA application_id = 7; CREATE TABLE threads (a)"]
    {
        let error = refused(|path| Connection::open(path).unwrap().execute_batch(sql).unwrap());
        assert!(matches!(&error, StoreError::Corrupt { detail, .. } if detail.contains("another program")), "{error}");
    }
}

#[test]
fn a_newer_version() {
    let error = refused(|path| {
        drop(open(path).unwrap());
        fs::remove_file(path.with_file_name("store.db-turn")).unwrap();
        let conn = Connection::open(path).unwrap();
        conn.pragma_update(None, "user_version", FORMAT_VERSION + 6).unwrap();
    });
    let StoreError::Newer { found, known, .. } = error else { panic!("{error}") };
    assert_eq!((found, known), (FORMAT_VERSION + 6, FORMAT_VERSION));
}

#[test]
fn an_empty_file_is_a_new_store() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    fs::write(&path, b"").unwrap();
    open(&path).unwrap();
}

#[test]
fn places_where_no_file_can_be() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), b"").unwrap();
    // A folder without write permission cannot be tested here: root, who runs the tests in CI, may write everywhere.
    for path in ["file/store.db", "missing/store.db", "."] {
        let path = dir.path().join(path);
        let error = open(&path).unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
        assert!(error.to_string().contains(dir.path().to_str().unwrap()), "{error}");
    }
}

/// A store with ten blocks of a thousand records, closed.
async fn filled(path: &Path) {
    let store = open(path).unwrap();
    for i in 0..10 {
        assert_eq!(put(&store, append("t", i * 1000, blocks("r", i * 1000, &[1000]))).await, Appended::Stored);
    }
}

fn is_corrupt<T: std::fmt::Debug>(result: Result<T, StoreError>, path: &Path) -> String {
    match result {
        Err(StoreError::Corrupt { path: named, detail }) if named == path => detail,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_damaged_block_is_named_and_spares_the_others() {
    let damages = [
        "codec = 9",
        "raw = raw + 1",
        "raw = 9223372036854775807",
        "raw = -1",
        "count = count + 1",
        "count = 1",
        "bytes = substr(bytes, 1, length(bytes) - 1)",
        "bytes = zeroblob(0)",
        "bytes = zeroblob(length(bytes))",
        "codec = 0",
        "run = '../x'",
    ];
    for damage in damages {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.db");
        filled(&path).await;
        let sql = format!("UPDATE blocks SET {damage} WHERE (id & 0xfffff) = 3001");
        assert_eq!(Connection::open(&path).unwrap().execute(&sql, []).unwrap(), 1);
        let store = open(&path).unwrap();
        let detail = is_corrupt(store.read(all_of("t")).await, &path);
        assert!(damage.starts_with("raw = -1") || detail.contains("3001"), "{damage}: {detail}");
        for (after, until) in [(0, 3000), (4000, 10_000)] {
            let query = ReadBlocks { after: Seq(after), until: Seq(until), ..all_of("t") };
            assert_eq!(store.read(query).await.unwrap().len() as u64, (until - after) / 1000, "{damage}");
        }
    }
}

#[tokio::test]
async fn a_truncated_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    filled(&path).await;
    let whole = fs::read(&path).unwrap();
    for percent in [10, 50, 90] {
        let cut = whole.len() * percent / 100;
        fs::write(&path, &whole[..cut]).unwrap();
        is_corrupt(open(&path).map(drop), &path);
        assert!(fs::read(&path).unwrap() == whole[..cut], "{percent} %: the file was changed");
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(open(&path).unwrap().extent(thread_id("t")).await.unwrap().head, Seq(10_000), "it was only cut");
}

#[tokio::test]
async fn a_damaged_page_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.db");
    filled(&path).await;
    let whole = fs::read(&path).unwrap();
    let (mut noticed, pages) = (0, whole.len() / 4096);
    for page in 1..pages {
        let mut damaged = whole.clone();
        damaged[page * 4096..][..4096].fill(0xa5);
        fs::write(&path, &damaged).unwrap();
        match open(&path) {
            Ok(store) => {
                let store: Arc<dyn Store> = Arc::new(store);
                let reads = [store.read(all_of("t")).await.map(drop), store.threads().await.map(drop)];
                for error in reads.into_iter().filter_map(Result::err) {
                    is_corrupt::<()>(Err(error), &path);
                    noticed += 1;
                }
            }
            Err(error) => is_corrupt::<()>(Err(error), &path).truncate(0),
        }
    }
    // Some pages belong to indexes that these two queries do not read.
    assert!(noticed > pages / 2, "{noticed} of {pages}");
}
