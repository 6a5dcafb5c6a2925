//! Servers that hang, stores that are dropped.

use std::time::{Duration, Instant};

use taffrail_mcp_core::Seq;
use taffrail_relay::{Appended, Store, StoreError};
use taffrail_store_postgres::{Config, PostgresStore};
use taffrail_testutils::{
    postgres::PgCluster,
    store_suite::{all_of, append, blocks, put, thread_id},
};

use crate::server::{fresh_url, open};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_holds_nobody_for_ever() {
    let server = PgCluster::start();
    let config =
        Config { statement_timeout: Duration::from_secs(1), patience: Duration::from_secs(1), ..Config::default() };
    let url = format!("{}?connect_timeout=1", server.url(&server.fresh_database()));
    let store = PostgresStore::open(&url, config).await.unwrap();
    put(&store, append("t", 0, blocks("r", 0, &[2]))).await;
    assert_eq!(store.read(all_of("t")).await.unwrap().len(), 1);
    server.freeze();
    let start = Instant::now();
    let appending = store.append(vec![append("t", 2, blocks("r", 2, &[3]))]);
    let reading = store.read(all_of("t"));
    for error in [appending.await.unwrap_err(), reading.await.unwrap_err()] {
        assert!(matches!(error, StoreError::Unavailable { .. }) && error.is_transient(), "{error:?}");
    }
    // Again, now that there are no connections.
    let error = store.append(vec![append("t", 2, blocks("r", 2, &[3]))]).await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    println!("given up after {:?}", start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    server.thaw();
    // What was sent before may have been done meanwhile, whole.
    let head = store.extent(thread_id("t")).await.unwrap().head;
    assert!([Seq(2), Seq(5)].contains(&head), "{head}");
    let answer = put(&store, append("t", 2, blocks("r", 2, &[3]))).await;
    assert!([Appended::Stored, Appended::Conflict { head: Seq(5) }].contains(&answer), "{answer:?}");
    assert_eq!(store.read(all_of("t")).await.unwrap(), blocks("r", 0, &[2, 3]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_wait_for_a_server_that_comes_back() {
    let server = PgCluster::start();
    let store = open(&server.url(&server.fresh_database())).await;
    put(&store, append("t", 0, blocks("r", 0, &[2]))).await;
    server.stop();
    let reading = store.read(all_of("t"));
    let error = store.append(vec![append("t", 2, blocks("r", 2, &[1]))]).await.unwrap_err();
    assert!(error.is_transient(), "an append is answered at once: {error:?}");
    server.begin();
    assert_eq!(reading.await.unwrap(), blocks("r", 0, &[2]));
    assert_eq!(put(&store, append("t", 2, blocks("r", 2, &[1]))).await, Appended::Stored);
}

#[tokio::test]
async fn dropping_writes_what_was_handed_over() {
    let url = fresh_url();
    let store = open(&url).await;
    let waiting: Vec<_> =
        (0..200).map(|i| store.append(vec![append("t", i * 50, blocks("r", i * 50, &[50]))])).collect();
    let reading = store.read(all_of("t"));
    let changes = store.changes();
    drop(store);
    for answer in waiting {
        assert_eq!(answer.await.unwrap(), [Appended::Stored]);
    }
    // A read that was under way is answered, or told that the store is closed; it does not hang.
    assert!(matches!(reading.await, Ok(_) | Err(StoreError::Closed)));
    drop(changes);
    assert_eq!(open(&url).await.extent(thread_id("t")).await.unwrap().head, Seq(10_000));
}

#[tokio::test]
async fn dropping_does_not_wait_for_ever() {
    let server = PgCluster::start();
    let store = open(&server.url(&server.fresh_database())).await;
    server.freeze();
    let waiting = store.append(vec![append("t", 0, blocks("r", 0, &[1]))]);
    let start = Instant::now();
    drop(store);
    assert!(start.elapsed() < Duration::from_secs(12), "{:?}", start.elapsed());
    server.thaw();
    assert_eq!(waiting.await.unwrap(), [Appended::Stored], "and what was handed over is still done");
}

#[test]
fn a_store_outlives_the_runtime_that_opened_it() {
    let url = fresh_url();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = runtime().block_on(open(&url));
    let written = runtime().block_on(put(&store, append("t", 0, blocks("r", 0, &[1]))));
    assert_eq!(written, Appended::Stored);
    assert_eq!(crate::suite::block_on(store.read(all_of("t"))).unwrap(), blocks("r", 0, &[1]), "no runtime at all");
}
