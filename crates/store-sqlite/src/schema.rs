//! Format of the file, and how one comes to be.

use std::{
    fs::OpenOptions,
    io,
    path::Path,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use taffrail_relay::StoreError;

use crate::{
    db::{Db, Role},
    fault::{Fault, io_error, is_busy},
    turnstile::Turnstile,
};

/// Newest format that this program knows, kept in `PRAGMA user_version`.
///
/// - 1: the first.
/// - 2: large blocks are compressed in pieces (codec 2).
pub const FORMAT_VERSION: u32 = 2;

/// `PRAGMA application_id` of our files: "tfrl".
const APPLICATION_ID: i32 = i32::from_be_bytes(*b"tfrl");

/// Bits of a block's key that hold its first position; the thread's number is above them.
pub(crate) const SEQ_BITS: u32 = 36;
/// Last position that fits a key: a thread can hold 68 thousand million records.
pub(crate) const SEQ_MAX: u64 = (1 << SEQ_BITS) - 1;
/// Last thread number that fits a key: 134 million threads.
pub(crate) const THREAD_MAX: i64 = i64::MAX >> SEQ_BITS;

/// The step to each version from the one before.
///
/// A block's key is its thread's number and its first position in one integer. So a thread's blocks stand side by side
/// in the table's own tree, a page is found in one descent, and a commit of one block touches one page of it; an index
/// on (thread, first) would be a second page for every commit and a second descent for every block. `run` is null in
/// the usual case that it is named as its thread, which also keeps such blocks out of the index.
const MIGRATIONS: [&str; FORMAT_VERSION as usize] = [
    "
CREATE TABLE threads (
    no INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    head INTEGER NOT NULL,
    first INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    stored INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    trimmed_records INTEGER NOT NULL DEFAULT 0,
    trimmed_bytes INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE blocks (
    id INTEGER PRIMARY KEY,
    count INTEGER NOT NULL,
    ts INTEGER NOT NULL,
    run TEXT,
    codec INTEGER NOT NULL,
    raw INTEGER NOT NULL,
    bytes BLOB NOT NULL
) STRICT;
CREATE INDEX blocks_of_run ON blocks (run) WHERE run IS NOT NULL;
CREATE TABLE runs (
    no INTEGER PRIMARY KEY,
    run TEXT NOT NULL UNIQUE,
    thread TEXT NOT NULL,
    status TEXT NOT NULL,
    fold TEXT NOT NULL
) STRICT;
CREATE INDEX runs_of_thread ON runs (thread);
CREATE INDEX runs_in_status ON runs (status);
CREATE TABLE claims (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    run TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX claims_of_run ON claims (run);
",
    "",
];

/// Makes the file when there is none, checks that it is ours, and brings it to [`FORMAT_VERSION`].
///
/// Any number of processes may do so at once. A file that is not ours is left as it is.
pub(crate) fn prepare(db: &Db) -> Result<(Connection, Turnstile), StoreError> {
    let conn = {
        let _alone = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
        create(&db.path)?;
        db.connect(Role::Writer)?
    };
    // Before anything, the turnstile included, is made beside a file that may not be ours.
    patiently(db, || look(db, &conn).map(drop))?;
    let mut turnstile = Turnstile::open(&db.path)?;
    turnstile.pass();
    patiently(db, || bring_up(db, &conn))?;
    turnstile.leave();
    Ok((conn, turnstile))
}

/// Tries again while others are in the way: the switch to WAL fails at once, without the busy handler, when another
/// process is at it.
fn patiently(db: &Db, attempt: impl Fn() -> Result<(), Refusal>) -> Result<(), StoreError> {
    let deadline = Instant::now() + db.config.busy_timeout;
    loop {
        match attempt() {
            Err(Refusal::Fault(Fault::Sql(e))) if is_busy(&e) && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(()) => return Ok(()),
            Err(Refusal::Fault(fault)) => return Err(db.error("open", fault)),
            Err(Refusal::Newer(found)) => {
                return Err(StoreError::Newer { path: db.path.clone(), found, known: FORMAT_VERSION });
            }
        }
    }
}

/// Held while a file is made. Closing a file drops all POSIX locks that the process has on it, so the file must be
/// closed before another thread's SQLite can have it open.
static OPENING: Mutex<()> = Mutex::new(());

/// Makes an empty file that only its owner can read; SQLite gives its helper files the same mode. Never opens a file
/// that exists, for the reason above.
fn create(path: &Path) -> Result<(), StoreError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(io_error(path, "create", e)),
    }
}

enum Refusal {
    Fault(Fault),
    Newer(u32),
}

impl<E: Into<Fault>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Refusal::Fault(error.into())
    }
}

fn bring_up(db: &Db, conn: &Connection) -> Result<(), Refusal> {
    let version = look(db, conn)?;
    if version == 0 {
        // Only has an effect before the first page is written.
        conn.pragma_update(None, "page_size", PAGE_SIZE)?;
    }
    let mode: String = conn.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if !mode.eq_ignore_ascii_case("wal") {
        return Err(Fault::Refused(format!("its file system allows only journal mode {mode}")).into());
    }
    db.tune(conn)?;
    if version < FORMAT_VERSION {
        let tx = Transaction::new_unchecked(conn, TransactionBehavior::Immediate)?;
        // Another process may have been faster.
        let version = identify(&tx)?;
        for (step, to) in MIGRATIONS.iter().zip(1..).skip(version as usize) {
            tx.execute_batch(step)?;
            tx.pragma_update(None, "user_version", to)?;
        }
        tx.pragma_update(None, "application_id", APPLICATION_ID)?;
        tx.commit()?;
    }
    Ok(())
}

/// Bytes of a page.
const PAGE_SIZE: u32 = 4096;

/// The format of the file at one moment; 0 when it is empty.
fn look(db: &Db, conn: &Connection) -> Result<u32, Refusal> {
    // SQLite takes some files shorter than a page for empty ones and would write over them.
    let length = std::fs::metadata(&db.path).map_or(0, |file| file.len());
    if (1..MIN_PAGE_SIZE).contains(&length) {
        return Err(Fault::Damaged("it is not a database".into()).into());
    }
    // In a transaction, or another process could make the file between two questions.
    let tx = Transaction::new_unchecked(conn, TransactionBehavior::Deferred)?;
    identify(&tx)
}

/// Bytes of the smallest page of any SQLite database.
const MIN_PAGE_SIZE: u64 = 512;

/// The format of the file; 0 when it is empty.
fn identify(conn: &Connection) -> Result<u32, Refusal> {
    let id: i32 = conn.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version: i32 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let objects: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let version = u32::try_from(version).unwrap_or(0);
    match (id, version) {
        (0, 0) if objects == 0 => Ok(0),
        (APPLICATION_ID, 1..=FORMAT_VERSION) => Ok(version),
        (APPLICATION_ID, found) if found > FORMAT_VERSION => Err(Refusal::Newer(found)),
        _ => Err(Fault::Damaged("it is a database of another program".into()).into()),
    }
}
