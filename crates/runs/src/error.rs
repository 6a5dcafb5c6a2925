//! What a service answers when it cannot do what it was asked.

use std::{path::PathBuf, sync::Arc};

use taffrail_engine::{
    ResumeError,
    playbook::{InputErrors, LibraryError},
};
use taffrail_mcp_core::{IdError, RunId, RunStatus};
use taffrail_relay::{RelayError, StoreError};
use taffrail_spool::SpoolError;

/// Why a request was not carried out. Nothing of it has happened then.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RunsError {
    /// There is no such run.
    #[error("no run {run}: list the runs to find its id")]
    NoRun {
        /// The id given.
        run: String,
    },
    /// An id cannot be one.
    #[error(transparent)]
    Id(#[from] IdError),
    /// The playbook cannot be had or cannot run.
    #[error(transparent)]
    Playbook(Arc<LibraryError>),
    /// The command cannot be run.
    #[error(transparent)]
    Command(#[from] taffrail_engine::CommandError),
    /// The inputs do not fit.
    #[error("playbook {playbook}: {errors}")]
    Inputs {
        /// Its name.
        playbook: String,
        /// What is wrong with each.
        errors: InputErrors,
    },
    /// The idempotency key was used for something else.
    #[error("idempotency key {key:?} already started run {run} with another playbook or other inputs: use a new key")]
    KeyReused {
        /// The key.
        key: String,
        /// The run it started.
        run: String,
    },
    /// The key is empty or too long.
    #[error("an idempotency key has 1 to 256 characters, this one has {length}")]
    KeyLength {
        /// Its length.
        length: usize,
    },
    /// The run is not in a state in which this can be done.
    #[error("run {run} is {}: {help}", status.as_str())]
    WrongState {
        /// The run.
        run: RunId,
        /// Its state.
        status: RunStatus,
        /// What can be done instead.
        help: &'static str,
    },
    /// The checkpoint was used, or the run has a later one.
    #[error("checkpoint {checkpoint} is used up or replaced: look at the run's status for the current one")]
    CheckpointUsed {
        /// Its id.
        checkpoint: String,
    },
    /// The approval is not what the run waits for.
    #[error("approval {given} is not what run {run} waits for: look at the run's status for the current one")]
    NotWaitingFor {
        /// The run.
        run: RunId,
        /// The approval given.
        given: String,
    },
    /// The approval was decided already.
    #[error("approval {approval} was decided already: {decision}")]
    Decided {
        /// Its id.
        approval: String,
        /// What was decided.
        decision: String,
    },
    /// What was looked at is not what would happen.
    #[error("the hash given is not that of the approval, {hash}: look at the run again before deciding")]
    HashMoved {
        /// The hash that holds.
        hash: String,
    },
    /// The decider has not seen what the approval is about.
    #[error("seen_seq {seen} is not a position of this run's log from {first} on: read the log first")]
    NotSeen {
        /// The position given.
        seen: u64,
        /// Where the request for approval stands, or later.
        first: u64,
    },
    /// Only a person may decide.
    #[error("the approval at {state} is for a person: ask them to run `taffrail approve {run}`")]
    HumanOnly {
        /// The run.
        run: RunId,
        /// The state that waits.
        state: String,
    },
    /// The run waits for a decision and none was given.
    #[error("run {run} waits for {what} at {state}: give it with {how}, or with `taffrail approve {run}`")]
    Undecided {
        /// The run.
        run: RunId,
        /// `a decision` or `an answer`.
        what: &'static str,
        /// The state that waits.
        state: String,
        /// How.
        how: &'static str,
    },
    /// The run cannot be resumed with what was given.
    #[error(transparent)]
    Resume(Arc<ResumeError>),
    /// A run's name cannot be one.
    #[error("a run's name has 1 to {limit} characters and no control characters: give another name")]
    BadName {
        /// Most characters.
        limit: usize,
    },
    /// Inputs for a run that does not use any.
    #[error("an external run takes no inputs, because its producer runs it: leave them out")]
    ExternalInputs,
    /// The run lives elsewhere, and only its producer could do this.
    #[error("run {run} lives elsewhere: {help}")]
    External {
        /// The run.
        run: RunId,
        /// What can be done instead.
        help: &'static str,
    },
    /// Another request makes the run just now. Perhaps the same one, tried before, whose answer was lost.
    #[error("run {run} is being made by another request: try again in a moment")]
    BeingMade {
        /// The run.
        run: RunId,
    },
    /// Events that only the process that runs it may write, for a run that lives here.
    #[error(
        "run {run} is not external, so events of type {kind} are written by the process that runs it: send others, such as log, message, progress and note"
    )]
    NotExternal {
        /// The run.
        run: RunId,
        /// The type of the first such event.
        kind: String,
    },
    /// The run's log does not hold what a resume needs.
    #[error("run {run} has no checkpoint in its log: it cannot be resumed; start a new run")]
    NoCheckpoint {
        /// The run.
        run: RunId,
    },
    /// A `grep` pattern or a cursor is wrong, or the store failed.
    #[error(transparent)]
    Relay(#[from] RelayError),
    /// A folder of the data directory cannot be used.
    #[error("cannot {action} {}", path.display())]
    Folder {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// The spool folder cannot be used.
    #[error(transparent)]
    Spool(Arc<SpoolError>),
    /// The service is shutting down.
    #[error("the service is shutting down")]
    Closing,
}

impl From<StoreError> for RunsError {
    fn from(error: StoreError) -> Self {
        Self::Relay(error.into())
    }
}

impl From<LibraryError> for RunsError {
    fn from(error: LibraryError) -> Self {
        Self::Playbook(Arc::new(error))
    }
}

impl From<ResumeError> for RunsError {
    fn from(error: ResumeError) -> Self {
        Self::Resume(Arc::new(error))
    }
}

impl RunsError {
    /// Whether what was asked for does not exist.
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::NoRun { .. } => true,
            Self::Playbook(error) => match &**error {
                LibraryError::NotFound { .. } => true,
                LibraryError::Io { source, .. } => source.kind() == std::io::ErrorKind::NotFound,
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether somebody else was first, or the run has moved on.
    pub fn is_conflict(&self) -> bool {
        matches!(
            self,
            Self::KeyReused { .. }
                | Self::WrongState { .. }
                | Self::CheckpointUsed { .. }
                | Self::NotWaitingFor { .. }
                | Self::Decided { .. }
                | Self::HashMoved { .. }
                | Self::NotSeen { .. }
                | Self::External { .. }
                | Self::NotExternal { .. }
        )
    }

    /// Whether this caller may not do it.
    pub const fn is_denied(&self) -> bool {
        matches!(self, Self::HumanOnly { .. })
    }

    /// Whether trying again may help.
    pub const fn is_unavailable(&self) -> bool {
        matches!(
            self,
            Self::Relay(RelayError::Store(_) | RelayError::Closed)
                | Self::BeingMade { .. }
                | Self::Folder { .. }
                | Self::Closing
        )
    }
}
