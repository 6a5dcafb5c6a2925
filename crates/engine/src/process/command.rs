//! What to start, and how it ended.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use taffrail_mcp_core::Exit;

/// What is executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A text for `sh -c`. That it names a missing program is the shell's business: exit code 127.
    Shell(String),
    /// A program and its arguments, without a shell. A name without `/` is looked up in `PATH`, one with `/` from the
    /// working directory of the command.
    Exec(Vec<OsString>),
}

/// One process to start: a state of a playbook, or one branch of it.
///
/// Its standard input is `/dev/null`; it becomes the leader of a process group of its own; its environment is ours,
/// then `env`, then `TAFFRAIL_SCOPE` (see [`super::Scope`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What is executed.
    pub program: Program,
    /// Variables added to our environment, later ones winning.
    pub env: Vec<(String, String)>,
    /// The working directory; must be a folder.
    pub cwd: PathBuf,
    /// How long it may run before it is ended; `None` is for ever. Its exit is then [`Exit::Timeout`].
    pub timeout: Option<Duration>,
    /// Whether what it started may outlive it, and us. Children that go on after the process itself has ended keep a
    /// reader for their output while we live (it is no longer logged); to outlive us they should write elsewhere.
    pub detach: bool,
    /// Whether lines of standard output become `message` events instead of `log`: role `assistant`, `delta`, the text
    /// of the line with its newline, bytes that are not UTF-8 replaced by U+FFFD. Standard error stays `log`.
    pub emit_message: bool,
    /// The state its events name.
    pub state: String,
    /// The branch its events name.
    pub index: Option<u64>,
}

impl Command {
    /// A command in the working directory `cwd`, with nothing else set.
    pub fn new(program: Program, cwd: impl Into<PathBuf>, state: impl Into<String>) -> Self {
        Self {
            program,
            env: Vec::new(),
            cwd: cwd.into(),
            timeout: None,
            detach: false,
            emit_message: false,
            state: state.into(),
            index: None,
        }
    }
}

/// How a process ended, and what it said last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its exit; [`Exit::Timeout`] whenever its time limit was reached, however it then ended.
    pub exit: Exit,
    /// Whether [`super::Cancel`] ended it: the request came before the process had ended by itself.
    pub cancelled: bool,
    /// The end of its standard output as read: the last 64 KiB.
    pub stdout: Vec<u8>,
    /// Whether `stdout` lacks an earlier part.
    pub truncated: bool,
}
