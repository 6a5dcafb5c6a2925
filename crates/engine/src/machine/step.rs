//! The machine: its parts, its queue of work, and the one loop that does it.

use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
    path::PathBuf,
    sync::Arc,
};

use serde_json::{Map, Value};
use taffrail_mcp_core::{Event, Exit, Reason, RunStart};

use super::{
    Effect, Fact, IdSource, Reading, Stop, TaskId,
    books::Books,
    format::{Origin, PendingData},
    frame::{Failure, Frame, FrameEnd, Lane, LaneId, StateResult},
    language, outcome,
};
use crate::playbook::{Budget, Playbook};

/// `invalid-inputs`: the inputs do not fit the playbook.
const INVALID_INPUTS: Reason = Reason(Cow::Borrowed("invalid-inputs"));

/// The transition logic of one run. Pure: it knows no clock, starts no process and writes nothing.
///
/// The driver hands over facts with [`Machine::handle`] and then takes effects from [`Machine::poll`] until there are
/// none. Exactly one [`Effect::End`] comes out of every machine, as the last effect, provided that the driver reports
/// the end of every process it was told to start; the event right before it is the `run-finished` of depth 0.
pub struct Machine {
    pub(super) books: Books,
    pub(super) budget: Budget,
    pub(super) cwd: PathBuf,
    /// Branches at the same time where a fan-out does not say.
    pub(super) parallel: usize,
    pub(super) ids: Arc<dyn IdSource>,
    pub(super) lanes: BTreeMap<LaneId, Lane>,
    pub(super) next_lane: u64,
    /// Processes that run, and whose they are.
    pub(super) tasks: BTreeMap<TaskId, Place>,
    pub(super) next_task: u64,
    /// States started.
    pub(super) steps: u64,
    pub(super) stop: Option<Stop>,
    /// Goes into the first checkpoint of the run.
    pub(super) origin: Option<Origin>,
    /// The question that a resumed run was waiting with: it keeps its id.
    pub(super) asked: Option<PendingData>,
    /// How the process of the outermost playbook's last state ended.
    pub(super) exit: Option<Exit>,
    pub(super) ended: bool,
    todo: VecDeque<Work>,
    effects: VecDeque<Effect>,
}

/// Whose process it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) lane: LaneId,
    pub(super) branch: Option<usize>,
}

/// Something to do at once, without waiting for a fact.
#[derive(Debug)]
pub(super) enum Work {
    /// Start the state that the innermost frame is at.
    Enter(LaneId, Entry),
    /// Start branches that may start, or end the state when all have ended.
    Branches(LaneId),
    /// The state of the innermost frame has ended: ask its gates.
    Settle(LaneId, Box<StateResult>),
    /// The innermost playbook has ended.
    Return(LaneId, FrameEnd),
}

/// How a state is come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    /// By a transition.
    Fresh,
    /// By a `repair` gate.
    Repair,
    /// Again, after the run was interrupted in it or suspended.
    Resumed,
}

/// What a machine works with.
pub struct Setup {
    /// The playbook and all it may call.
    pub books: Books,
    /// Working directories of states are relative to it.
    pub cwd: PathBuf,
    /// Branches at the same time where a fan-out does not say; at least 1.
    pub parallel: usize,
    /// Makes ids of checkpoints and approvals.
    pub ids: Arc<dyn IdSource>,
}

impl Machine {
    /// A new run of a playbook. Inputs are checked and completed with defaults; a run with inputs that do not fit halts
    /// at once with `invalid-inputs`.
    pub fn new(playbook: &Arc<Playbook>, given: &Map<String, Value>, setup: Setup) -> Self {
        let inputs = language::resolve(playbook, given);
        let origin = inputs.as_ref().ok().map(|inputs| Origin::of(playbook, inputs, &setup));
        let mut machine = Self::empty(playbook.budget, setup);
        machine.origin = origin;
        match inputs {
            Ok(inputs) => machine.push_frame(LaneId::ROOT, Frame::new(Arc::clone(playbook), 0, inputs)),
            Err(detail) => {
                machine.push_frame(LaneId::ROOT, Frame::new(Arc::clone(playbook), 0, Map::new()));
                let failure = Failure { reason: INVALID_INPUTS, detail };
                machine.todo = VecDeque::from([Work::Return(LaneId::ROOT, FrameEnd::Halt(failure))]);
            }
        }
        machine
    }

    pub(super) fn empty(budget: Budget, setup: Setup) -> Self {
        let Setup { books, cwd, parallel, ids } = setup;
        let root = Lane { frames: Vec::new(), parent: None, index: None };
        Self {
            books,
            budget,
            cwd,
            parallel: parallel.max(1),
            ids,
            lanes: BTreeMap::from([(LaneId::ROOT, root)]),
            next_lane: LaneId::ROOT.0 + 1,
            tasks: BTreeMap::new(),
            next_task: 0,
            steps: 0,
            stop: None,
            origin: None,
            asked: None,
            exit: None,
            ended: false,
            todo: VecDeque::new(),
            effects: VecDeque::new(),
        }
    }

    /// The limits of the run.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// Whether [`Effect::End`] has been given out or is about to be.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Takes in what happened. Facts about processes that do not run, and facts after the end, are ignored.
    pub fn handle(&mut self, fact: Fact) {
        if self.ended {
            return;
        }
        match fact {
            Fact::Stop(stop) => self.stop_now(stop),
            Fact::Exited { task, exit, stdout, truncated } => {
                if let Some(place) = self.tasks.remove(&task) {
                    self.task_ended(place, |parse, keep| outcome::of_exit(exit, &stdout, truncated, parse, keep));
                }
            }
            Fact::SpawnFailed { task, code, detail } => {
                if let Some(place) = self.tasks.remove(&task) {
                    self.task_ended(place, |_, _| outcome::of_spawn_failure(code, detail));
                }
            }
            Fact::Lost { task, detail } => {
                if self.tasks.remove(&task).is_some() {
                    self.stop_now(Stop::Fault(detail));
                }
            }
        }
    }

    /// The next effect; `None` when the machine waits for a fact, or has ended.
    ///
    /// A driver calls it again at [`Budget::wall`] at the latest. It does a bounded amount of work per effect.
    pub fn poll(&mut self, reading: &Reading) -> Option<Effect> {
        loop {
            if let Some(effect) = self.effects.pop_front() {
                return Some(effect);
            }
            if self.ended {
                return None;
            }
            if reading.wall >= self.budget.wall {
                self.stop_now(Stop::Budget(format!("its {:?} of wall time are used up", self.budget.wall)));
                if let Some(effect) = self.effects.pop_front() {
                    return Some(effect);
                }
            }
            match self.todo.pop_front() {
                // A lane that is gone needs nothing: the answer says no more than that.
                Some(work) => drop(self.work(work, reading)),
                None if !self.tasks.is_empty() => return None,
                None if self.stop.is_some() => self.wind_down(reading),
                // It would wait for ever. Nothing leads here; should something ever, the run must not hang.
                None => self.stop_now(Stop::Fault("there is nothing to wait for".to_owned())),
            }
        }
    }

    fn work(&mut self, work: Work, reading: &Reading) -> Option<()> {
        match work {
            Work::Settle(lane, result) => self.settle(lane, *result),
            // What has not started when the run is stopped does not start; `wind_down` closes what is open.
            _ if self.stop.is_some() => None,
            Work::Enter(lane, entry) => self.enter(lane, entry, reading),
            Work::Branches(lane) => self.branches(lane),
            Work::Return(lane, end) => self.give_back(lane, end, reading),
        }
    }

    pub(super) fn stop_now(&mut self, stop: Stop) {
        if self.stop.is_none() {
            self.stop = Some(stop);
            if !self.tasks.is_empty() {
                self.effects.push_back(Effect::EndTasks);
            }
        }
    }

    pub(super) fn emit(&mut self, event: impl Into<Event>) {
        self.effects.push_back(Effect::Emit(event.into()));
    }

    pub(super) fn effect(&mut self, effect: Effect) {
        self.effects.push_back(effect);
    }

    pub(super) fn later(&mut self, work: Work) {
        self.todo.push_back(work);
    }

    pub(super) fn top(&mut self, lane: LaneId) -> Option<&mut Frame> {
        self.lanes.get_mut(&lane)?.frames.last_mut()
    }

    /// Puts a playbook on a lane and begins it.
    pub(super) fn push_frame(&mut self, lane: LaneId, frame: Frame) {
        self.emit(RunStart {
            machine: frame.playbook.name.clone(),
            depth: frame.depth,
            entry: frame.state_name(),
            resumed: false,
            external: false,
        });
        if let Some(lane) = self.lanes.get_mut(&lane) {
            lane.frames.push(frame);
        }
        self.later(Work::Enter(lane, Entry::Fresh));
    }
}
