//! Connections that read.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

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

/// Queries that take no longer than this are not worth another thread: to hand a runtime's work over and back costs as
/// much.
const QUICK_US: u64 = 200;

/// A few connections, each opened when it is first needed.
#[derive(Debug)]
pub(crate) struct Pool {
    db: Arc<Db>,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
    /// What queries took lately, in microseconds.
    usual_us: AtomicU64,
}

impl Pool {
    pub(crate) fn new(db: Arc<Db>) -> Self {
        let permits = Arc::new(Semaphore::new(db.config.readers.max(1)));
        Self { db, permits, idle: Mutex::default(), usual_us: AtomicU64::new(0) }
    }

    /// Runs a query: right here while queries are quick, as they are when the file is in memory; otherwise on a thread that
    /// may wait for a disk. Waiting for a connection costs no thread. `doing` completes "could not …" in an error.
    pub(crate) async fn query<T: Send + 'static>(
        self: Arc<Self>,
        doing: &'static str,
        query: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let permits = Arc::clone(&self.permits);
        let permit = permits.acquire_owned().await.map_err(|_| StoreError::Closed)?;
        let quick = self.usual_us.load(Ordering::Relaxed) <= QUICK_US;
        let work = move || {
            let begun = Instant::now();
            let result = self.with_connection(doing, query);
            self.took(begun.elapsed());
            drop(permit);
            result
        };
        if quick {
            return work();
        }
        match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
            // The query begins at once, and other tasks go on elsewhere: a hop to another thread and back would take as
            // long as the query itself.
            Ok(RuntimeFlavor::MultiThread) => block_in_place(work),
            // Fails only when the runtime is shutting down, or the query panicked.
            Ok(_) => spawn_blocking(work).await.map_err(|_| StoreError::Closed)?,
            Err(_) => work(),
        }
    }

    /// Learns from a query. Two that race may forget one of them.
    fn took(&self, time: Duration) {
        let usual = self.usual_us.load(Ordering::Relaxed);
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX).min(1_000_000);
        self.usual_us.store((usual * 7 + time).div_ceil(8), Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn slow_queries_move_away_and_quick_ones_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let pool = Pool::new(Arc::new(Db::new(&dir.path().join("store.db"), Config::default()).unwrap()));
        let is_quick = || pool.usual_us.load(Ordering::Relaxed) <= QUICK_US;
        assert!(is_quick());
        // One that waits for a disk may be an exception; a second one is not.
        pool.took(Duration::from_millis(1));
        assert!(is_quick());
        pool.took(Duration::from_millis(1));
        assert!(!is_quick());
        (0..8).for_each(|_| pool.took(Duration::from_micros(50)));
        assert!(is_quick());
    }
}
