//! What requests and answers of the REST routes look like.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use taffrail_mcp_core::{Decision, RunId, Seq, Snapshot};

/// `POST /api/v1/threads/{thread}/runs`.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartBody {
    /// Name of the playbook to run.
    #[serde(default)]
    pub(crate) playbook: Option<String>,
    /// Inputs of the playbook.
    #[serde(default)]
    pub(crate) inputs: Map<String, Value>,
    /// Makes a repeated request return the run that the first one started. 1 to 256 characters.
    #[serde(default)]
    pub(crate) idempotency_key: Option<String>,
    /// `console_turn` answers with the run's records as they come, and its snapshot last.
    #[serde(default)]
    pub(crate) phase: Option<Phase>,
    /// The run happens elsewhere, and its events will be sent to `/api/v1/runs/{run}/events`.
    #[serde(default)]
    pub(crate) external: bool,
    /// What an external run is called.
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// The id of an external run, made by its producer, who can so begin before it reaches this server.
    #[serde(default)]
    pub(crate) run: Option<RunId>,
}

/// How the answer to a start comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// As a stream of records.
    ConsoleTurn,
}

/// What a start answers: the snapshot's fields and `status_url`, where to ask for it again, as one object.
pub(crate) fn accepted(snapshot: &Snapshot, status_url: &str) -> serde_json::Result<Vec<u8>> {
    let mut out = serde_json::to_vec(snapshot)?;
    // The object goes on before its end.
    out.pop();
    out.extend_from_slice(b",\"status_url\":");
    serde_json::to_writer(&mut out, status_url)?;
    out.push(b'}');
    Ok(out)
}

/// `POST /api/v1/runs/{run}/approvals/{approval}`.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApproveBody {
    /// What is decided.
    pub(crate) decision: Decision,
    /// The approval's hash, as it was looked at: a decision holds only for exactly what was shown.
    pub(crate) hash: String,
    /// Last position of the log that the decider has seen.
    pub(crate) seen_seq: Seq,
    /// The answer to a question.
    #[serde(default)]
    pub(crate) content: Option<Value>,
    /// Secret inputs again, where going on needs them.
    #[serde(default)]
    pub(crate) inputs: Map<String, Value>,
}

/// `POST /api/v1/runs/{run}/resume`.
#[derive(Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResumeBody {
    /// A checkpoint of the run; usable once. The last one by default.
    #[serde(default)]
    pub(crate) checkpoint: Option<String>,
    /// The answer to a question, the decision of an approval that is not for a person, and secret inputs again.
    #[serde(default)]
    pub(crate) inputs: Map<String, Value>,
}

/// `POST /api/v1/runs/{run}/cancel`.
#[derive(Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelBody {
    /// Why, for the log.
    #[serde(default)]
    pub(crate) reason: Option<String>,
    /// Kill processes at once instead of asking them to end first.
    #[serde(default)]
    pub(crate) kill: bool,
}

/// `GET /api/v1/runs`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct RunList {
    /// Snapshots, newest first.
    pub(crate) runs: Vec<Snapshot>,
    /// Give this as `before` for the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<RunId>,
}
