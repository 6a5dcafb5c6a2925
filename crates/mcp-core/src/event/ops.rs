//! Events about the running of runs.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Whether a call was let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ToolDecision {
    /// It was.
    Allowed,
    /// It was not.
    Denied,
}

/// A call by an agent inside a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToolCall {
    /// The tool.
    pub tool: String,
    /// The role of the token.
    pub role: String,
    /// On whose behalf.
    pub actor: String,
    /// Whether it was let through.
    pub decision: ToolDecision,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long it took, in milliseconds.
    pub ms: u64,
    /// Size of its result.
    pub bytes: u64,
}

/// What a resume needs; never a secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Checkpoint {
    /// Its id; usable once.
    pub checkpoint: String,
    /// The state a resume goes on at.
    pub state: String,
    /// States started so far.
    pub step: u64,
    /// The engine's own data.
    #[serde(default)]
    pub resume: Value,
}

/// A checkpoint was used up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CheckpointClaimed {
    /// The checkpoint.
    pub checkpoint: String,
    /// Who resumes.
    pub actor: String,
}

/// Someone asked for the run to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CancelRequested {
    /// Who.
    pub actor: String,
    /// Why, in their words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Without waiting for the processes to end by themselves.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub kill: bool,
}

/// How much a note matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Good to know.
    Info,
    /// Something is not as it should be.
    Warning,
    /// Something failed.
    Error,
}

/// A remark for operators: `spool-paused`, `store-retry`, …
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Note {
    /// What; begins with a kebab-case word where programs should recognise it.
    pub text: Cow<'static, str>,
    /// How much it matters.
    pub level: Level,
}

impl Note {
    /// A note at level `info`.
    pub fn info(text: impl Into<Cow<'static, str>>) -> Self {
        Self { text: text.into(), level: Level::Info }
    }

    /// A note at level `warning`.
    pub fn warning(text: impl Into<Cow<'static, str>>) -> Self {
        Self { text: text.into(), level: Level::Warning }
    }
}
