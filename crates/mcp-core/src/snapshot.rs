//! What a run is doing, as one object.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    ApprovalRequested, ApprovalResolved, Approver, Decision, Reason, RunId, RunStatus, Seq, ThreadId, Timestamp, Usage,
};

/// A run at one moment. Made by folding its log ([`crate::RunFold`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Snapshot {
    /// The run.
    pub run: RunId,
    /// Its log.
    pub thread: ThreadId,
    /// The playbook's name, or the name given to `exec`.
    pub playbook: String,
    /// Whether it goes on, and how it ended.
    pub status: RunStatus,
    /// The state it is at, or was at last.
    pub state: Option<String>,
    /// States started so far.
    pub step: u64,
    /// Last position of its thread: the cursor that has seen everything.
    pub head: Seq,
    /// When it was first started.
    pub started_at: Timestamp,
    /// Milliseconds of running so far, pauses excluded.
    pub elapsed_ms: u64,
    /// Why it is not `done`; kebab-case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Reason>,
    /// The error in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The state it ended or waits at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<PendingApproval>,
    /// A resume goes on from here; usable once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// What it has used.
    pub usage: Usage,
    /// Path of its log file, where the caller shares the file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spool: Option<String>,
    /// What to call next, and when.
    #[serde(default)]
    pub next: String,
}

/// A decision or an answer that a run waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PendingApproval {
    /// Its id.
    pub approval: String,
    /// The state that waits.
    pub state: String,
    /// The question.
    pub message: String,
    /// JSON Schema of the answer, for an `ask` state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// SHA-256, in hex, of exactly what will happen.
    pub hash: String,
    /// Who may decide.
    pub by: Approver,
    /// The decision, once it is made and until the run goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The answer that came with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
}

impl PendingApproval {
    pub(crate) fn requested(event: &ApprovalRequested) -> Self {
        let ApprovalRequested { approval, state, message, schema, hash, by } = event.clone();
        Self { approval, state, message, schema, hash, by, decision: None, content: None }
    }

    pub(crate) fn resolve(&mut self, event: &ApprovalResolved) {
        if self.approval == event.approval && self.hash == event.hash && self.decision.is_none() {
            self.decision = Some(event.decision);
            self.content.clone_from(&event.content);
        }
    }
}
