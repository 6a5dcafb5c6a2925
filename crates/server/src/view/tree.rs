//! What a run has done and is doing, as a tree: the model behind the live view and the plain one.
//!
//! It is fed with events and gives facts; [`super::layout`] makes lines of it. It holds a bounded amount, however long
//! the run: the newest states, the branches that run or failed, the last lines of output. It makes do with any
//! sequence of events, for a view may begin in the middle of a log.

mod attempts;
mod branches;
mod tail;

use taffrail_mcp_core::{
    ApprovalRequested, ApprovalResolved, Event, Exit, Log, Message, Policy, Progress, RunFinished, RunId, RunStart,
    RunStatus, StateDone, StateKind, StateStart, Timestamp,
};

use self::attempts::Attempts;
pub(super) use self::{
    branches::{Branch, Branches},
    tail::{By, Tail, TailLine},
};
use super::words;

/// States that are kept; a screen holds fewer.
const KEPT: usize = 1000;

/// One run.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// Its id, once known.
    pub(super) run: Option<RunId>,
    /// Its playbook; empty before it started.
    pub(super) name: String,
    /// Whether it goes on; none before it started.
    pub(super) status: Option<RunStatus>,
    /// Its states in the order they started.
    pub(super) nodes: Vec<Node>,
    /// Older states that are not kept.
    pub(super) forgotten: usize,
    /// Lines of output.
    pub(super) lines: u64,
    /// Lines that a limit cut.
    pub(super) clipped: u64,
    /// Whether someone asked for its end.
    pub(super) cancelling: bool,
    /// When it last started or went on.
    since: Timestamp,
    /// Milliseconds it ran before that.
    before_ms: u64,
    attempts: Attempts,
}

/// One state.
#[derive(Debug)]
pub(super) struct Node {
    /// 0 at the top.
    pub(super) depth: u32,
    /// Its name.
    pub(super) state: String,
    /// The playbook it calls.
    pub(super) calls: Option<String>,
    /// From 1, as the playbook sees it; none where a view cannot know.
    pub(super) attempt: Option<u64>,
    /// When it started; none when this view began later.
    pub(super) started: Option<Timestamp>,
    /// How it ended.
    pub(super) end: Option<End>,
    /// What it waits for.
    pub(super) asks: Option<ApprovalRequested>,
    /// Branches of a fan-out.
    pub(super) branches: Branches,
    /// The last lines of its output.
    pub(super) tail: Tail,
    /// How far it says it is.
    pub(super) progress: Option<String>,
    step: u64,
}

/// How a state ended.
#[derive(Debug)]
pub(super) struct End {
    /// When.
    pub(super) at: Timestamp,
    /// What followed; none when it was cut off.
    pub(super) policy: Option<Policy>,
    /// How its process ended.
    pub(super) exit: Option<Exit>,
    /// The next state.
    pub(super) to: Option<String>,
}

impl Node {
    fn new(depth: u32, state: &str, step: u64) -> Self {
        Self {
            depth,
            state: state.to_owned(),
            calls: None,
            attempt: None,
            started: None,
            end: None,
            asks: None,
            branches: Branches::default(),
            tail: Tail::default(),
            progress: None,
            step,
        }
    }

    /// Milliseconds it ran, so far.
    pub(super) fn took(&self, now: Timestamp) -> Option<u64> {
        Some(words::between(self.started?, self.end.as_ref().map_or(now, |end| end.at)))
    }

    fn cut_off(&mut self, at: Timestamp) {
        if self.end.is_none() {
            self.end = Some(End { at, policy: None, exit: None, to: None });
        }
    }
}

impl Tree {
    /// Takes in one event, other than process output and messages: those are for [`Tree::log`] and [`Tree::message`].
    pub(super) fn feed(&mut self, ts: Timestamp, event: &Event) {
        match event {
            Event::RunStart(start) => self.run_start(ts, start),
            Event::StateStart(start) => self.state_start(ts, start),
            Event::StateDone(done) => self.state_done(ts, done),
            Event::BranchStart(start) => {
                self.attempts.branches(start.depth);
                if let Some(node) = self.open_named(&start.state) {
                    node.branches.start(start.index, ts, &start.item);
                }
            }
            Event::BranchDone(done) => {
                if let Some(node) = self.open_named(&done.state) {
                    node.branches.done(done.index, ts, &done.exit);
                }
            }
            Event::RunFinished(end) if end.depth == 0 => self.run_finished(ts, end),
            Event::ApprovalRequested(request) => {
                if let Some(node) = self.open_named(&request.state) {
                    node.asks = Some(request.clone());
                }
            }
            Event::ApprovalResolved(ApprovalResolved { approval, .. }) => {
                let asks = |node: &Node| node.asks.as_ref().is_some_and(|asks| asks.approval == *approval);
                if let Some(node) = self.nodes.iter_mut().rev().find(|node| asks(node)) {
                    node.asks = None;
                }
            }
            Event::Progress(progress) => self.progress(progress),
            Event::Clipped(clipped) => self.clipped = self.clipped.saturating_add(clipped.lines),
            Event::CancelRequested(_) => self.cancelling = true,
            _ => {}
        }
    }

    /// Takes in a line of process output.
    pub(super) fn log(&mut self, log: &Log) {
        self.lines = self.lines.saturating_add(log.lines());
        if let Some(node) = self.open_named(&log.state) {
            node.tail.log(log);
        }
    }

    /// Takes in a piece of an answer; it is shown with the state that runs.
    pub(super) fn message(&mut self, message: &Message) {
        if let Some(node) = self.innermost() {
            node.tail.message(message);
        }
    }

    /// Milliseconds of running so far.
    pub(super) fn elapsed(&self, now: Timestamp) -> u64 {
        match self.status {
            Some(RunStatus::Running) => self.before_ms.saturating_add(words::between(self.since, now)),
            _ => self.before_ms,
        }
    }

    /// The state that started last under this name.
    pub(super) fn last_named(&self, state: &str) -> Option<&Node> {
        self.nodes.iter().rev().find(|node| node.state == state)
    }

    fn run_start(&mut self, ts: Timestamp, start: &RunStart) {
        self.attempts.playbook(start.depth, start.resumed);
        if let Some(above) = start.depth.checked_sub(1) {
            let caller = self.nodes.iter_mut().rev().find(|node| node.end.is_none() && node.depth == above);
            if let Some(caller) = caller {
                caller.calls = Some(start.machine.clone());
            }
            return;
        }
        self.name.clone_from(&start.machine);
        self.status = Some(RunStatus::Running);
        self.since = ts;
        self.cancelling = false;
    }

    /// A view that begins in the middle takes what it sees first for the beginning.
    fn begun(&mut self, ts: Timestamp, machine: &str) {
        if self.status.is_none() {
            self.status = Some(RunStatus::Running);
            self.since = ts;
            machine.clone_into(&mut self.name);
        }
    }

    fn state_start(&mut self, ts: Timestamp, start: &StateStart) {
        self.begun(ts, &start.machine);
        // States of one playbook follow each other: what is still open here lost its process.
        for node in self.nodes.iter_mut().filter(|node| node.depth >= start.depth) {
            node.cut_off(ts);
        }
        let mut node = Node::new(start.depth, &start.state, start.step);
        node.started = Some(ts);
        node.attempt = self.attempts.start(start.depth, &start.state);
        if start.kind == StateKind::Call {
            node.calls = Some(String::new());
        }
        self.push(node);
    }

    fn push(&mut self, node: Node) {
        self.nodes.push(node);
        if self.nodes.len() > KEPT {
            // Not the callers of what runs.
            let oldest = self.nodes.iter().position(|node| node.end.is_some()).unwrap_or(0);
            self.nodes.remove(oldest);
            self.forgotten += 1;
        }
    }

    fn state_done(&mut self, ts: Timestamp, done: &StateDone) {
        self.begun(ts, &done.machine);
        let same = |node: &Node| node.step == done.step && node.depth == done.depth && node.state == done.state;
        if !self.nodes.iter().any(same) {
            self.push(Node::new(done.depth, &done.state, done.step));
        }
        if let Some(node) = self.nodes.iter_mut().rev().find(|node| same(node)) {
            node.end = Some(End {
                at: ts,
                policy: Some(done.policy.clone()),
                exit: done.exit.clone(),
                to: done.to.clone().filter(|_| matches!(done.policy.as_str(), "repair" | "escalate")),
            });
            node.asks = None;
            node.progress = None;
            node.branches.end(done.branches);
        }
        self.attempts.done(done.depth, done.to.as_deref().filter(|_| done.policy.as_str() == "repair"));
    }

    fn run_finished(&mut self, ts: Timestamp, end: &RunFinished) {
        // The run knows of times that a view which began later has not seen.
        self.before_ms = self.elapsed(ts).max(end.usage.wall_ms);
        self.status = Some(end.status);
        self.cancelling = false;
        if end.status != RunStatus::Suspended {
            self.nodes.iter_mut().for_each(|node| node.cut_off(ts));
        }
    }

    fn progress(&mut self, progress: &Progress) {
        let node = match &progress.state {
            Some(state) => self.open_named(state),
            None => self.innermost(),
        };
        let Some(node) = node else { return };
        let said = tail::progress(progress);
        match progress.index {
            Some(index) => node.branches.progress(index, said),
            None => node.progress = Some(said),
        }
    }

    fn innermost(&mut self) -> Option<&mut Node> {
        self.nodes.iter_mut().rev().find(|node| node.end.is_none())
    }

    fn open_named(&mut self, state: &str) -> Option<&mut Node> {
        self.nodes.iter_mut().rev().find(|node| node.end.is_none() && node.state == state)
    }
}
