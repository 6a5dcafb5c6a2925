//! The engine's events. Four names and their fields are those of an older engine's stream (`run-start`,
//! `state-start`, `state-done`, `branch-done`), so that a console written for it renders ours.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Policy, Reason};

/// A run begins, or goes on after a suspension or an interruption.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunStart {
    /// Playbook name.
    pub machine: String,
    /// 0 at the top, one more for each `call`.
    pub depth: u32,
    /// The state it begins at.
    pub entry: String,
    /// Whether it goes on from a checkpoint.
    pub resumed: bool,
    /// The run lives elsewhere: its events are sent here (`POST …/events`), and no process of ours hosts it.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub external: bool,
}

/// What a state does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StateKind {
    /// A command.
    Run,
    /// Another playbook.
    Call,
    /// Waits for a decision.
    Approve,
    /// Waits for an answer.
    Ask,
}

/// A state begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StateStart {
    /// Playbook name.
    pub machine: String,
    /// 0 at the top.
    pub depth: u32,
    /// The state.
    pub state: String,
    /// Counts the states this run has started, from 1.
    pub step: u64,
    /// What it does.
    pub kind: StateKind,
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// It exited with this code, 0 to 255.
    Code(i32),
    /// A signal ended it: `SIGKILL`.
    Signal(String),
    /// It ran into its time limit and was ended.
    Timeout(bool),
}

impl Exit {
    /// Whether it is `{"code":0}`.
    pub const fn success(&self) -> bool {
        matches!(self, Exit::Code(0))
    }
}

/// A state has ended and its gate was chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StateDone {
    /// Playbook name.
    pub machine: String,
    /// 0 at the top.
    pub depth: u32,
    /// The state.
    pub state: String,
    /// The step it began with.
    pub step: u64,
    /// The condition that fired, as written, or null.
    #[serde(default)]
    pub gate: Option<String>,
    /// What follows from it.
    pub policy: Policy,
    /// The next state, `END`, or null when the run halts here.
    #[serde(default)]
    pub to: Option<String>,
    /// The first 200 characters of its output.
    #[serde(default)]
    pub output: String,
    /// Branches of a fan-out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branches: Option<u64>,
    /// How its process ended; absent for states without one and for fan-outs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// `output` was taken from a stream of which only the end was kept.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub truncated: bool,
}

/// One branch of a fan-out begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BranchStart {
    /// Playbook name.
    pub machine: String,
    /// 0 at the top.
    pub depth: u32,
    /// The state.
    pub state: String,
    /// From 0.
    pub index: u64,
    /// What this branch is about; null for `sample`.
    #[serde(default)]
    pub item: Value,
}

/// One branch of a fan-out has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BranchDone {
    /// Playbook name.
    pub machine: String,
    /// 0 at the top.
    pub depth: u32,
    /// The state.
    pub state: String,
    /// From 0.
    pub index: u64,
    /// How it ended.
    pub exit: Exit,
}

/// Whether a run goes on, and how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunStatus {
    /// Going on.
    Running,
    /// Waits for a decision or an answer.
    Suspended,
    /// Reached its end.
    Done,
    /// Ended by a gate, a budget or an error.
    Halt,
    /// Someone ended it.
    Cancelled,
    /// Its process went away; it can be resumed.
    Interrupted,
}

impl RunStatus {
    /// Whether nothing will follow unless someone resumes it.
    pub const fn rests(self) -> bool {
        !matches!(self, RunStatus::Running)
    }

    /// Whether nobody has to act before it is over: like [`RunStatus::rests`], without `suspended`.
    pub const fn ended(self) -> bool {
        !matches!(self, RunStatus::Running | RunStatus::Suspended)
    }

    /// Whether it is over for good.
    pub const fn is_final(self) -> bool {
        matches!(self, RunStatus::Done | RunStatus::Halt | RunStatus::Cancelled)
    }

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            RunStatus::Running => "running",
            RunStatus::Suspended => "suspended",
            RunStatus::Done => "done",
            RunStatus::Halt => "halt",
            RunStatus::Cancelled => "cancelled",
            RunStatus::Interrupted => "interrupted",
        }
    }
}

/// What a run has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Usage {
    /// States started.
    pub steps: u64,
    /// Milliseconds of running, pauses excluded.
    pub wall_ms: u64,
    /// Lines of process output in the log.
    pub log_lines: u64,
    /// Their bytes as read, newlines included.
    pub log_bytes: u64,
    /// Lines that a limit cut.
    pub clipped_lines: u64,
    /// Their bytes.
    pub clipped_bytes: u64,
}

/// A run has ended, or is suspended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunFinished {
    /// Playbook name.
    pub machine: String,
    /// 0 at the top.
    pub depth: u32,
    /// How.
    pub status: RunStatus,
    /// Why it is not `done`, or null.
    #[serde(default)]
    pub error: Option<Reason>,
    /// The state it ended at, or null.
    #[serde(default)]
    pub at: Option<String>,
    /// What it used.
    #[serde(default)]
    pub usage: Usage,
    /// The error in words, for people: which template, which command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}
