//! How much room spools may take: the one home of these numbers.

use std::time::Duration;

/// How large and how old spool files may become.
///
/// The defaults are part of the wire contract (section Spool).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one file, its first line included. Default 16 MiB. A single record larger than this goes in whole, in
    /// a file of its own.
    pub file_bytes: u64,
    /// Bytes of all files of one run. Default 256 MiB. Files are at most half of this, so that a rotation never leaves
    /// a run with nothing but a new file.
    pub run_bytes: u64,
    /// Bytes of all files in the folder. Default 2 GiB. Held by [`crate::sweep`], not between two sweeps.
    pub total_bytes: u64,
    /// Time since the last write to a file. Default 7 days. Held by [`crate::sweep`].
    pub age: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_bytes: 16 << 20,
            run_bytes: 256 << 20,
            total_bytes: 2 << 30,
            age: Duration::from_secs(7 * 24 * 60 * 60),
        }
    }
}

impl Limits {
    /// Bytes at which a file is rotated.
    pub(crate) fn rotate_at(&self) -> u64 {
        self.file_bytes.min(self.run_bytes / 2)
    }
}
