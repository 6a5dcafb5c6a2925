//! What can go wrong under and in a relay.

use std::{path::PathBuf, sync::Arc};

use taffrail_mcp_core::{ProducerId, RunId, RunStatus, Seq, ThreadId};

/// A store could not do what it was asked.
///
/// Cheap to clone, because one failed group answers many publishers.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The disk or a quota is full.
    #[error("no space left for {}: free some space, or remove old runs with `taffrail gc`", path.display())]
    Full {
        /// The file, or in words the database.
        path: PathBuf,
    },
    /// The file or its folder cannot be written.
    #[error("{} cannot be written: check its permissions and its file system", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The file is damaged.
    #[error("{} is damaged ({detail}): nothing was changed; move it away to start with an empty store, or recover it with `sqlite3 FILE .recover`", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What was noticed.
        detail: String,
    },
    /// A newer program made the file.
    #[error("{} was made by a newer version (its format is {found}, this program knows up to {known}): use that version", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Format of the file.
        found: u32,
        /// Newest format known.
        known: u32,
    },
    /// What a database holds cannot have been written by this program.
    #[error(
        "{place} holds what this program did not write ({detail}): nothing was changed; restore a backup, or use another schema"
    )]
    Damaged {
        /// The database.
        place: String,
        /// What was noticed.
        detail: String,
    },
    /// A newer program made what a database holds.
    #[error(
        "{place} was made by a newer version (its format is {found}, this program knows up to {known}): use that version, or another schema"
    )]
    NewerSchema {
        /// The schema and its database.
        place: String,
        /// Format of the schema.
        found: u32,
        /// Newest format known.
        known: u32,
    },
    /// Something else, that may pass.
    #[error("{what}")]
    Unavailable {
        /// What was tried, on what.
        what: String,
        /// Why it failed.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Whether trying again may help without anybody changing the store itself.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Full { .. } | Self::ReadOnly { .. } | Self::Unavailable { .. })
    }
}

/// A relay could not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RelayError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A cursor that no reader can have got from here.
    #[error("cursor {after} is past the end of thread {thread}, whose last record is {head}")]
    CursorAhead {
        /// The log.
        thread: ThreadId,
        /// The cursor given.
        after: Seq,
        /// Its last record.
        head: Seq,
    },
    /// The pattern is not a regular expression, or too large.
    #[error("the pattern of grep is not a regular expression: {detail}")]
    BadPattern {
        /// What is wrong, and where.
        detail: String,
    },
    /// The claim is taken.
    #[error("already done: {value}")]
    Claimed {
        /// Value of the claim that came first.
        value: String,
    },
    /// More is waiting to be written than memory should hold.
    #[error("run {run} has more events waiting to be written than memory should hold")]
    Overloaded {
        /// The run.
        run: RunId,
    },
    /// Events are missing between the last that arrived and those that were sent; nothing was stored.
    #[error("events of producer {producer} are missing: number {expected} comes next, not {given}")]
    Hole {
        /// Who numbered them.
        producer: ProducerId,
        /// The number that comes next.
        expected: u64,
        /// The number of the first event given.
        given: u64,
    },
    /// The run is over, and takes no more events; nothing was stored.
    #[error("run {run} is {}: it takes no more events", status.as_str())]
    RunOver {
        /// The run.
        run: RunId,
        /// How it ended.
        status: RunStatus,
    },
    /// One run has more producers than its state should hold.
    #[error("run {run} has {limit} producers already: send as one of them")]
    TooManyProducers {
        /// The run.
        run: RunId,
        /// Most of them.
        limit: usize,
    },
    /// The relay was closed.
    #[error("the relay is closed")]
    Closed,
}
