//! Ending a run from outside: what is open is closed, innermost first, once every process has ended.

use taffrail_mcp_core::{BranchDone, Exit, Policy, Reason, RunStatus};

use super::{
    Ended, Machine, Reading, Stop,
    frame::{Failure, Frame, LaneId, StateResult},
    settle,
};

/// `internal-error`: the engine itself is at fault.
pub(crate) const INTERNAL_ERROR: Reason = Reason(std::borrow::Cow::Borrowed("internal-error"));

impl Stop {
    /// How the run ends.
    fn end(&self) -> (RunStatus, Failure) {
        let (status, reason, detail) = match self {
            Stop::Cancel => (RunStatus::Cancelled, Reason::CANCELLED, ""),
            Stop::Shutdown => (RunStatus::Interrupted, Reason::SHUTDOWN, ""),
            Stop::Budget(detail) => (RunStatus::Halt, Reason::BUDGET_EXHAUSTED, detail.as_str()),
            Stop::Fault(detail) => (RunStatus::Halt, INTERNAL_ERROR, detail.as_str()),
        };
        (status, Failure { reason, detail: detail.to_owned() })
    }

    /// The policy in the `state-done` of what was open; none when it gets no `state-done`, because it starts again.
    fn policy(&self) -> Option<Policy> {
        match self {
            Stop::Cancel => Some(Policy::CANCELLED),
            Stop::Shutdown => None,
            Stop::Budget(_) | Stop::Fault(_) => Some(Policy::FAIL),
        }
    }
}

impl Machine {
    /// Closes everything and ends. Lanes of branches are younger than the lane they branch from, so going from the
    /// youngest to the oldest closes what is inside first.
    pub(super) fn wind_down(&mut self, reading: &Reading) {
        let Some(stop) = self.stop.clone() else { return };
        let (status, failure) = stop.end();
        let mut at = None;
        while let Some((_, lane)) = self.lanes.pop_last() {
            let parent = lane.parent;
            for frame in lane.frames.into_iter().rev() {
                at = Some(frame.state_name());
                self.close_state(&frame, &stop);
                self.finish_frame(&frame, status, Some(&failure), at.clone(), reading);
            }
            if let Some((parent, branch)) = parent {
                self.close_branch(parent, branch, &stop);
            }
        }
        let Failure { reason, detail } = failure;
        let detail = Some(detail).filter(|detail| !detail.is_empty());
        let exit = self.exit.take();
        self.end(Ended { status, error: Some(reason), at, usage: reading.usage(self.steps), detail, exit });
    }

    fn close_state(&mut self, frame: &Frame, stop: &Stop) {
        let (Some(step), Some(policy)) = (frame.open, stop.policy()) else { return };
        let nothing = StateResult::default();
        let mut done = settle::state_done(frame, step, frame.cut.as_deref().unwrap_or(&nothing));
        done.policy = policy;
        self.steps = self.steps.max(step);
        if frame.depth == 0 {
            self.exit.clone_from(&done.exit);
        }
        self.emit(done);
    }

    /// Ends the branch that a lane was.
    fn close_branch(&mut self, parent: LaneId, branch: usize, stop: &Stop) {
        let Some(frame) = self.top(parent).filter(|_| stop.policy().is_some()) else { return };
        let done = BranchDone {
            machine: frame.playbook.name.clone(),
            depth: frame.depth,
            state: frame.state_name(),
            index: branch as u64,
            exit: Exit::Code(1),
        };
        self.emit(done);
    }
}
