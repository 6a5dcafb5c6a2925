//! The store contract.

use std::sync::{Arc, Mutex};

use taffrail_relay::Store;
use taffrail_store_sqlite::{Config, SqliteStore};
use taffrail_testutils::store_suite;
use tempfile::TempDir;

/// Makes stores in folders that live as long as this.
#[derive(Default)]
struct Folders(Mutex<Vec<TempDir>>);

impl Folders {
    fn pair(&self) -> (Arc<dyn Store>, Arc<dyn Store>) {
        let dir = tempfile::tempdir().unwrap();
        let open = || Arc::new(SqliteStore::open(dir.path().join("store.db"), Config::default()).unwrap());
        let pair = (open(), open());
        self.0.lock().unwrap().push(dir);
        (pair.0, pair.1)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_value() {
    let folders = Folders::default();
    store_suite::run_all(|| folders.pair().0).await;
}

#[tokio::test(flavor = "current_thread")]
async fn one_value_on_one_thread() {
    let folders = Folders::default();
    store_suite::run_all(|| folders.pair().0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_values() {
    let folders = Folders::default();
    store_suite::run_shared(|| folders.pair()).await;
}
