//! What a resume needs, as it stands in the `resume` field of a `checkpoint` event.
//!
//! Inputs of called playbooks are not stored: a resume renders their `with` again from the caller's frame, which is
//! exactly as it was. So a secret that a caller passes on cannot get into the log by way of a callee.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use taffrail_mcp_core::Usage;

use super::ResumeError;

/// Everything another process needs to go on with a run. Holds no value of a secret input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResumeData {
    /// Version of this document; see [`ResumeData::VERSION`].
    pub version: u32,
    /// States started before the one it goes on at.
    pub steps: u64,
    /// What had been used.
    #[serde(default)]
    pub usage: Usage,
    /// The playbooks that were running, outermost first; never empty.
    pub frames: Vec<FrameData>,
    /// What the innermost state waits for, when it is an `approve` or `ask`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<PendingData>,
    /// What the run was started with. Only in the first checkpoint of a run; [`ResumeData::read`] brings it along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// One running playbook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrameData {
    /// Its name.
    pub playbook: String,
    /// The state it is at.
    pub state: String,
    /// The step that state was started with; absent for the innermost frame, whose state starts again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// Kept outputs.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub ctx: Map<String, Value>,
    /// `attempt` of each state that was entered.
    #[serde(default)]
    pub attempts: BTreeMap<String, u64>,
    /// How often each `repair` gate has fired.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<RepairData>,
}

/// How often one `repair` gate has fired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairData {
    /// The state whose gate it is.
    pub state: String,
    /// Which of its gates, from 0.
    pub gate: usize,
    /// How often.
    pub used: u32,
}

/// A decision or an answer that is waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingData {
    /// Id of the approval.
    pub approval: String,
    /// The rendered question.
    pub message: String,
    /// What a decision is bound to: SHA-256, in hex, of all that can follow from it. See `machine/approval.rs`.
    pub hash: String,
}

/// What a run was started with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// Source text by name: the playbook itself and all it may call, directly or not.
    pub sources: BTreeMap<String, String>,
    /// The inputs, defaults applied, without secrets.
    #[serde(default)]
    pub inputs: Map<String, Value>,
    /// Secret inputs that had a value and must be given again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// The base working directory; absent when it is not UTF-8: then the resuming side says where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The budget of the run, which the caller may have changed from what the source says.
    pub budget: BudgetData,
}

/// A budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetData {
    /// States started.
    pub steps: u64,
    /// Milliseconds of running.
    pub wall_ms: u64,
    /// Bytes of process output.
    pub output_bytes: u64,
}

impl ResumeData {
    /// The version this program writes, and the newest it reads.
    ///
    /// - 1: the first.
    pub const VERSION: u32 = 1;

    /// Reads the `resume` fields of a run's first checkpoint and of the one to go on from (the same value twice when
    /// there is only one).
    ///
    /// # Errors
    ///
    /// [`ResumeError::Newer`] when a newer program wrote it, [`ResumeError::Malformed`] when it is not such a document,
    /// [`ResumeError::NoOrigin`] when `first` is not the first checkpoint.
    pub fn read(first: &Value, latest: &Value) -> Result<Self, ResumeError> {
        let mut data = Self::parse(latest)?;
        if data.origin.is_none() {
            data.origin = Self::parse(first)?.origin;
        }
        if data.origin.is_none() {
            return Err(ResumeError::NoOrigin);
        }
        Ok(data)
    }

    fn parse(value: &Value) -> Result<Self, ResumeError> {
        // The version is looked at first: a newer document may not have the shape that is known here.
        let version = value.get("version").and_then(Value::as_u64).unwrap_or(0);
        if version > u64::from(Self::VERSION) {
            return Err(ResumeError::Newer { found: version, known: Self::VERSION });
        }
        let data: Self = Self::deserialize(value).map_err(|source| ResumeError::Malformed { source })?;
        if data.version == 0 || data.frames.is_empty() {
            return Err(ResumeError::Empty);
        }
        Ok(data)
    }

    /// As it goes into a checkpoint.
    pub fn to_value(&self) -> Value {
        // Every key is a string and every number finite, so this cannot fail; a null would be refused by `read`.
        serde_json::to_value(self).unwrap_or_default()
    }
}
