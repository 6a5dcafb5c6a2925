//! Windows of a log, and what cannot be had of it any more.

use serde::{Deserialize, Serialize};

use crate::{Seq, ThreadId};

/// Why records cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GapReason {
    /// Retention removed them.
    Retention,
}

/// Told to a reader, never stored: records `from` to `to` can no longer be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "type", rename = "gap")]
pub struct Gap {
    /// The log.
    pub thread: ThreadId,
    /// First of them.
    pub from: Seq,
    /// Last of them.
    pub to: Seq,
    /// Why.
    pub reason: GapReason,
    /// The cursor to go on with: the same as `to`.
    pub next: Seq,
}

impl Gap {
    /// The gap that retention left for a reader who has seen `after`, when the first kept record is `first`.
    pub fn retention(thread: ThreadId, after: Seq, first: Seq) -> Option<Self> {
        let to = Seq(first.0.checked_sub(1)?);
        (after < to).then(|| Self { thread, from: after.next(), to, reason: GapReason::Retention, next: to })
    }

    /// Its JSON object, without newline.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// What a page says beside its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PageMeta {
    /// The cursor of the next page.
    pub next: Seq,
    /// Last position of the thread.
    pub head: Seq,
    /// First position that is kept.
    pub first: Seq,
    /// The page reaches the end of a finished run.
    pub done: bool,
    /// Records of this page that passed the filters.
    pub matched: u64,
    /// Records of this page that were looked at.
    pub scanned: u64,
}
