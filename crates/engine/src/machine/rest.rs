//! Ending a run that rests, without going on with it.

use taffrail_mcp_core::{Event, Policy, Reason, RunFinished, RunStatus, StateDone, Usage};

use super::{FrameData, ResumeData};

impl ResumeData {
    /// The events by which a run that is suspended or interrupted is cancelled: what is open is closed, innermost first,
    /// and the last is the `run-finished` of depth 0. `usage` is what it has used according to its log.
    ///
    /// No playbook is read and no secret needed, so this works for every run.
    pub fn cancel(&self, usage: Usage) -> Vec<Event> {
        let mut events = Vec::with_capacity(self.frames.len() * 2);
        for (depth, frame) in self.frames.iter().enumerate().rev() {
            let FrameData { playbook, state, step, .. } = frame;
            let depth = u32::try_from(depth).unwrap_or(u32::MAX);
            events.push(Event::from(StateDone {
                machine: playbook.clone(),
                depth,
                state: state.clone(),
                step: step.unwrap_or(self.steps + 1),
                gate: None,
                policy: Policy::CANCELLED,
                to: None,
                output: String::new(),
                branches: None,
                exit: None,
                truncated: false,
            }));
            events.push(Event::from(RunFinished {
                machine: playbook.clone(),
                depth,
                status: RunStatus::Cancelled,
                error: Some(Reason::CANCELLED),
                at: Some(state.clone()),
                usage,
                detail: None,
            }));
        }
        events
    }
}
