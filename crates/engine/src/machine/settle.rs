//! Leaving a state: its output is kept, its gates are asked, and the run goes on, back to a caller, or ends.

use std::sync::Arc;

use taffrail_mcp_core::{Exit, Reason, RunFinished, RunStatus, StateDone};

use super::{
    Ended, Machine, Reading,
    frame::{Failure, Frame, FrameEnd, LaneId, Shown, StateResult},
    gates::{self, Next, Verdict},
    language, outcome,
    step::{Entry, Work},
};
use crate::playbook::{CallSpec, MAX_CALL_DEPTH, Scope};

/// A called playbook cannot be entered.
pub(super) struct CallFailed {
    pub(super) detail: String,
    /// A template of ours did not work, as opposed to: the callee cannot be had or does not take these inputs.
    pub(super) fatal: bool,
}

impl Machine {
    pub(super) fn settle(&mut self, lane: LaneId, result: StateResult) -> Option<()> {
        let stopped = self.stop.is_some();
        let frame = self.top(lane)?;
        if stopped {
            frame.cut = Some(Box::new(result));
            return None;
        }
        frame.fan = None;
        let step = frame.open.take()?;
        let playbook = Arc::clone(&frame.playbook);
        let state = playbook.states.get(frame.at)?;
        if let (Some(name), Some(output)) = (&state.output, &result.output) {
            frame.ctx.insert(name.clone(), output.clone());
        }
        let verdict = match &result.failure {
            Some(failure) if result.fatal => Verdict::halt(failure.clone()),
            failure => {
                let scope = gate_scope(frame, &result);
                gates::judge(&playbook, frame.at, &scope, failure.clone(), &mut frame.repairs)
            }
        };
        let to = match &verdict.next {
            Next::State(at) | Next::Repair(at) => playbook.states.get(*at).map(|state| state.name.clone()),
            Next::End => Some("END".to_owned()),
            Next::Halt(_) => None,
        };
        let mut done = state_done(frame, step, &result);
        let depth = frame.depth;
        (done.gate, done.policy, done.to) = (verdict.gate, verdict.policy, to);
        let work = match verdict.next {
            Next::State(at) => {
                frame.at = at;
                Work::Enter(lane, Entry::Fresh)
            }
            Next::Repair(at) => {
                frame.at = at;
                Work::Enter(lane, Entry::Repair)
            }
            Next::End => Work::Return(lane, FrameEnd::Done),
            Next::Halt(failure) => Work::Return(lane, FrameEnd::Halt(failure)),
        };
        if depth == 0 {
            self.exit.clone_from(&done.exit);
        }
        self.emit(done);
        self.later(work);
        Some(())
    }

    /// The innermost playbook of a lane has ended: its caller goes on, or the run ends.
    pub(super) fn give_back(&mut self, lane: LaneId, end: FrameEnd, reading: &Reading) -> Option<()> {
        let frame = self.lanes.get_mut(&lane)?.frames.pop()?;
        let at = frame.state_name();
        let (status, failure) = match &end {
            FrameEnd::Done => (RunStatus::Done, None),
            FrameEnd::Halt(failure) => (RunStatus::Halt, Some(failure.clone())),
        };
        let shown_at = failure.is_some().then(|| at.clone());
        self.finish_frame(&frame, status, failure.as_ref(), shown_at.clone(), reading);
        let call = |frame: Frame, end| outcome::of_call(&frame.playbook.name, &at, frame.ctx, end);
        if self.top(lane).is_some() {
            self.alone_ended(lane, call(frame, end), Shown::Call);
        } else if let Some((caller, branch)) = self.lanes.remove(&lane)?.parent {
            self.branch_ended(caller, branch, call(frame, end));
        } else {
            let (error, detail) = failure.map(|failure| (failure.reason, failure.detail)).unzip();
            let exit = self.exit.take();
            self.end(Ended { status, error, at: shown_at, usage: reading.usage(self.steps), detail, exit });
        }
        Some(())
    }

    /// Emits a playbook's `run-finished`.
    pub(super) fn finish_frame(
        &mut self,
        frame: &Frame,
        status: RunStatus,
        failure: Option<&Failure>,
        at: Option<String>,
        reading: &Reading,
    ) {
        self.emit(RunFinished {
            machine: frame.playbook.name.clone(),
            depth: frame.depth,
            status,
            error: failure.map(|failure| failure.reason.clone()),
            at,
            usage: reading.usage(self.steps),
            detail: failure.map(|failure| failure.detail.clone()).filter(|detail| !detail.is_empty()),
        });
    }

    /// Makes the frame of a call: its inputs are rendered and checked.
    pub(super) fn call_frame(&self, spec: &CallSpec, scope: &Scope, depth: u32) -> Result<Frame, CallFailed> {
        let failed = |detail| CallFailed { detail, fatal: false };
        let mut given = serde_json::Map::new();
        for (name, value) in &spec.with {
            let value = value.render(scope).map_err(|error| CallFailed { detail: error.to_string(), fatal: true })?;
            given.insert(name.clone(), value);
        }
        // The first playbook is a link of the chain, too.
        let depth = depth + 1;
        if depth as usize >= MAX_CALL_DEPTH {
            return Err(failed(format!("calls go deeper than {MAX_CALL_DEPTH}")));
        }
        let playbook = self.books.named(&spec.playbook).map_err(failed)?;
        let inputs = language::resolve(playbook, &given).map_err(failed)?;
        Ok(Frame::new(Arc::clone(playbook), depth, inputs))
    }
}

/// What gates see.
fn gate_scope(frame: &Frame, result: &StateResult) -> Scope {
    Scope {
        output: result.output.clone(),
        exit: result.exit.as_ref().map(|(exit, _)| outcome::exit_variable(exit)),
        branches: result.branches.clone(),
        approval: result.approval.clone(),
        answer: result.answer.clone(),
        ..frame.scope()
    }
}

/// The `state-done` of the state a frame is at; gate, policy and target are the caller's to fill in.
pub(super) fn state_done(frame: &Frame, step: u64, result: &StateResult) -> StateDone {
    let branches = match (&result.branches, &frame.fan) {
        (Some(branches), _) => branches.as_array().map(|branches| branches.len() as u64),
        (None, Some(fan)) => Some(fan.ended.len() as u64),
        (None, None) => None,
    };
    let exit = match &result.exit {
        Some((exit, Shown::Process)) => Some(Exit::clone(exit)),
        Some((_, Shown::Call)) | None => None,
    };
    StateDone {
        machine: frame.playbook.name.clone(),
        depth: frame.depth,
        state: frame.state_name(),
        step,
        gate: None,
        policy: taffrail_mcp_core::Policy::FAIL,
        to: None,
        output: outcome::preview_of(result.output.as_ref()),
        branches,
        exit,
        truncated: result.truncated,
    }
}

/// What an approval that was rejected, or a question that was not answered, fails with.
pub(super) fn rejected() -> Failure {
    Failure { reason: Reason::APPROVAL_REJECTED, detail: "it was rejected".to_owned() }
}
