//! What a background spool tells about itself.

use std::{fmt, path::PathBuf};

use taffrail_mcp_core::{RunId, Seq};

/// Something about a spool that operators want to know. Its text (`Display`) is that of a `note` event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The run whose spool it is.
    pub run: RunId,
    /// Its file.
    pub path: PathBuf,
    /// What happened.
    pub what: What,
}

/// What happened to a spool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// Nothing can be written for now. Told once; retries go on until [`What::Resumed`].
    Paused {
        /// Why, for people.
        reason: String,
    },
    /// Writing goes on, with no record missing.
    Resumed {
        /// Position of the first record written again.
        from: Seq,
    },
    /// The log no longer had these records when the spool came to them.
    Missed {
        /// Position of the first.
        from: Seq,
        /// Position of the last.
        to: Seq,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Paused { reason } => write!(f, "spool-paused {reason}"),
            What::Resumed { from } => write!(f, "spool-resumed from {from}"),
            What::Missed { from, to } => write!(f, "spool-missed {from} to {to}: the log no longer had them"),
        }
    }
}
