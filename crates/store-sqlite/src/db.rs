//! The file, and how connections to it are made.

use std::{
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

use rusqlite::{Connection, OpenFlags, config::DbConfig};
use taffrail_relay::StoreError;

use crate::{Config, fault::Fault};

/// The write-ahead log is cut back to this size whenever it begins anew. Below it the file stays as long as it was:
/// overwriting costs half of what growing costs.
pub(crate) const WAL_MAX_BYTES: u64 = 64 << 20;

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Appends, trims, migrations.
    Writer,
    /// Copies the write-ahead log into the database.
    Checkpoint,
    /// Queries.
    Reader,
}

/// One database file.
#[derive(Debug)]
pub(crate) struct Db {
    pub(crate) path: PathBuf,
    pub(crate) config: Config,
}

impl Db {
    /// The database at `path`, which need not exist.
    pub(crate) fn new(path: &Path, config: Config) -> Result<Self, StoreError> {
        // Absolute, so that a later change of folder does not matter and no path is taken for a `file:` URI.
        let path = std::path::absolute(path).map_err(|e| crate::fault::io_error(path, "find", e))?;
        Ok(Self { path, config })
    }

    /// Opens a connection to the existing file. Writes nothing.
    pub(crate) fn connect(&self, role: Role) -> Result<Connection, StoreError> {
        self.try_connect(role).map_err(|e| self.error("open", e))
    }

    fn try_connect(&self, role: Role) -> Result<Connection, rusqlite::Error> {
        let access = match role {
            Role::Reader => OpenFlags::SQLITE_OPEN_READ_ONLY,
            Role::Writer | Role::Checkpoint => OpenFlags::SQLITE_OPEN_READ_WRITE,
        };
        // A connection is never used by two threads at once.
        let mut conn = Connection::open_with_flags(&self.path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        let patience = match role {
            Role::Writer | Role::Reader => self.config.busy_timeout,
            // Waits for readers, which take a millisecond, while the writer may be waiting for it.
            Role::Checkpoint => Duration::from_millis(100),
        };
        conn.busy_handler(Some(wait(patience)))?;
        // Plans do not depend on bound values; without this a page's statement is prepared anew for each cursor, which
        // takes longer than running it.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        conn.set_prepared_statement_cache_capacity(32);
        Ok(conn)
    }

    /// Settings that only make sense once the file is known to be ours.
    pub(crate) fn tune(&self, conn: &Connection) -> Result<(), rusqlite::Error> {
        // Checkpoints stall a commit for up to 100 ms; they have a thread of their own.
        conn.pragma_update(None, "wal_autocheckpoint", 0)?;
        conn.pragma_update(None, "journal_size_limit", WAL_MAX_BYTES)?;
        conn.pragma_update(None, "synchronous", self.config.durability.pragma())?;
        if let Some(max) = self.config.max_bytes {
            let page: u64 = conn.pragma_query_value(None, "page_size", |row| row.get(0))?;
            conn.pragma_update_and_check(None, "max_page_count", max / page.max(1), |_| Ok(()))?;
        }
        Ok(())
    }

    /// What a failure means for the caller. `doing` completes "could not …", followed by the path.
    pub(crate) fn error(&self, doing: &str, fault: impl Into<Fault>) -> StoreError {
        fault.into().on(&self.path, doing)
    }
}

/// Polls often, because locks are held for less than a millisecond, and gives up after `patience`. SQLite's own
/// handler sleeps up to 100 ms between two tries.
fn wait(patience: Duration) -> impl FnMut(i32) -> bool + Send + 'static {
    let mut since = Instant::now();
    move |tries| {
        if tries == 0 {
            since = Instant::now();
        } else if since.elapsed() > patience {
            return false;
        }
        sleep(Duration::from_micros(if tries < 100 { 100 } else { 1000 }));
        true
    }
}
