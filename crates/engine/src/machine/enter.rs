//! Entering a state: budgets, the checkpoint, `state-start`, and the beginning of what it does.

use std::sync::Arc;

use taffrail_mcp_core::{ApprovalRequested, Checkpoint, Reason, RunStatus, StateKind, StateStart};

use super::{
    Effect, Ended, Machine, Reading, Stop,
    approval::{self, Question},
    format::PendingData,
    frame::{LaneId, StateResult},
    outcome,
    step::{Entry, Place, Work},
    task,
};
use crate::{
    machine::frame::Shown,
    playbook::{Action, Playbook, State},
};

impl Machine {
    pub(super) fn enter(&mut self, lane: LaneId, entry: Entry, reading: &Reading) -> Option<()> {
        if self.steps >= self.budget.steps {
            self.stop_now(Stop::Budget(format!("its {} steps are used up", self.budget.steps)));
            return None;
        }
        let frame = self.top(lane)?;
        let playbook = Arc::clone(&frame.playbook);
        let (at, depth) = (frame.at, frame.depth);
        let state = playbook.states.get(at)?;
        match entry {
            // A state that is come to otherwise keeps its count: a loop through other states is still a re-run.
            Entry::Fresh => {
                frame.attempts.entry(at).or_insert(1);
            }
            Entry::Repair => *frame.attempts.entry(at).or_insert(0) += 1,
            Entry::Resumed => {}
        }
        let question = Question::of(state, &frame.scope());
        let mut pending = None;
        if lane == LaneId::ROOT {
            pending = self.pending(question.as_ref());
            self.checkpoint(&state.name, pending.clone(), reading);
        }
        self.steps += 1;
        let step = self.steps;
        self.top(lane)?.open = Some(step);
        let kind = match &state.action {
            Action::Process(_) => StateKind::Run,
            Action::Call(_) => StateKind::Call,
            Action::Approve(_) => StateKind::Approve,
            Action::Ask(_) => StateKind::Ask,
        };
        self.emit(StateStart { machine: playbook.name.clone(), depth, state: state.name.clone(), step, kind });
        match question {
            None => self.act(lane, &playbook, state),
            Some(Ok(question)) => self.ask(lane, state, question, pending, reading),
            Some(Err(error)) => self.give_up(lane, Reason::TEMPLATE_ERROR, error),
        }
        Some(())
    }

    /// Begins a process or a call, or many of them.
    fn act(&mut self, lane: LaneId, playbook: &Arc<Playbook>, state: &State) {
        if let Some(fan_out) = &state.fan_out {
            return self.fan_out(lane, playbook, state, fan_out);
        }
        let Some(frame) = self.top(lane) else { return };
        let (scope, depth) = (frame.scope(), frame.depth);
        match &state.action {
            Action::Process(spec) => match task::render(&state.name, spec, &scope, &self.cwd) {
                Ok(command) => self.launch(command, Place { lane, branch: None }),
                Err(error) => self.give_up(lane, Reason::TEMPLATE_ERROR, error.to_string()),
            },
            Action::Call(spec) => match self.call_frame(spec, &scope, depth) {
                Ok(frame) => self.push_frame(lane, frame),
                Err(failed) if failed.fatal => self.give_up(lane, Reason::TEMPLATE_ERROR, failed.detail),
                Err(failed) => self.alone_ended(lane, outcome::of_failed_call(failed.detail), Shown::Call),
            },
            // These are questions, which `enter` has dealt with.
            Action::Approve(_) | Action::Ask(_) => {}
        }
    }

    /// Halts the playbook at its state without asking the gates.
    pub(super) fn give_up(&mut self, lane: LaneId, reason: Reason, detail: String) {
        self.later(Work::Settle(lane, Box::new(StateResult::fatal(reason, detail))));
    }

    fn pending(&mut self, question: Option<&Result<Question, String>>) -> Option<PendingData> {
        let question = question?.as_ref().ok()?;
        let hash = approval::hash(self, question);
        let message = question.message.clone();
        // A run that is resumed without a decision asks the same question again, under the same id, so that whoever is
        // about to decide it still can.
        let asked = self.asked.take().filter(|asked| asked.hash == hash);
        let approval = asked.map_or_else(|| self.ids.next_id(), |asked| asked.approval);
        Some(PendingData { approval, message, hash })
    }

    fn checkpoint(&mut self, state: &str, pending: Option<PendingData>, reading: &Reading) {
        let resume = self.resume_data(pending, reading).to_value();
        let checkpoint = self.ids.next_id();
        self.emit(Checkpoint { checkpoint, state: state.to_owned(), step: self.steps, resume });
    }

    /// Asks, and lets the run rest until it is resumed with what was decided.
    fn ask(
        &mut self,
        lane: LaneId,
        state: &State,
        question: Question,
        pending: Option<PendingData>,
        reading: &Reading,
    ) {
        let Some(PendingData { approval, message, hash }) = pending else {
            let detail = format!("state `{}` waits for someone, which a branch of a fan-out cannot do", state.name);
            return self.give_up(lane, Reason::CALL_FAILED, detail);
        };
        let Question { message: _, schema, by } = question;
        self.emit(ApprovalRequested { approval, state: state.name.clone(), message, schema, hash, by });
        let mut frames = self.lanes.remove(&lane).map(|lane| lane.frames).unwrap_or_default();
        let mut at = None;
        while let Some(frame) = frames.pop() {
            at = Some(frame.state_name());
            self.finish_frame(&frame, RunStatus::Suspended, None, at.clone(), reading);
        }
        self.end(Ended {
            status: RunStatus::Suspended,
            error: None,
            at,
            usage: reading.usage(self.steps),
            detail: None,
            exit: None,
        });
    }

    pub(super) fn end(&mut self, ended: Ended) {
        self.ended = true;
        self.effect(Effect::End(ended));
    }
}
