//! Connections for everything but appends.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use taffrail_relay::StoreError;
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep},
};
use tokio_postgres::{Row, types::ToSql};
use tracing::debug;

use crate::{conn::Conn, fault::Fault, target::Target};

/// A parameter that can wait for its turn.
pub(crate) type Param = Box<dyn ToSql + Sync + Send>;

/// Pauses between tries while the server is away.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LAST_PAUSE: Duration = Duration::from_millis(500);

/// A few connections, each opened when it is first needed.
pub(crate) struct Pool {
    target: Arc<Target>,
    permits: Semaphore,
    idle: Mutex<Vec<Conn>>,
}

impl Pool {
    pub(crate) fn new(target: Arc<Target>) -> Self {
        let permits = Semaphore::new(target.config.readers.max(1));
        Self { target, permits, idle: Mutex::default() }
    }

    /// Runs one statement that may be run again: while the connection breaks or the server is away, until
    /// [`crate::Config::patience`] ends. `doing` completes "could not …" in an error.
    pub(crate) async fn query(&self, doing: &str, sql: &'static str, params: &[Param]) -> Result<Vec<Row>, StoreError> {
        let _permit = self.permits.acquire().await.map_err(|_| StoreError::Closed)?;
        let params: Vec<&(dyn ToSql + Sync)> = params.iter().map(|param| &**param as &(dyn ToSql + Sync)).collect();
        let deadline = Instant::now() + self.target.config.patience;
        let mut pause = FIRST_PAUSE;
        loop {
            let fault = match self.attempt(sql, &params).await {
                Ok(rows) => return Ok(rows),
                Err(fault) => fault,
            };
            let may_pass = fault.is_connection_lost() || fault.is_collision();
            if !may_pass || Instant::now() + pause > deadline || self.permits.is_closed() {
                return Err(self.target.error(doing, fault));
            }
            debug!(%fault, doing, "a statement is tried again");
            sleep(pause).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    async fn attempt(&self, sql: &'static str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Fault> {
        let known = self.take();
        let mut conn = match known {
            Some(conn) => conn,
            None => Conn::open(&self.target, None).await?,
        };
        let result = conn.query(sql, params).await;
        match &result {
            Err(fault) if fault.is_connection_lost() => self.idle().clear(),
            _ if conn.is_usable() && !self.permits.is_closed() => self.idle().push(conn),
            _ => {}
        }
        result
    }

    /// A connection that is not known to be broken.
    fn take(&self) -> Option<Conn> {
        let mut idle = self.idle();
        while let Some(conn) = idle.pop() {
            if conn.is_usable() {
                return Some(conn);
            }
        }
        None
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Conn>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes idle connections now and the others as soon as their statements are done.
    pub(crate) fn close(&self) {
        self.permits.close();
        self.idle().clear();
    }
}
