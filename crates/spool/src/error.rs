//! What can go wrong with spool files.

use std::{io, path::PathBuf};

use rustix::io::Errno;
use taffrail_mcp_core::{RunId, Seq};

/// A spool file or its folder could not be used.
///
/// None of these concerns the run itself: its log goes on, and any spool can be made again from it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpoolError {
    /// Another writer, mostly another process, keeps this file up to date; it can be read all the same.
    #[error("{} is being written by another process: read it as it is", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The disk, a quota or the largest file size is reached. What was written ends with a whole line.
    #[error("no space left for {}: free some space, or remove old runs with `taffrail gc`", path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The folder or a file in it could be in the hands of somebody else; nothing was touched.
    #[error("{} {why}: move it away, or name another data folder", path.display())]
    Unsafe {
        /// The folder or file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The file does not begin as a spool file of this run does; nothing was touched.
    #[error("{} is not a spool file of run {run}: move it away", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The run it should belong to.
        run: RunId,
    },
    /// A block of another run, or one that is not made of whole lines; a mistake of the caller.
    #[error("the block at {first} of run {run} cannot be appended to {}", path.display())]
    Block {
        /// The file.
        path: PathBuf,
        /// Run of the block.
        run: RunId,
        /// Position of its first record.
        first: Seq,
    },
    /// The system refused something else.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried: `open`, `write`, `rotate` …
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl SpoolError {
    /// Whether trying again later may help without anybody changing the spool folder itself.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Busy { .. } | Self::Full { .. } | Self::Io { .. })
    }

    /// Sorts an error of the system: out of room, a symbolic link where none may be, or anything else.
    pub(crate) fn from_io(action: &'static str, path: PathBuf, source: io::Error) -> Self {
        match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => Self::Full { path },
            Some(Errno::LOOP) => Self::Unsafe { path, why: "is a symbolic link" },
            _ => Self::Io { action, path, source },
        }
    }
}
