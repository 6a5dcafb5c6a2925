//! Gates that wait for someone, and writes that wait for a gate.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who may decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Approver {
    /// A person.
    Human,
    /// An agent may.
    Agent,
}

/// A gate waits for a decision, or, with a schema, for an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ApprovalRequested {
    /// Id of this approval.
    pub approval: String,
    /// The state that waits.
    pub state: String,
    /// The question, rendered.
    pub message: String,
    /// JSON Schema of the answer, for an `ask` state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// SHA-256, in hex, of exactly what will happen.
    pub hash: String,
    /// Who may decide.
    pub by: Approver,
}

/// A decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// Go on.
    Approve,
    /// Do not.
    Reject,
}

/// The decision on an approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ApprovalResolved {
    /// The approval.
    pub approval: String,
    /// What was decided.
    pub decision: Decision,
    /// The hash that the decision is about.
    pub hash: String,
    /// Who decided.
    pub actor: String,
    /// Position of the log that the decider had seen.
    pub seen_seq: u64,
    /// The answer, for an `ask` state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
}

/// A proposed write: what will be called, by its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Proposal {
    /// Id of this proposal.
    pub proposal: String,
    /// The tool it would call.
    pub tool: String,
    /// SHA-256, in hex, of the call.
    pub hash: String,
    /// Who proposed.
    pub actor: String,
}

/// A proposed write was carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ProposalApplied {
    /// The proposal.
    pub proposal: String,
    /// The tool it called.
    pub tool: String,
    /// SHA-256, in hex, of the call.
    pub hash: String,
    /// Who carried it out.
    pub actor: String,
}
