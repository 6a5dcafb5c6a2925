//! Why a process could not be started.

use std::{io, path::PathBuf};

/// A process could not be started. Nothing is left behind, and no event was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// There is no such program.
    #[error("program `{program}` was not found; install it, or name it by its path")]
    NotFound {
        /// As the command names it.
        program: String,
    },
    /// The file is there, but the system does not run it.
    #[error("program `{program}` cannot be executed; {hint}")]
    NotExecutable {
        /// As the command names it.
        program: String,
        /// What to do.
        hint: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The working directory is missing, is not a folder or may not be entered.
    #[error("working directory `{}` cannot be used; create it, or correct `cwd`", cwd.display())]
    BadCwd {
        /// The directory.
        cwd: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Anything else: too many processes or open files, arguments that are too long.
    #[error("program `{program}` could not be started; {hint}")]
    Other {
        /// As the command names it.
        program: String,
        /// What to do.
        hint: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl SpawnError {
    /// The exit code by which shells tell the same: 127 for a missing program, 126 for all else.
    pub const fn exit_code(&self) -> i32 {
        match self {
            SpawnError::NotFound { .. } => 127,
            _ => 126,
        }
    }
}
