//! Where a machine stands: lanes of frames.
//!
//! A *frame* is one playbook that runs; a `call` puts another on top of it. A *lane* is a stack of frames. Lane 0 is
//! the run itself; each branch of a fan-out of calls has a lane of its own, so that branches run side by side.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use serde_json::{Map, Value};
use taffrail_mcp_core::{Exit, Reason};

use crate::playbook::{Playbook, Scope, State};

/// Names a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LaneId(pub(super) u64);

impl LaneId {
    /// The run itself.
    pub(super) const ROOT: Self = Self(0);
}

/// A stack of frames, innermost last.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) frames: Vec<Frame>,
    /// The lane whose fan-out this is a branch of, and which one.
    pub(super) parent: Option<(LaneId, usize)>,
    /// The branch whose events these are, for process output.
    pub(super) index: Option<u64>,
}

/// One running playbook.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) playbook: Arc<Playbook>,
    pub(super) depth: u32,
    pub(super) inputs: Map<String, Value>,
    pub(super) ctx: Map<String, Value>,
    /// The state it is at, an index that [`Playbook::states`] has.
    pub(super) at: usize,
    /// The step of the state it is at, from its `state-start` to its `state-done`.
    pub(super) open: Option<u64>,
    /// `attempt` by state.
    pub(super) attempts: BTreeMap<usize, u64>,
    /// Times each `repair` gate has fired, by state and gate.
    pub(super) repairs: BTreeMap<(usize, usize), u32>,
    /// The fan-out that is going on.
    pub(super) fan: Option<Box<Fan>>,
    /// How the open state ended, when the run was stopped before its gates were asked.
    pub(super) cut: Option<Box<StateResult>>,
}

impl Frame {
    pub(super) fn new(playbook: Arc<Playbook>, depth: u32, inputs: Map<String, Value>) -> Self {
        let at = playbook.entry;
        Self {
            playbook,
            depth,
            inputs,
            ctx: Map::new(),
            at,
            open: None,
            attempts: BTreeMap::new(),
            repairs: BTreeMap::new(),
            fan: None,
            cut: None,
        }
    }

    pub(super) fn state(&self) -> Option<&State> {
        self.playbook.states.get(self.at)
    }

    pub(super) fn state_name(&self) -> String {
        self.state().map(|state| state.name.clone()).unwrap_or_default()
    }

    pub(super) fn attempt(&self) -> u64 {
        self.attempts.get(&self.at).copied().unwrap_or(1)
    }

    /// What templates of the state see before it has done anything.
    pub(super) fn scope(&self) -> Scope {
        Scope { inputs: self.inputs.clone(), ctx: self.ctx.clone(), attempt: self.attempt(), ..Scope::default() }
    }
}

/// A fan-out that is going on.
#[derive(Debug)]
pub(super) struct Fan {
    /// Items that have not started, in order; `None` for `sample`.
    pub(super) waiting: VecDeque<Option<Value>>,
    /// Index of the first of them.
    pub(super) next: usize,
    pub(super) running: usize,
    pub(super) limit: usize,
    /// One place a branch; filled as they end, in any order.
    pub(super) ended: Vec<Option<BranchEnd>>,
    /// Items of running branches.
    pub(super) items: BTreeMap<usize, Value>,
    /// Made once: it holds copies of `inputs` and `ctx`.
    pub(super) scope: Scope,
    /// Bytes of text output kept of one branch.
    pub(super) keep_bytes: usize,
}

/// How one branch ended.
#[derive(Debug)]
pub(super) struct BranchEnd {
    pub(super) item: Value,
    pub(super) exit: Exit,
    pub(super) output: Value,
    pub(super) failure: Option<Failure>,
    pub(super) truncated: bool,
}

/// Why a state, or a branch of it, counts as failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// What the run halts with when the state has no gates.
    pub(super) reason: Reason,
    pub(super) detail: String,
}

/// What a state has done.
#[derive(Debug, Default)]
pub(super) struct StateResult {
    /// As the condition variable `exit`, and whether it stands in `state-done`.
    pub(super) exit: Option<(Exit, Shown)>,
    pub(super) output: Option<Value>,
    pub(super) branches: Option<Value>,
    pub(super) approval: Option<Value>,
    pub(super) answer: Option<Value>,
    pub(super) truncated: bool,
    pub(super) failure: Option<Failure>,
    /// The engine could not even do it: halts without asking the gates.
    pub(super) fatal: bool,
}

/// Whether an exit is a process's, and so stands in `state-done`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    Process,
    Call,
}

impl StateResult {
    /// The engine could not do what the state says.
    pub(super) fn fatal(reason: Reason, detail: String) -> Self {
        Self { failure: Some(Failure { reason, detail }), fatal: true, ..Self::default() }
    }
}

/// How a playbook ended by itself.
#[derive(Debug)]
pub(super) enum FrameEnd {
    Done,
    Halt(Failure),
}
