//! Copies the write-ahead log into the database, off the writer.
//!
//! The thread here copies what is there while the writer goes on. SQLite begins the log anew, over the old one, only
//! when all of it is copied; so when the thread is done the writer stops for the little that has come in meanwhile.
//! That keeps the log at a few mebibytes, and its file from growing: an `fdatasync` after growing costs several times
//! one after overwriting.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{Builder, JoinHandle},
    time::Instant,
};

use rusqlite::Connection;
use taffrail_relay::StoreError;
use tracing::{debug, warn};

use crate::db::{Db, Role, WAL_MAX_BYTES};

/// The log is copied each time it has grown by this much: 4 MiB is a few milliseconds of copying.
const STEP_BYTES: u64 = 4 << 20;

/// The thread that checkpoints, and its connection, which the writer borrows when the log must be cut.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    conn: Arc<Mutex<Connection>>,
    due: Option<SyncSender<()>>,
    /// The thread has copied what there was when it began.
    copied: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Length of the log at the last request, and at the last cut, in bytes.
    requested: u64,
    cut: u64,
}

impl Checkpointer {
    /// Starts the thread.
    pub(crate) fn start(db: &Db) -> Result<Self, StoreError> {
        let conn = db.connect(Role::Checkpoint)?;
        db.tune(&conn).map_err(|e| db.error("open", e))?;
        let conn = Arc::new(Mutex::new(conn));
        let (due, requests) = sync_channel(1);
        let copied = Arc::new(AtomicBool::new(false));
        let thread = Builder::new().name("sqlite-checkpoint".into()).spawn({
            let (conn, copied) = (Arc::clone(&conn), Arc::clone(&copied));
            move || run(&conn, &requests, &copied)
        });
        let thread = thread.map_err(|e| crate::fault::io_error(&db.path, "start a thread for", e))?;
        Ok(Self { conn, due: Some(due), copied, thread: Some(thread), requested: 0, cut: 0 })
    }

    /// Told by the writer, between two transactions, how long the log is.
    pub(crate) fn written(&mut self, wal_bytes: u64) {
        if wal_bytes < self.requested {
            // It has begun anew.
            (self.requested, self.cut) = (0, 0);
        }
        if wal_bytes > WAL_MAX_BYTES && wal_bytes > self.cut + STEP_BYTES {
            // Most of it was copied already. The writer, who waits here, keeps it from growing further meanwhile.
            self.cut = wal_bytes;
            checkpoint(&lock(&self.conn), "RESTART");
        } else if self.copied.swap(false, Relaxed) {
            checkpoint(&lock(&self.conn), "PASSIVE");
        } else if wal_bytes > self.requested + STEP_BYTES
            && let Some(due) = &self.due
        {
            self.requested = wal_bytes;
            // Full: one is due already.
            let _ = due.try_send(());
        }
    }
}

impl Drop for Checkpointer {
    /// Waits for the checkpoint that is going on.
    fn drop(&mut self) {
        self.due = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock(conn: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    conn.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run(conn: &Mutex<Connection>, requests: &Receiver<()>, copied: &AtomicBool) {
    while requests.recv().is_ok() {
        checkpoint(&lock(conn), "PASSIVE");
        copied.store(true, Relaxed);
    }
}

/// Runs a checkpoint. A failure costs nothing but room: the log is still there, and is tried again when it has grown.
pub(crate) fn checkpoint(conn: &Connection, mode: &str) {
    let start = Instant::now();
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    let done = conn.query_row(&sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    match done {
        Ok::<(i64, i64, i64), _>((busy, pages, copied)) => {
            debug!(mode, busy, pages, copied, elapsed = ?start.elapsed(), "checkpoint");
        }
        Err(error) => warn!(mode, %error, "the write-ahead log could not be copied into the database"),
    }
}
