//! What goes into a [`Machine`](super::Machine) and what comes out of it: plain data.

use std::time::Duration;

use taffrail_mcp_core::{Event, Exit, Reason, RunStatus, Usage};

use crate::process::Command;

/// Names one running process of a machine; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u64);

/// Something that happened outside the machine.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// A process has ended.
    Exited {
        /// Which.
        task: TaskId,
        /// How.
        exit: Exit,
        /// The end of its standard output.
        stdout: Vec<u8>,
        /// Whether `stdout` lacks its beginning.
        truncated: bool,
    },
    /// A process could not be started.
    SpawnFailed {
        /// Which.
        task: TaskId,
        /// What a shell would report: 127 for a missing program, 126 for one that may not run.
        code: i32,
        /// What went wrong, for people.
        detail: String,
    },
    /// The code around a process gave up; nothing is known about the process.
    Lost {
        /// Which.
        task: TaskId,
        /// What went wrong, for people.
        detail: String,
    },
    /// Someone outside ends the run. The first reason stands; later ones are ignored.
    Stop(Stop),
}

/// Why a run is ended before its playbook ends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// Someone cancelled it: `cancelled`, for good.
    Cancel,
    /// The server that runs it shuts down: `interrupted`, to be resumed from its last checkpoint.
    Shutdown,
    /// Steps or wall time are used up: `halt` with `budget-exhausted` and these words.
    Budget(String),
    /// A fault of the engine itself: `halt` with `internal-error` and these words.
    Fault(String),
}

/// What the driver measures, as of now. Totals of the whole run, earlier sessions included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// Time of running, pauses excluded.
    pub wall: Duration,
    /// Lines of process output that went into the log.
    pub log_lines: u64,
    /// Their bytes as read.
    pub log_bytes: u64,
    /// Lines that the output budget cut.
    pub clipped_lines: u64,
    /// Their bytes as read.
    pub clipped_bytes: u64,
}

impl Reading {
    /// The larger of the two in everything.
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            wall: self.wall.max(other.wall),
            log_lines: self.log_lines.max(other.log_lines),
            log_bytes: self.log_bytes.max(other.log_bytes),
            clipped_lines: self.clipped_lines.max(other.clipped_lines),
            clipped_bytes: self.clipped_bytes.max(other.clipped_bytes),
        }
    }

    /// As it stands in events.
    pub(crate) fn usage(&self, steps: u64) -> Usage {
        let Reading { wall, log_lines, log_bytes, clipped_lines, clipped_bytes } = *self;
        let wall_ms = u64::try_from(wall.as_millis()).unwrap_or(u64::MAX);
        Usage { steps, wall_ms, log_lines, log_bytes, clipped_lines, clipped_bytes }
    }

    /// What an earlier session had used.
    pub fn from_usage(usage: &Usage) -> Self {
        let Usage { steps: _, wall_ms, log_lines, log_bytes, clipped_lines, clipped_bytes } = *usage;
        Self { wall: Duration::from_millis(wall_ms), log_lines, log_bytes, clipped_lines, clipped_bytes }
    }
}

/// What the driver has to do, in this order.
#[derive(Debug)]
pub enum Effect {
    /// Hand this event to the sink.
    Emit(Event),
    /// Start this process; report its end as [`Fact::Exited`], [`Fact::SpawnFailed`] or [`Fact::Lost`].
    Run(Box<Task>),
    /// End every running process (TERM, grace, KILL); still report each.
    EndTasks,
    /// Nothing follows. The event `run-finished` came right before.
    End(Ended),
}

/// One process to run, everything rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its name in the facts that follow.
    pub id: TaskId,
    /// What to start. Its `index` is the branch of the state's own fan-out, or of the nearest one around a called
    /// playbook; the driver adds what only it knows to the environment.
    pub command: Command,
}

/// How a run, or this session of it, has ended: what stands in its `run-finished`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub status: RunStatus,
    /// Why it is not `done`; none for `done` and `suspended`.
    pub error: Option<Reason>,
    /// The state of the outermost playbook it ended or waits at; none for `done`.
    pub at: Option<String>,
    /// What the whole run has used.
    pub usage: Usage,
    /// The error in words.
    pub detail: Option<String>,
    /// How the process of the outermost playbook's last state ended: `taffrail exec` passes it on.
    pub exit: Option<Exit>,
}
