//! The contract of [`Store`] as tests, one case a promise.
//!
//! Cases use the trait only. They name threads and runs after themselves, but a case still wants a store to itself,
//! because listings show everything. Call [`run_all`] with a function that makes an empty store, and [`run_shared`]
//! with one that makes two values on the same empty store:
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use taffrail_relay::Store;
//! # fn empty_store() -> Arc<dyn Store> { unimplemented!() }
//! # #[allow(clippy::needless_doctest_main)]
//! #[tokio::main]
//! async fn main() {
//!     taffrail_testutils::store_suite::run_all(empty_store).await;
//! }
//! ```
//!
//! The cases panic with their name and what they saw.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod appends;
mod claims;
mod concurrent;
mod index;
mod make;
mod reads;
mod retention;
mod shared;

use std::{future::Future, sync::Arc};

use taffrail_mcp_core::BoxFuture;
use taffrail_relay::Store;

pub use make::{all_of, append, block, blocks, fold, lines, numbered, put, run_id, thread_id};

/// A promise of the contract, and what checks it.
pub type Case<S> = (&'static str, fn(S) -> BoxFuture<'static, ()>);

/// Two values on one store.
pub type Pair = (Arc<dyn Store>, Arc<dyn Store>);

/// Boxes what an async function gives, so that cases fit in a list.
macro_rules! cases {
    ($($module:ident :: $name:ident),* $(,)?) => {
        &[$((concat!(stringify!($module), "::", stringify!($name)), |store| Box::pin($module::$name(store)))),*]
    };
}

/// The cases that one value of a store must pass.
pub const CASES: &[Case<Arc<dyn Store>>] = cases![
    appends::positions_are_dense,
    appends::a_missing_thread_is_empty,
    appends::another_head_is_a_conflict,
    appends::a_conflict_spares_other_threads,
    appends::a_group_can_go_on_with_its_own_blocks,
    appends::calls_keep_their_order_without_waiting,
    appends::a_dropped_future_is_whole_or_nothing,
    appends::holes_are_refused,
    appends::everything_passes_unchanged,
    claims::a_claim_is_taken_once,
    claims::a_conflict_takes_no_claim,
    claims::one_of_many_wins,
    concurrent::writers_of_one_thread_renumber,
    concurrent::readers_never_see_a_part,
    reads::every_range,
    reads::every_range_backwards,
    reads::max_bytes_bounds_a_read,
    reads::only_one_run,
    retention::trims_take_whole_blocks,
    retention::numbers_are_not_used_again,
    retention::usage_adds_up,
    index::a_fold_comes_back,
    index::state_changes_with_the_blocks,
    index::pages_of_runs,
    index::a_page_has_a_default_size,
    index::forgetting_a_run,
];

/// The cases for two values on the same store.
pub const SHARED_CASES: &[Case<Pair>] = cases![
    shared::each_sees_what_the_other_stored,
    shared::both_number_one_thread,
    shared::a_claim_is_taken_once_for_both,
    shared::changes_are_noticed_in_time,
];

/// Runs all cases of one value, each on a store of its own.
///
/// # Panics
///
/// When a case fails; the name of the case is printed before.
pub async fn run_all(make: impl Fn() -> Arc<dyn Store>) {
    for (name, case) in CASES {
        run(name, case(make())).await;
    }
}

/// Runs all cases of two values, each on a store of its own.
///
/// # Panics
///
/// When a case fails; the name of the case is printed before.
pub async fn run_shared(make: impl Fn() -> Pair) {
    for (name, case) in SHARED_CASES {
        run(name, case(make())).await;
    }
}

async fn run(name: &str, case: impl Future<Output = ()> + Send + 'static) {
    // A task of its own turns a panic into an error that can be given a name.
    if let Err(error) = tokio::spawn(case).await {
        panic!("store contract: {name}: {error}");
    }
}
