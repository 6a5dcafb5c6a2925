//! The server that tests share.

use std::sync::OnceLock;

use taffrail_store_postgres::{Config, PostgresStore};
use taffrail_testutils::postgres::PgCluster;

/// One server for all tests of a process that do it no harm. Its guard ends it with the process.
pub(crate) fn shared() -> &'static PgCluster {
    static SHARED: OnceLock<PgCluster> = OnceLock::new();
    SHARED.get_or_init(PgCluster::start)
}

/// The URL of an empty database on the shared server.
pub(crate) fn fresh_url() -> String {
    let server = shared();
    server.url(&server.fresh_database())
}

/// A store with usual settings.
pub(crate) async fn open(url: &str) -> PostgresStore {
    PostgresStore::open(url, Config::default()).await.unwrap()
}
