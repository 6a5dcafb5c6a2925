//! From a machine to what a resume needs, and back.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use serde_json::{Map, Value, json};
use taffrail_mcp_core::{Decision, RunStart};

use super::{
    BudgetData, FrameData, IdSource, Machine, Origin, PendingData, Reading, RepairData, ResumeData, ResumeError, Setup,
    approval::{self, Question},
    books::Books,
    frame::{Frame, LaneId, StateResult},
    language, settle,
    step::{Entry, Work},
};
use crate::playbook::{Action, Budget, Playbook, State};

/// What was decided about the approval that a run waits for.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolution {
    /// The approval.
    pub approval: String,
    /// The hash that was decided on.
    pub hash: String,
    /// What was decided.
    pub decision: Decision,
    /// The answer: needed by an `ask` that is not rejected, free for an `approve`.
    pub content: Option<Value>,
}

impl Origin {
    /// What a run is started with.
    pub(super) fn of(playbook: &Playbook, inputs: &Map<String, Value>, setup: &Setup) -> Self {
        let Budget { steps, wall, output_bytes } = playbook.budget;
        let secrets =
            playbook.inputs.iter().filter(|spec| spec.secret && spec.default.as_ref() != inputs.get(&spec.name));
        Self {
            sources: setup.books.found().map(|(name, book)| (name.to_owned(), book.source.to_string())).collect(),
            inputs: public_inputs(playbook, inputs),
            secrets: secrets.filter(|spec| inputs.contains_key(&spec.name)).map(|spec| spec.name.clone()).collect(),
            cwd: setup.cwd.to_str().map(str::to_owned),
            budget: BudgetData { steps, wall_ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX), output_bytes },
        }
    }

    /// The inputs of the run: those that were stored, and the secrets that are given again.
    fn inputs(&self, given: Map<String, Value>) -> Result<Map<String, Value>, ResumeError> {
        let missing: Vec<String> =
            self.secrets.iter().filter(|name| given.get(*name).is_none_or(Value::is_null)).cloned().collect();
        if !missing.is_empty() {
            return Err(ResumeError::SecretsNeeded { names: missing });
        }
        let mut inputs = self.inputs.clone();
        // A null is "not given", as at a start.
        for (name, value) in given.into_iter().filter(|(_, value)| !value.is_null()) {
            if !self.secrets.contains(&name) && inputs.get(&name) != Some(&value) {
                return Err(ResumeError::InputFixed { name });
            }
            inputs.insert(name, value);
        }
        Ok(inputs)
    }
}

/// The inputs that are not secret.
pub(super) fn public_inputs(playbook: &Playbook, inputs: &Map<String, Value>) -> Map<String, Value> {
    let secret = |name: &String| playbook.inputs.iter().any(|spec| spec.secret && spec.name == *name);
    inputs.iter().filter(|(name, _)| !secret(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

impl Machine {
    /// What a resume needs to go on at the state that the run is about to enter.
    pub(super) fn resume_data(&mut self, pending: Option<PendingData>, reading: &Reading) -> ResumeData {
        let frames = self.lanes.get(&LaneId::ROOT).map(|lane| lane.frames.iter().map(frame_data).collect());
        ResumeData {
            version: ResumeData::VERSION,
            steps: self.steps,
            usage: reading.usage(self.steps),
            frames: frames.unwrap_or_default(),
            pending,
            origin: self.origin.take(),
        }
    }

    /// A machine that goes on from a checkpoint.
    ///
    /// With a decision, the state that waits goes on to its gates. Without one it starts again: a command runs again,
    /// a question is asked again under the same id. `inputs` gives the secret ones anew.
    ///
    /// # Errors
    ///
    /// See [`ResumeError`]; nothing has happened then.
    pub fn resume(
        data: ResumeData,
        resolution: Option<Resolution>,
        inputs: Map<String, Value>,
        cwd: PathBuf,
        parallel: usize,
        ids: Arc<dyn IdSource>,
    ) -> Result<Self, ResumeError> {
        let ResumeData { version: _, steps, usage: _, frames, pending, origin } = data;
        let origin = origin.ok_or(ResumeError::NoOrigin)?;
        let books = books(&origin)?;
        let inputs = origin.inputs(inputs)?;
        let cwd = origin.cwd.map_or(cwd, PathBuf::from);
        let BudgetData { steps: most, wall_ms, output_bytes } = origin.budget;
        let budget = Budget { steps: most, wall: Duration::from_millis(wall_ms), output_bytes };
        let mut machine = Self::empty(budget, Setup { books, cwd, parallel, ids });
        machine.steps = steps;
        for data in frames {
            machine.restore(data, &inputs)?;
        }
        machine.asked = pending;
        // Its `state-start` is in the log already: should the run be stopped before it starts again, it is done.
        let next = machine.steps + 1;
        machine.top(LaneId::ROOT).ok_or(ResumeError::Empty)?.open = Some(next);
        match resolution {
            None => machine.later(Work::Enter(LaneId::ROOT, Entry::Resumed)),
            Some(resolution) => machine.resolve(resolution)?,
        }
        Ok(machine)
    }

    /// Puts a stored frame back. It began with the inputs that its caller's `with` gives now, too: a caller does not
    /// change while it waits.
    fn restore(&mut self, data: FrameData, inputs: &Map<String, Value>) -> Result<(), ResumeError> {
        let FrameData { playbook: name, state, step, ctx, attempts, repairs } = data;
        let unknown = |what, name: &str| ResumeError::Unknown { what, name: name.to_owned() };
        let mut frame = match self.top(LaneId::ROOT) {
            None => {
                let playbook = self.books.named(&name).map_err(|_| unknown("playbook", &name))?;
                let inputs = language::resolve(playbook, inputs).map_err(|message| ResumeError::Inputs { message })?;
                Frame::new(Arc::clone(playbook), 0, inputs)
            }
            Some(caller) => {
                let (playbook, at) = (Arc::clone(&caller.playbook), caller.at);
                if caller.open.is_none() {
                    return Err(ResumeError::NoStep { state: caller.state_name() });
                }
                let (scope, depth) = (caller.scope(), caller.depth);
                let Some(State { action: Action::Call(spec), .. }) = playbook.states.get(at) else {
                    return Err(unknown("playbook", &name));
                };
                if spec.playbook != name {
                    return Err(unknown("playbook", &name));
                }
                let failed = |message| ResumeError::CallInputs { name: name.clone(), message };
                self.call_frame(spec, &scope, depth).map_err(|error| failed(error.detail))?
            }
        };
        let playbook = Arc::clone(&frame.playbook);
        let index = |name: &str| playbook.states.iter().position(|state| state.name == name);
        let find = |name: &str| index(name).ok_or_else(|| unknown("state", name));
        frame.at = find(&state)?;
        frame.open = step;
        frame.ctx = ctx;
        frame.attempts = attempts.iter().map(|(name, count)| Ok((find(name)?, *count))).collect::<Result<_, _>>()?;
        for RepairData { state, gate, used } in repairs {
            frame.repairs.insert((find(&state)?, gate), used);
        }
        self.emit(RunStart { machine: name, depth: frame.depth, entry: state, resumed: true, external: false });
        if let Some(lane) = self.lanes.get_mut(&LaneId::ROOT) {
            lane.frames.push(frame);
        }
        Ok(())
    }

    /// Lets the state that waits go on with what was decided.
    fn resolve(&mut self, resolution: Resolution) -> Result<(), ResumeError> {
        let Resolution { approval, hash, decision, content } = resolution;
        let pending = self.asked.take().ok_or(ResumeError::NotWaiting)?;
        if pending.approval != approval {
            return Err(ResumeError::OtherApproval { given: approval, pending: pending.approval });
        }
        let frame = self.top(LaneId::ROOT).ok_or(ResumeError::Empty)?;
        let question = frame.state().and_then(|state| Question::of(state, &frame.scope()));
        let question = question.and_then(Result::ok).ok_or(ResumeError::NotWaiting)?;
        // Made anew from what would now happen, so that a checkpoint that was tampered with does not pass either.
        let now = approval::hash(self, &question);
        if now != hash || now != pending.hash {
            return Err(ResumeError::HashMismatch { hash: now });
        }
        let approved = decision == Decision::Approve;
        if let Some(schema) = question.schema.as_ref().filter(|_| approved) {
            check_answer(schema, content.as_ref().unwrap_or(&Value::Null))?;
        }
        let approval = json!({ "decision": decision });
        let output = if question.schema.is_some() { content.clone() } else { Some(approval.clone()) };
        let failure = (!approved).then(settle::rejected);
        let result =
            StateResult { output, approval: Some(approval), answer: content, failure, ..StateResult::default() };
        self.steps += 1;
        self.later(Work::Settle(LaneId::ROOT, Box::new(result)));
        Ok(())
    }
}

fn frame_data(frame: &Frame) -> FrameData {
    let name = |at: &usize| frame.playbook.states.get(*at).map(|state| state.name.clone()).unwrap_or_default();
    FrameData {
        playbook: frame.playbook.name.clone(),
        state: frame.state_name(),
        step: frame.open,
        ctx: frame.ctx.clone(),
        attempts: frame.attempts.iter().map(|(at, count)| (name(at), *count)).collect::<BTreeMap<_, _>>(),
        repairs: frame
            .repairs
            .iter()
            .filter(|(_, used)| **used > 0)
            .map(|((at, gate), used)| RepairData { state: name(at), gate: *gate, used: *used })
            .collect(),
    }
}

/// Reads the stored sources. A source that was not found at the start is not found now either.
fn books(origin: &Origin) -> Result<Books, ResumeError> {
    let mut books = BTreeMap::new();
    for (name, source) in &origin.sources {
        let failed = |message| ResumeError::Source { name: name.clone(), message };
        let mut playbook = language::parse(source).map_err(failed)?;
        // The name of a command made by `for_command` is not in its source.
        playbook.name.clone_from(name);
        books.insert(name.clone(), Ok(Arc::new(playbook)));
    }
    Ok(Books::from_map(books))
}

/// Checks an answer against the schema of its question.
fn check_answer(schema: &Value, answer: &Value) -> Result<(), ResumeError> {
    const TOLD: usize = 8;
    let invalid = |problems| ResumeError::InvalidAnswer { problems };
    let validator = jsonschema::validator_for(schema).map_err(|error| invalid(vec![error.to_string()]))?;
    let problems: Vec<String> = validator
        .iter_errors(answer)
        .take(TOLD)
        .map(|error| match error.instance_path().to_string() {
            place if place.is_empty() => error.to_string(),
            place => format!("{place}: {error}"),
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(invalid(problems)) }
}
