//! How other processes learn of appends: the delays that are promised, each with its test.

use std::time::{Duration, Instant};

use taffrail_relay::{Appended, Store};
use taffrail_store_postgres::{Config, NOTIFY_EVERY, POLL_EVERY, PostgresStore, RECONNECT_EVERY};
use taffrail_testutils::{
    postgres::{PgCluster, PgOptions},
    store_suite::{append, blocks, put},
};
use tokio::{sync::mpsc, sync::watch, time::timeout};
use tokio_postgres::{AsyncMessage, NoTls};

use crate::server::{fresh_url, open, shared};

/// A busy machine may need this much longer.
const SLACK: Duration = Duration::from_millis(500);

async fn write(store: &PostgresStore, head: u64) {
    assert_eq!(put(store, append("t", head, blocks("r", head, &[1]))).await, Appended::Stored);
}

/// Waits for the number to grow, and gives how long that took.
async fn grows(changes: &mut watch::Receiver<u64>, within: Duration) -> Duration {
    let start = Instant::now();
    timeout(within, changes.changed()).await.unwrap().unwrap();
    start.elapsed()
}

/// Lets what is on its way come, until it is quiet for a while.
async fn settle(changes: &mut watch::Receiver<u64>) {
    while timeout(Duration::from_millis(300), changes.changed()).await.is_ok() {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_appends_make_few_notifications_and_the_last_is_told() {
    let url = fresh_url();
    let (client, mut connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    let (sender, mut heard) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notification(notification) = message {
                assert_eq!((notification.channel(), notification.payload()), ("taffrail", ""));
                let _ = sender.send(Instant::now());
            }
        }
    });
    client.batch_execute("LISTEN taffrail").await.unwrap();
    let store = open(&url).await;
    let start = Instant::now();
    let mut last = start;
    for i in 0..300 {
        write(&store, i).await;
        last = Instant::now();
    }
    let (mut count, mut at) = (0, start);
    while let Ok(Some(told)) = timeout(NOTIFY_EVERY + SLACK, heard.recv()).await {
        (count, at) = (count + 1, told);
    }
    let most = (at - start).as_millis() / NOTIFY_EVERY.as_millis() + 2;
    println!("{count} notifications of 300 appends in {:?}", last - start);
    assert!((1..=most).contains(&count), "{count} notifications in {:?}", at - start);
    assert!(at + SLACK > last, "the last append is told");
    assert!(at < last + NOTIFY_EVERY + SLACK, "{:?} after the last", at - last);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_notification_tells_is_found_by_looking() {
    // Vacuuming by itself would be a change, too.
    let server = PgCluster::with(&PgOptions { settings: vec!["autovacuum = off".into()], ..PgOptions::default() });
    let database = server.fresh_database();
    let store = open(&server.url(&database)).await;
    let mut changes = store.changes();
    grows(&mut changes, SLACK).await;
    settle(&mut changes).await;
    // One look after the schema was made may still be to come.
    let _ = timeout(POLL_EVERY + SLACK, changes.changed()).await;
    assert!(timeout(POLL_EVERY * 3, changes.changed()).await.is_err(), "while nothing happens nothing is told");
    // An append as the function does it, by somebody who tells nobody.
    server.sql(&database, "INSERT INTO taffrail.threads (name, head) VALUES ('quiet', 1)");
    let delay = grows(&mut changes, POLL_EVERY + SLACK).await;
    println!("found after {delay:?}");
    let often = Config { poll: Duration::from_millis(20), ..Config::default() };
    let eager = PostgresStore::open(&server.url(&database), often).await.unwrap();
    let mut changes = eager.changes();
    settle(&mut changes).await;
    server.sql(&database, "UPDATE taffrail.threads SET head = 2");
    let delay = grows(&mut changes, SLACK).await;
    println!("found after {delay:?} by looking every 20 ms");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_missed_while_the_connection_was_lost_is_told() {
    let server = shared();
    let database = server.fresh_database();
    let url = server.url(&database);
    let listening = PostgresStore::open(&format!("{url}?application_name=listening"), never_looking()).await.unwrap();
    let writing = PostgresStore::open(&format!("{url}?application_name=writing"), never_looking()).await.unwrap();
    let mut changes = listening.changes();
    for i in 0..5 {
        settle(&mut changes).await;
        let signals = "application_name = 'listening' AND (query LIKE '%LISTEN%' OR query LIKE '%snapshot%')";
        assert_eq!(server.drop_connections(&database, signals), 1);
        let start = Instant::now();
        write(&writing, i).await;
        let delay = grows(&mut changes, RECONNECT_EVERY + SLACK).await;
        println!("told after {delay:?}, {:?} after the loss", start.elapsed());
        assert_eq!(listening.extent(taffrail_testutils::store_suite::thread_id("t")).await.unwrap().head.0, i + 1);
    }
}

/// Only connections and notifications count.
fn never_looking() -> Config {
    Config { poll: Duration::from_secs(3600), ..Config::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_receiver_hears_of_what_was_before_it() {
    let url = fresh_url();
    let (reading, writing) = (open(&url).await, open(&url).await);
    write(&writing, 0).await;
    let mut changes = reading.changes();
    grows(&mut changes, SLACK).await;
    settle(&mut changes).await;
    drop(changes);
    write(&writing, 1).await;
    let mut changes = reading.changes();
    grows(&mut changes, SLACK).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn own_appends_are_no_news() {
    let store = PostgresStore::open(&fresh_url(), never_looking()).await.unwrap();
    let mut changes = store.changes();
    settle(&mut changes).await;
    for i in 0..20 {
        write(&store, i).await;
    }
    assert!(timeout(SLACK, changes.changed()).await.is_err());
}
