//! Open vocabularies: words a reader passes on although it does not know them.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Serialize};

/// Why a run did not end as `done`; a kebab-case word.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Reason(pub Cow<'static, str>);

impl Reason {
    /// A gate with `then: fail` fired, or a state without gates failed.
    pub const GATE_FAILED: Self = Self::word("gate-failed");
    /// No gate's condition was true.
    pub const NO_GATE_MATCHED: Self = Self::word("no-gate-matched");
    /// The steps or the wall time of the run are used up.
    pub const BUDGET_EXHAUSTED: Self = Self::word("budget-exhausted");
    /// A state without gates ran into its time limit.
    pub const TIMEOUT: Self = Self::word("timeout");
    /// A `repair` gate fired once more than it may.
    pub const REPAIR_EXHAUSTED: Self = Self::word("repair-exhausted");
    /// An approval was rejected and no gate dealt with it.
    pub const APPROVAL_REJECTED: Self = Self::word("approval-rejected");
    /// A template could not be rendered.
    pub const TEMPLATE_ERROR: Self = Self::word("template-error");
    /// A condition could not be evaluated.
    pub const CONDITION_ERROR: Self = Self::word("condition-error");
    /// A command could not be started.
    pub const SPAWN_FAILED: Self = Self::word("spawn-failed");
    /// A called playbook halted.
    pub const CALL_FAILED: Self = Self::word("call-failed");
    /// The run was cancelled.
    pub const CANCELLED: Self = Self::word("cancelled");
    /// A gate escalated to `END`.
    pub const ESCALATED: Self = Self::word("escalated");
    /// The process that ran it is gone.
    pub const PROCESS_GONE: Self = Self::word("process-gone");
    /// It lives elsewhere, and nothing has come from there for a long time.
    pub const PRODUCER_GONE: Self = Self::word("producer-gone");
    /// The server that ran it was shut down.
    pub const SHUTDOWN: Self = Self::word("shutdown");

    /// The words that this version writes itself, in the order of the contract.
    pub const KNOWN: &'static [Self] = &[
        Self::GATE_FAILED,
        Self::NO_GATE_MATCHED,
        Self::BUDGET_EXHAUSTED,
        Self::TIMEOUT,
        Self::REPAIR_EXHAUSTED,
        Self::APPROVAL_REJECTED,
        Self::TEMPLATE_ERROR,
        Self::CONDITION_ERROR,
        Self::SPAWN_FAILED,
        Self::CALL_FAILED,
        Self::CANCELLED,
        Self::ESCALATED,
        Self::PROCESS_GONE,
        Self::PRODUCER_GONE,
        Self::SHUTDOWN,
    ];

    const fn word(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    /// The word.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What the gate that fired does; a kebab-case word.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Policy(pub Cow<'static, str>);

impl Policy {
    /// Go on.
    pub const OK: Self = Self::word("ok");
    /// Run a state again.
    pub const REPAIR: Self = Self::word("repair");
    /// Go on elsewhere, as a failure.
    pub const ESCALATE: Self = Self::word("escalate");
    /// Halt.
    pub const FAIL: Self = Self::word("fail");
    /// No condition was true: halt.
    pub const NO_GATE_MATCHED: Self = Self::word("no-gate-matched");
    /// The state was cancelled.
    pub const CANCELLED: Self = Self::word("cancelled");

    /// The words that this version writes itself.
    pub const KNOWN: &'static [Self] =
        &[Self::OK, Self::REPAIR, Self::ESCALATE, Self::FAIL, Self::NO_GATE_MATCHED, Self::CANCELLED];

    const fn word(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    /// The word.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
