//! Fan-out: one state, many branches.
//!
//! Branches start in order, up to `max_parallel` at a time; they end in any order, and their results stand in order.
//! A branch that fails does not stop the others. All branches are rendered once before the first one starts, so that a
//! template that does not work for the last item is found before anything has been done.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use taffrail_mcp_core::{BranchDone, BranchStart, Reason};

use super::{
    Machine, Stop,
    frame::{BranchEnd, Fan, Lane, LaneId, StateResult},
    outcome,
    step::{Place, Work},
    task,
};
use crate::playbook::{Action, FanOut, Over, Playbook, Scope, State};

/// Most branches of one state. Each has events, a place in `branches` and a part of the checkpoint; more work than this
/// belongs in a command that loops.
pub const MAX_BRANCHES: usize = 10_000;

/// Bytes of text output kept of all branches of a state together: 16 branches keep all that a single state would. They
/// may stand in `ctx`, and so in every later checkpoint. A value parsed from JSON cannot be cut and is not.
const FAN_OUTPUT_BYTES: usize = 1024 * 1024;

impl Machine {
    /// Begins the fan-out of the state that the innermost frame is at.
    pub(super) fn fan_out(&mut self, lane: LaneId, playbook: &Arc<Playbook>, state: &State, fan_out: &FanOut) {
        let Some(frame) = self.top(lane) else { return };
        let mut scope = frame.scope();
        let depth = frame.depth;
        let fan = items(fan_out, &scope).and_then(|items| {
            for (index, item) in items.iter().enumerate() {
                aim(&mut scope, index, item.as_ref());
                self.check_branch(state, &scope, depth).map_err(|error| at_branch(index, &error))?;
            }
            let count = items.len();
            Ok(Fan {
                next: 0,
                running: 0,
                limit: fan_out.max_parallel.unwrap_or(self.parallel).max(1),
                ended: items.iter().map(|_| None).collect(),
                items: BTreeMap::new(),
                scope,
                keep_bytes: task::OUTPUT_BYTES.min(FAN_OUTPUT_BYTES / count.max(1)),
                waiting: items.into(),
            })
        });
        match fan {
            Ok(fan) => {
                if let Some(frame) = self.top(lane) {
                    frame.fan = Some(Box::new(fan));
                }
                self.later(Work::Branches(lane));
            }
            Err(detail) => {
                let detail = format!("state `{}` of `{}`: {detail}", state.name, playbook.name);
                let result = StateResult::fatal(Reason::TEMPLATE_ERROR, detail);
                self.later(Work::Settle(lane, Box::new(result)));
            }
        }
    }

    fn check_branch(&self, state: &State, scope: &Scope, depth: u32) -> Result<(), String> {
        match &state.action {
            Action::Process(spec) => {
                task::render(&state.name, spec, scope, &self.cwd).map(drop).map_err(|error| error.to_string())
            }
            // Inputs that do not fit fail the branch, not the run.
            Action::Call(spec) => match self.call_frame(spec, scope, depth) {
                Err(failed) if failed.fatal => Err(failed.detail),
                _ => Ok(()),
            },
            Action::Approve(_) | Action::Ask(_) => Ok(()),
        }
    }

    /// Starts one branch, or ends the state when all have ended. One at a time: each branch makes effects, and a
    /// driver should see them before the next.
    pub(super) fn branches(&mut self, lane: LaneId) -> Option<()> {
        let frame = self.top(lane)?;
        let (playbook, depth) = (Arc::clone(&frame.playbook), frame.depth);
        let state = playbook.states.get(frame.at)?;
        let fan = frame.fan.as_mut()?;
        if fan.running >= fan.limit {
            return None;
        }
        let Some(item) = fan.waiting.pop_front() else {
            if fan.running == 0 {
                // Taken as a whole: another piece of work for this fan-out may still be queued.
                let ended = frame.fan.take().map(|fan| fan.ended).unwrap_or_default();
                self.later(Work::Settle(lane, Box::new(gathered(ended))));
            }
            return None;
        };
        let branch = fan.next;
        fan.next += 1;
        fan.running += 1;
        aim(&mut fan.scope, branch, item.as_ref());
        // Lent out and put back: it holds all of `ctx`, too much to copy for each of many branches.
        let scope = std::mem::take(&mut fan.scope);
        let item = item.unwrap_or_default();
        fan.items.insert(branch, item.clone());
        self.emit(BranchStart {
            machine: playbook.name.clone(),
            depth,
            state: state.name.clone(),
            index: branch as u64,
            item,
        });
        self.start_branch(lane, branch, state, &scope, depth);
        self.top(lane)?.fan.as_mut()?.scope = scope;
        self.later(Work::Branches(lane));
        Some(())
    }

    fn start_branch(&mut self, lane: LaneId, branch: usize, state: &State, scope: &Scope, depth: u32) {
        let failed = match &state.action {
            Action::Process(spec) => match task::render(&state.name, spec, scope, &self.cwd) {
                Ok(task) => return self.launch(task, Place { lane, branch: Some(branch) }),
                Err(error) => error.to_string(),
            },
            Action::Call(spec) => match self.call_frame(spec, scope, depth) {
                Ok(frame) => {
                    let id = LaneId(self.next_lane);
                    self.next_lane += 1;
                    let parent = Some((lane, branch));
                    self.lanes.insert(id, Lane { frames: Vec::new(), parent, index: Some(branch as u64) });
                    return self.push_frame(id, frame);
                }
                Err(failed) => failed.detail,
            },
            Action::Approve(_) | Action::Ask(_) => "an `approve` or `ask` cannot fan out".to_owned(),
        };
        self.branch_ended(lane, branch, outcome::of_failed_call(failed));
    }

    /// One branch has ended.
    pub(super) fn branch_ended(&mut self, lane: LaneId, branch: usize, mut end: BranchEnd) {
        let shut_down = self.stop == Some(Stop::Shutdown);
        let Some(frame) = self.top(lane) else { return };
        let done = BranchDone {
            machine: frame.playbook.name.clone(),
            depth: frame.depth,
            state: frame.state_name(),
            index: branch as u64,
            exit: end.exit.clone(),
        };
        let Some(fan) = frame.fan.as_mut() else { return };
        fan.running = fan.running.saturating_sub(1);
        end.item = fan.items.remove(&branch).unwrap_or_default();
        if let Some(place) = fan.ended.get_mut(branch) {
            *place = Some(end);
        }
        // An interrupted state runs again as a whole, so its branches have not ended in any sense that counts.
        if !shut_down {
            self.emit(done);
        }
        self.later(Work::Branches(lane));
    }
}

/// The items, in order: `None` for each branch of `sample`.
fn items(fan_out: &FanOut, scope: &Scope) -> Result<Vec<Option<Value>>, String> {
    let (items, word) = match &fan_out.over {
        Over::Items(value) => match value.render(scope).map_err(|error| error.to_string())? {
            Value::Array(items) => (items.into_iter().map(Some).collect::<Vec<_>>(), "over"),
            other => return Err(format!("`over` gives {}, not a list", kind(&other))),
        },
        Over::Sample(count) => {
            // Checked before the list is made: the count may be any number.
            let count = usize::try_from(*count).unwrap_or(usize::MAX).min(MAX_BRANCHES + 1);
            (vec![None; count], "sample")
        }
    };
    if items.len() > MAX_BRANCHES {
        return Err(format!("`{word}` gives more than {MAX_BRANCHES} branches, which is the most a state may have"));
    }
    Ok(items)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn aim(scope: &mut Scope, index: usize, item: Option<&Value>) {
    scope.index = Some(index as u64);
    scope.item = item.cloned();
}

fn at_branch(index: usize, error: &str) -> String {
    format!("branch {index}: {error}")
}

/// All branches have ended.
fn gathered(ended: Vec<Option<BranchEnd>>) -> StateResult {
    let failure = outcome::of_branches(ended.iter().enumerate().filter_map(|(at, end)| Some((at, end.as_ref()?))));
    let truncated = ended.iter().flatten().any(|end| end.truncated);
    let mut branches = Vec::with_capacity(ended.len());
    let mut outputs = Vec::with_capacity(ended.len());
    for (index, end) in ended.into_iter().enumerate() {
        let Some(BranchEnd { item, exit, output, failure: _, truncated: _ }) = end else { continue };
        let exit = outcome::exit_variable(&exit);
        branches.push(json!({ "index": index, "item": item, "exit": exit, "output": output }));
        outputs.push(output);
    }
    StateResult {
        output: Some(Value::Array(outputs)),
        branches: Some(Value::Array(branches)),
        truncated,
        failure,
        ..StateResult::default()
    }
}
