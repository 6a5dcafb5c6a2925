//! Opening a store: races, what is refused, and what an error says.

use std::{
    error::Error,
    net::TcpListener,
    sync::Arc,
    time::{Duration, Instant},
};

use taffrail_mcp_core::Seq;
use taffrail_relay::{Appended, Leases, Store, StoreError};
use taffrail_store_postgres::{Config, FORMAT_VERSION, PostgresStore};
use taffrail_testutils::{
    postgres::{PgCluster, PgOptions},
    store_suite::{all_of, append, blocks, put, run_id, thread_id},
};

use crate::server::{fresh_url, open, shared};

/// What a person would read.
fn told(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

async fn refused(url: &str, expected: &[&str]) -> StoreError {
    let start = Instant::now();
    let error = PostgresStore::open(url, Config::default()).await.unwrap_err();
    let text = told(&error);
    println!("{text}");
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    for part in expected {
        assert!(text.contains(part), "no {part:?} in {text:?}");
    }
    assert!(!text.contains("secret") && !text.contains("s3cr3t"), "{text}");
    error
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_open_a_new_store_at_once() {
    for _ in 0..3 {
        let url = Arc::new(fresh_url());
        let tasks: Vec<_> = (0..8)
            .map(|i| {
                let url = Arc::clone(&url);
                tokio::spawn(async move {
                    let store = open(&url).await;
                    put(&store, append(&format!("t{i}"), 0, blocks("r", 0, &[1]))).await
                })
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.unwrap(), Appended::Stored);
        }
        assert_eq!(open(&url).await.threads().await.unwrap().len(), 8);
    }
}

#[tokio::test]
async fn schemas_are_apart() {
    let url = fresh_url();
    let config = |schema: &str| Config { schema: schema.into(), ..Config::default() };
    let one = PostgresStore::open(&url, config("one")).await.unwrap();
    let two = PostgresStore::open(&format!("{url}?schema=Two-2"), config("one")).await.unwrap();
    assert_eq!((one.schema(), two.schema()), ("one", "Two-2"));
    put(&one, append("t", 0, blocks("r", 0, &[1]))).await;
    assert_eq!(two.threads().await.unwrap(), []);
    assert!(one.place().contains("scratch"), "{}", one.place());
}

#[tokio::test]
async fn a_newer_schema_is_left_alone() {
    let server = shared();
    let database = server.fresh_database();
    let url = server.url(&database);
    drop(open(&url).await);
    server.sql(&database, &format!("UPDATE taffrail.taffrail_format SET version = {}", FORMAT_VERSION + 6));
    let error = refused(&url, &["taffrail", &database, "newer version", "use that version"]).await;
    let StoreError::NewerSchema { found, known, .. } = &error else { panic!("{error:?}") };
    assert_eq!((*found, *known), (FORMAT_VERSION + 6, FORMAT_VERSION));
    assert!(!error.is_transient());
}

#[tokio::test]
async fn another_programs_schema_is_left_alone() {
    let server = shared();
    let database = server.fresh_database();
    let url = server.url(&database);
    let objects =
        "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = 'taffrail'";
    server.sql(&database, "CREATE SCHEMA taffrail");
    server.sql(&database, "CREATE TABLE taffrail.threads (a int)");
    let error = refused(&url, &[&database, "another program", "another schema"]).await;
    assert!(matches!(error, StoreError::Damaged { .. }) && !error.is_transient());
    assert_eq!(server.sql(&database, objects), "1");
    server.sql(&database, "DROP TABLE taffrail.threads");
    drop(open(&url).await);
    server.sql(&database, "DELETE FROM taffrail.taffrail_format");
    refused(&url, &[&database, "tells no version"]).await;
}

#[tokio::test]
async fn a_role_needs_only_what_the_page_for_operators_lists() {
    let server = shared();
    let database = server.fresh_database();
    let role = format!("app_{database}");
    server.sql(&database, &format!("CREATE ROLE {role} LOGIN"));
    let url = server.url(&database).replace("taffrail@", &format!("{role}@"));
    refused(&url, &[&database, "permission denied", "docs/postgres.md"]).await;
    drop(open(&server.url(&database)).await);
    refused(&url, &[&database, "permission denied", "docs/postgres.md"]).await;
    for grant in [
        "USAGE ON SCHEMA taffrail",
        "SELECT ON taffrail.taffrail_format",
        "SELECT, INSERT, UPDATE, DELETE ON taffrail.threads, taffrail.blocks, taffrail.runs, taffrail.claims, \
         taffrail.holders, taffrail.leases",
    ] {
        server.sql(&database, &format!("GRANT {grant} TO {role}"));
    }
    let store = open(&url).await;
    assert_eq!(put(&store, append("t", 0, blocks("r", 0, &[1, 2]))).await, Appended::Stored);
    assert_eq!(store.read(all_of("t")).await.unwrap(), blocks("r", 0, &[1, 2]));
    assert_eq!(store.trim(thread_id("t"), Seq(1)).await.unwrap().records, 1);
    store.forget(run_id("r")).await.unwrap();
    assert!(store.take("k".into(), "me".into()).await.unwrap());
    store.leave("me".into()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_of_the_database_do_not_change_what_is_promised() {
    let server = shared();
    let database = server.fresh_database();
    for setting in ["default_transaction_isolation = 'serializable'", "synchronous_commit = off"] {
        server.sql("postgres", &format!("ALTER DATABASE {database} SET {setting}"));
    }
    let url = server.url(&database);
    let store = Arc::new(open(&url).await);
    let tasks: Vec<_> = (0..4)
        .map(|i| {
            let (store, url) = (Arc::clone(&store), url.clone());
            tokio::spawn(async move {
                let other = open(&url).await;
                let stores: [&dyn Store; 2] = [&*store, &other];
                let (mut head, mut stored) = (0, 0);
                while stored < 50 {
                    match put(stores[stored % 2], append("t", head, blocks(&format!("r{i}"), head, &[1]))).await {
                        Appended::Stored => (head, stored) = (head + 1, stored + 1),
                        Appended::Conflict { head: Seq(now) } => head = now,
                        claimed @ Appended::Claimed { .. } => panic!("{claimed:?}"),
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(store.extent(thread_id("t")).await.unwrap().head, Seq(200));
}

#[tokio::test]
async fn what_cannot_be_reached_is_named() {
    let server = PgCluster::with(&PgOptions { tcp: true, ..PgOptions::default() });
    let database = server.fresh_database();
    let good = server.tcp_url(&database);
    drop(open(&good).await);
    let port = server.port();
    let host = format!("127.0.0.1:{port}");

    let wrong = good.replace("secret", "s3cr3t-and-wrong");
    let error = refused(&wrong, &[&host, &database, "password authentication failed", "check user and password"]).await;
    assert!(matches!(error, StoreError::Unavailable { .. }));
    refused(&server.tcp_url("missing"), &[&host, "\"missing\"", "does not exist", "createdb"]).await;
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    refused(&format!("postgres://me:secret@{nobody}/logs"), &[&nobody.to_string(), "\"logs\"", "refused"]).await;
    refused("postgres://me:secret@nowhere.invalid/logs", &["nowhere.invalid:5432", "\"logs\""]).await;
    refused("postgres://me:secret@%2Fnowhere/logs", &["/nowhere/.s.PGSQL.5432", "\"logs\""]).await;

    // One that takes connections and says nothing; with another one behind it that works.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap();
    let limit = "connect_timeout=1&sslmode=disable";
    refused(&format!("postgres://me:secret@{silent}/logs?{limit}"), &[&silent.to_string(), "no answer within 2 s"])
        .await;
    let both = format!("postgres://taffrail:secret@{silent},{host}/{database}?{limit}");
    assert_eq!(open(&both).await.threads().await.unwrap(), []);
    let neither = format!("postgres://taffrail:secret@{silent},{nobody}/{database}?{limit}");
    refused(&neither, &["no answer within 2 s", "refused"]).await;

    server.stop();
    refused(&good, &[&host, &database]).await;
}

#[tokio::test]
async fn a_standby_alone_is_refused() {
    let primary = PgCluster::start();
    let database = primary.fresh_database();
    let standby = primary.standby();
    refused(&standby.url(&database), &["does not allow writes"]).await;
    // Both named, the standby first: the primary is found.
    drop(open(&standby.url_with(&primary, &database)).await);
}

#[tokio::test]
async fn tls_is_as_strict_as_was_asked() {
    let server = PgCluster::with(&PgOptions { tcp: true, ..PgOptions::default() });
    let database = server.fresh_database();
    let url = server.tcp_url(&database);
    refused(&format!("{url}?sslmode=require"), &["does not support TLS"]).await;
    drop(open(&format!("{url}?sslmode=prefer")).await);
    let trusted = server.offer_tls();
    let trusted = trusted.to_str().unwrap();
    let encrypted =
        "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE client_addr IS NOT NULL";
    for (mode, expected) in [
        ("sslmode=disable".into(), "f"),
        ("sslmode=prefer".into(), "t"),
        (format!("sslmode=require&sslrootcert={trusted}"), "t"),
        (format!("sslmode=verify-full&sslrootcert={trusted}"), "t"),
    ] {
        let store = open(&format!("{url}?{mode}")).await;
        assert_eq!(store.threads().await.unwrap(), [], "{mode}");
        assert_eq!(server.sql(&database, encrypted), expected, "{mode}");
    }
    // Nobody vouches for it; and it is not who it should be.
    refused(&format!("{url}?sslmode=require"), &["certificate"]).await;
    let other_name = url.replace("127.0.0.1", "127.0.0.2");
    server.sql("postgres", "ALTER SYSTEM SET listen_addresses = '127.0.0.1,127.0.0.2'");
    server.restart();
    refused(&format!("{other_name}?sslmode=require&sslrootcert={trusted}"), &["certificate"]).await;
    let config = Config { root_certificates: Some(trusted.into()), ..Config::default() };
    drop(PostgresStore::open(&format!("{url}?sslmode=require"), config).await.unwrap());
}
