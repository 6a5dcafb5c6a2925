//! The memory store keeps the contract of every store.

use std::sync::Arc;

use taffrail_relay::MemoryStore;

#[tokio::test]
async fn memory_store_keeps_the_contract() {
    taffrail_testutils::store_suite::run_all(|| Arc::new(MemoryStore::new())).await;
}
