//! The contract of [`Leases`] as tests, one case a promise.
//!
//! Cases use the trait only, and names of their own, but a case still wants leases to itself, because listings show
//! everything. Call [`run_all`] with a function that makes two values on the same empty leases: the cases play two
//! processes.
//!
//! ```
//! use std::sync::Arc;
//! use taffrail_relay::Leases;
//! use taffrail_testutils::{lease_suite, leases::MemoryLeases};
//!
//! # tokio::runtime::Builder::new_multi_thread().build().unwrap().block_on(async {
//! lease_suite::run_all(|| {
//!     let leases = MemoryLeases::new();
//!     let pair: lease_suite::Pair = (Arc::new(leases.clone()), Arc::new(leases));
//!     pair
//! })
//! .await;
//! # });
//! ```
//!
//! The cases panic with their name and what they saw.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{future::Future, sync::Arc};

use taffrail_mcp_core::BoxFuture;
use taffrail_relay::Leases;

/// Two values on the same leases.
pub type Pair = (Arc<dyn Leases>, Arc<dyn Leases>);

/// A promise of the contract, and what checks it.
pub type Case = (&'static str, fn(Pair) -> BoxFuture<'static, ()>);

macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        &[$((stringify!($name), |pair| Box::pin($name(pair)))),*]
    };
}

/// The cases.
pub const CASES: &[Case] = cases![
    a_key_has_one_holder,
    taking_twice_is_taking_once,
    only_its_holder_releases_a_key,
    beats_are_counted,
    taking_makes_a_holder_known,
    who_has_beaten_is_not_revoked,
    a_revoked_holder_holds_no_more,
    keys_of_a_revoked_holder_are_free,
    who_leaves_is_forgotten_with_its_keys,
    any_name_will_do,
    of_many_takers_one_gets_the_key,
    a_beat_and_a_revocation_do_not_both_win,
    a_dropped_call_is_whole_or_nothing,
];

/// Runs all cases, each on leases of its own.
///
/// # Panics
///
/// When a case fails; the name of the case is printed before.
pub async fn run_all(make: impl Fn() -> Pair) {
    for (name, case) in CASES {
        run(name, case(make())).await;
    }
}

async fn run(name: &str, case: impl Future<Output = ()> + Send + 'static) {
    // A task of its own turns a panic into an error that can be given a name.
    if let Err(error) = tokio::spawn(case).await {
        panic!("lease contract: {name}: {error}");
    }
}

async fn take(leases: &Arc<dyn Leases>, key: &str, holder: &str) -> bool {
    leases.take(key.into(), holder.into()).await.unwrap()
}

async fn release(leases: &Arc<dyn Leases>, key: &str, holder: &str) {
    leases.release(key.into(), holder.into()).await.unwrap();
}

async fn holder(leases: &Arc<dyn Leases>, key: &str) -> Option<String> {
    leases.holder(key.into()).await.unwrap()
}

async fn beat(leases: &Arc<dyn Leases>, holder: &str) -> bool {
    leases.beat(holder.into()).await.unwrap()
}

async fn revoke(leases: &Arc<dyn Leases>, holder: &str, beats: u64) -> bool {
    leases.revoke(holder.into(), beats).await.unwrap()
}

async fn holders(leases: &Arc<dyn Leases>) -> Vec<(String, u64)> {
    let mut holders = leases.holders().await.unwrap();
    holders.sort();
    holders
}

fn listed(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    expected.iter().map(|(name, beats)| ((*name).to_owned(), *beats)).collect()
}

async fn a_key_has_one_holder((one, two): Pair) {
    assert!(take(&one, "k", "a").await);
    assert!(!take(&two, "k", "b").await);
    assert!(!take(&one, "k", "b").await);
    assert!(take(&two, "other", "b").await);
    for leases in [&one, &two] {
        assert_eq!(holder(leases, "k").await.as_deref(), Some("a"));
        assert_eq!(holder(leases, "other").await.as_deref(), Some("b"));
        assert_eq!(holder(leases, "nobody's").await, None);
    }
}

async fn taking_twice_is_taking_once((one, two): Pair) {
    assert!(take(&one, "k", "a").await);
    assert!(take(&two, "k", "a").await);
    release(&one, "k", "a").await;
    assert_eq!(holder(&two, "k").await, None);
    assert!(take(&two, "k", "b").await);
}

async fn only_its_holder_releases_a_key((one, two): Pair) {
    assert!(take(&one, "k", "a").await);
    release(&two, "k", "b").await;
    release(&two, "nobody's", "b").await;
    assert_eq!(holder(&two, "k").await.as_deref(), Some("a"));
    release(&two, "k", "a").await;
    assert_eq!(holder(&one, "k").await, None);
    release(&one, "k", "a").await;
}

async fn beats_are_counted((one, two): Pair) {
    assert_eq!(holders(&one).await, listed(&[]));
    assert!(beat(&one, "a").await);
    assert!(beat(&two, "b").await);
    let before = holders(&two).await;
    assert_eq!(before.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert!(beat(&one, "a").await);
    let after = holders(&two).await;
    assert!(after[0].1 > before[0].1, "a beat changes the count: {before:?} {after:?}");
    assert_eq!(after[1], before[1]);
}

async fn taking_makes_a_holder_known((one, two): Pair) {
    assert!(take(&one, "k", "a").await);
    assert_eq!(holders(&two).await, listed(&[("a", 0)]), "without a beat");
    assert!(beat(&one, "a").await);
    let beats = holders(&two).await[0].1;
    assert!(take(&one, "l", "a").await);
    assert_eq!(holders(&two).await[0].1, beats, "a take is no beat");
}

async fn who_has_beaten_is_not_revoked((one, two): Pair) {
    assert!(beat(&one, "a").await);
    let seen = holders(&two).await[0].1;
    assert!(beat(&one, "a").await);
    assert!(!revoke(&two, "a", seen).await);
    assert!(beat(&one, "a").await);
    assert!(!revoke(&two, "unknown", 0).await);
    assert_eq!(holders(&two).await.len(), 1, "asking about an unknown holder makes none");
}

async fn a_revoked_holder_holds_no_more((one, two): Pair) {
    assert!(take(&one, "k", "a").await);
    assert!(beat(&one, "a").await);
    let seen = holders(&two).await[0].1;
    assert!(revoke(&two, "a", seen).await);
    assert!(revoke(&one, "a", seen).await, "it is revoked, whoever asks again");
    assert!(!beat(&one, "a").await);
    assert!(!take(&one, "k", "a").await);
    assert!(!take(&one, "other", "a").await);
    assert_eq!(holders(&two).await, listed(&[]));
    assert_eq!(holder(&two, "other").await, None);
    // One that has never beaten.
    assert!(take(&one, "l", "b").await);
    assert!(revoke(&two, "b", 0).await);
    assert!(!take(&one, "l", "b").await);
}

async fn keys_of_a_revoked_holder_are_free((one, two): Pair) {
    assert!(take(&one, "k", "a").await);
    assert!(take(&one, "l", "a").await);
    assert!(revoke(&two, "a", 0).await);
    assert_eq!(holder(&one, "k").await.as_deref(), Some("a"), "until somebody takes it");
    assert!(take(&two, "k", "b").await);
    assert!(!take(&one, "k", "c").await);
    // What the old holder still says changes nothing.
    release(&one, "k", "a").await;
    assert!(!beat(&one, "a").await);
    assert_eq!(holder(&one, "k").await.as_deref(), Some("b"));
    assert!(take(&one, "l", "c").await);
}

async fn who_leaves_is_forgotten_with_its_keys((one, two): Pair) {
    assert!(take(&one, "k", "a").await);
    assert!(beat(&one, "a").await);
    assert!(take(&two, "l", "b").await);
    one.leave("a".into()).await.unwrap();
    one.leave("a".into()).await.unwrap();
    one.leave("unknown".into()).await.unwrap();
    assert_eq!(holders(&two).await, listed(&[("b", 0)]));
    assert_eq!(holder(&two, "k").await, None);
    assert_eq!(holder(&one, "l").await.as_deref(), Some("b"));
    assert!(take(&two, "k", "b").await);
}

/// Keys hold ids of runs; names are made by us. Nothing in them means anything.
async fn any_name_will_do((one, two): Pair) {
    let names = ["", "run:a:b", "%", "'; --", "é🚀", "a\u{0}b", "A", "a", &"x".repeat(300)];
    for (at, name) in names.iter().enumerate() {
        assert!(take(&one, name, name).await, "{name:?}");
        assert_eq!(holder(&two, name).await.as_deref(), Some(*name));
        assert_eq!(holders(&two).await.len(), at + 1);
    }
}

async fn of_many_takers_one_gets_the_key((one, two): Pair) {
    for round in 0..20 {
        let key = format!("k{round}");
        let takers = (0..8).map(|n| {
            let (leases, key) = (if n % 2 == 0 { Arc::clone(&one) } else { Arc::clone(&two) }, key.clone());
            tokio::spawn(async move { take(&leases, &key, &format!("h{n}")).await.then(|| format!("h{n}")) })
        });
        let mut winners = Vec::new();
        for taker in takers.collect::<Vec<_>>() {
            winners.extend(taker.await.unwrap());
        }
        assert_eq!(winners.len(), 1, "{winners:?}");
        assert_eq!(holder(&one, &key).await, winners.pop());
    }
}

/// Whatever comes first, a holder whose beat was answered in the affirmative has its keys, and one that is revoked
/// learns it with its next beat.
async fn a_beat_and_a_revocation_do_not_both_win((one, two): Pair) {
    for round in 0..20 {
        let name = format!("h{round}");
        assert!(take(&one, &name, &name).await);
        let (alive, leases, other) = (name.clone(), Arc::clone(&one), name.clone());
        let beating = tokio::spawn(async move { beat(&leases, &alive).await });
        let revoked = revoke(&two, &other, 0).await;
        let beaten = beating.await.unwrap();
        assert_eq!(beaten, !revoked);
        assert_eq!(beat(&one, &name).await, !revoked);
        assert_eq!(take(&two, &name, "next").await, revoked);
    }
}

async fn a_dropped_call_is_whole_or_nothing((one, two): Pair) {
    for round in 0..20 {
        let key = format!("k{round}");
        drop(one.take(key.clone(), "a".into()));
        drop(one.beat("a".into()));
        // Done or not, the next call is answered by what is so.
        let taken = take(&two, &key, "b").await;
        let by = holder(&one, &key).await;
        assert_eq!(by.as_deref(), Some(if taken { "b" } else { "a" }));
    }
    assert!(beat(&one, "a").await);
}
