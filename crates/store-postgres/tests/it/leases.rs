//! Who is alive: the contract, and that it outlives a server.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use taffrail_relay::Leases;
use taffrail_store_postgres::{Config, PostgresStore};
use taffrail_testutils::{lease_suite, postgres::PgCluster};

use crate::{
    server::{fresh_url, open},
    suite::block_on,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract() {
    let (url, number) = (fresh_url(), AtomicU64::new(0));
    lease_suite::run_all(|| {
        let schema = format!("leases-{}", number.fetch_add(1, Relaxed));
        let open = || {
            let config = Config { schema: schema.clone(), ..Config::default() };
            let leases: Arc<dyn Leases> = Arc::new(block_on(PostgresStore::open(&url, config)).unwrap());
            leases
        };
        (open(), open())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn takers_and_revokers_race_and_one_of_them_wins() {
    let url = fresh_url();
    let stores = [Arc::new(open(&url).await), Arc::new(open(&url).await)];
    for round in 0..40 {
        let (key, old) = (format!("k{round}"), format!("old{round}"));
        assert!(stores[0].take(key.clone(), old.clone()).await.unwrap());
        // One revokes the holder while it beats and four others want its key.
        let revoked = {
            let (store, old) = (Arc::clone(&stores[1]), old.clone());
            tokio::spawn(async move { store.revoke(old, 0).await.unwrap() })
        };
        let beaten = {
            let (store, old) = (Arc::clone(&stores[0]), old.clone());
            tokio::spawn(async move { store.beat(old).await.unwrap() })
        };
        let takers: Vec<_> = (0..4)
            .map(|i| {
                let (store, key) = (Arc::clone(&stores[i % 2]), key.clone());
                tokio::spawn(async move { store.take(key, format!("new{round}-{i}")).await.unwrap() })
            })
            .collect();
        let mut winners = Vec::new();
        for (i, taker) in takers.into_iter().enumerate() {
            if taker.await.unwrap() {
                winners.push(format!("new{round}-{i}"));
            }
        }
        let (revoked, beaten) = (revoked.await.unwrap(), beaten.await.unwrap());
        assert!(revoked != beaten, "a beat keeps a holder, or comes too late: {revoked} {beaten}");
        assert!(winners.len() <= usize::from(revoked), "{winners:?}");
        let holder = stores[0].holder(key.clone()).await.unwrap().unwrap();
        let expected = winners.pop().unwrap_or_else(|| old.clone());
        assert_eq!(holder, expected);
        if revoked && holder == old {
            assert!(stores[1].take(key, "late".into()).await.unwrap(), "a key of a revoked holder is free");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_survives_the_server() {
    let server = PgCluster::start();
    let store = open(&server.url(&server.fresh_database())).await;
    assert!(store.take("k".into(), "a".into()).await.unwrap());
    assert!(store.take("k2".into(), "b".into()).await.unwrap());
    assert!(store.beat("a".into()).await.unwrap());
    assert!(store.revoke("b".into(), 0).await.unwrap());
    server.kill();
    let waiting = store.beat("a".into());
    server.begin();
    assert!(waiting.await.unwrap(), "a beat waits for the server");
    assert!(!store.beat("b".into()).await.unwrap());
    assert_eq!(store.holder("k".into()).await.unwrap().as_deref(), Some("a"));
    let holders = store.holders().await.unwrap();
    assert!(matches!(holders.as_slice(), [(name, 2..)] if name == "a"), "{holders:?}");
}
