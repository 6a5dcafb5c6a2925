//! The store contract.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

use taffrail_relay::Store;
use taffrail_store_postgres::{Config, PostgresStore};
use taffrail_testutils::store_suite;

use crate::server::fresh_url;

/// A runtime that is not Tokio's: the store has its own.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
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

/// Makes stores in schemas of their own of one database.
struct Schemas {
    url: String,
    number: AtomicU64,
}

impl Schemas {
    fn new() -> Self {
        Self { url: fresh_url(), number: AtomicU64::new(0) }
    }

    fn pair(&self) -> (Arc<dyn Store>, Arc<dyn Store>) {
        let schema = format!("suite-{}", self.number.fetch_add(1, Relaxed));
        let open = || {
            let config = Config { schema: schema.clone(), ..Config::default() };
            let store: Arc<dyn Store> = Arc::new(block_on(PostgresStore::open(&self.url, config)).unwrap());
            store
        };
        (open(), open())
    }

    fn one(&self) -> Arc<dyn Store> {
        self.pair().0
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_value() {
    let schemas = Schemas::new();
    store_suite::run_all(|| schemas.one()).await;
}

#[tokio::test(flavor = "current_thread")]
async fn one_value_on_one_thread() {
    let schemas = Schemas::new();
    store_suite::run_all(|| schemas.one()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_values() {
    let schemas = Schemas::new();
    store_suite::run_shared(|| schemas.pair()).await;
}
