//! Connections that read.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use taffrail_relay::StoreError;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::Semaphore,
    task::{block_in_place, spawn_blocking},
};

use crate::{
    db::{Db, Role},
    fault::Fault,
};

/// A few connections, each opened when it is first needed.
#[derive(Debug)]
pub(crate) struct Pool {
    db: Arc<Db>,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    pub(crate) fn new(db: Arc<Db>) -> Self {
        let permits = Arc::new(Semaphore::new(db.config.readers.max(1)));
        Self { db, permits, idle: Mutex::default() }
    }

    /// Runs a query on a thread that may wait for a disk; without a Tokio runtime, right here. Waiting for a
    /// connection costs no thread. `doing` completes "could not …" in an error.
    pub(crate) async fn query<T: Send + 'static>(
        self: Arc<Self>,
        doing: &'static str,
        query: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let permits = Arc::clone(&self.permits);
        let permit = permits.acquire_owned().await.map_err(|_| StoreError::Closed)?;
        let work = move || {
            let result = self.with_connection(doing, query);
            drop(permit);
            result
        };
        match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
            // The query begins at once, and other tasks go on elsewhere: a hop to another thread and back would take as
            // long as the query itself.
            Ok(RuntimeFlavor::MultiThread) => block_in_place(work),
            // Fails only when the runtime is shutting down, or the query panicked.
            Ok(_) => spawn_blocking(work).await.map_err(|_| StoreError::Closed)?,
            Err(_) => work(),
        }
    }

    fn with_connection<T>(
        &self,
        doing: &str,
        query: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let conn = match idle {
            Some(conn) => conn,
            None => self.db.connect(Role::Reader)?,
        };
        let result = query(&conn).map_err(|fault| self.db.error(doing, fault));
        // After the store was closed the connection goes, so that files need not wait for the last `Arc`.
        if !self.permits.is_closed() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(conn);
        }
        result
    }

    /// Closes idle connections now and the others as soon as their queries are done.
    pub(crate) fn close(&self) {
        self.permits.close();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
