//! A run's records as the progress of the call that waits for it.
//!
//! The number is states done, of how many the playbook has where that is known; the branches of a state that fans out
//! share it, by the tree of `taffrail-progress`. The message is where the run is and what it last wrote.
//!
//! A state is done when the run goes on to another one. What it writes before that moves the number towards its end and
//! never there, however often it is repaired; what it writes when the run comes back to it moves the last thousandth.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use taffrail_progress::{Branch, Branches, CountingProgress, ProgressSource as _, Source};

use super::told;

/// More states than a playbook has that a person wrote; beyond it the number has no total.
const MOST_STATES: usize = 1000;

/// Turns records into reports.
#[derive(Debug)]
pub(super) struct Reporter {
    parts: Vec<Part>,
    /// Where states join that no list names.
    open: Option<Branches>,
    /// The part of the state that runs.
    current: Option<usize>,
    step: u64,
}

/// One state.
#[derive(Debug)]
struct Part {
    state: String,
    branch: Branch,
    work: Work,
    /// The run has gone on from it, once at least.
    done: bool,
}

#[derive(Debug)]
enum Work {
    /// Not begun.
    Idle,
    /// It writes lines; how many there will be nobody knows.
    Lines(CountingProgress),
    /// It has branches.
    Fan { set: Branches, items: HashMap<u64, Item> },
}

/// One branch of a state.
#[derive(Debug)]
struct Item {
    branch: Branch,
    lines: CountingProgress,
    done: bool,
}

/// The fields that are looked at.
#[derive(Deserialize)]
struct Fields {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    state: Option<String>,
    #[serde(default)]
    depth: u64,
    #[serde(default)]
    step: u64,
    #[serde(default)]
    policy: Option<String>,
    #[serde(default)]
    to: Option<String>,
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    message: Option<String>,
}

impl Reporter {
    /// Reports to `source` about a run of a playbook with these states, beginning with `words`.
    pub(super) fn new(source: &Source, states: &[String], words: &str) -> Self {
        let mut reporter = Self { parts: Vec::new(), open: None, current: None, step: 0 };
        let total = Some(states.len()).filter(|count| (1..=MOST_STATES).contains(count));
        let whole = source.double_progress(total.map(|total| total as f64));
        let _ = whole.emit_with(0.0, words);
        match total {
            Some(total) => {
                let branches = whole.split(&vec![1.0; total]).unwrap_or_default();
                let part = |(state, branch): (&String, Branch)| Part::new(state, branch);
                reporter.parts = states.iter().zip(branches).map(part).collect();
            }
            None => reporter.open = whole.branches().ok(),
        }
        reporter
    }

    /// Takes one record of the run.
    pub(super) fn record(&mut self, json: &str) {
        let Ok(fields) = serde_json::from_str::<Fields>(json) else { return };
        let state = fields.state.as_deref().unwrap_or_default();
        match fields.kind.as_str() {
            "state-start" if fields.depth == 0 => {
                self.step = fields.step;
                self.current = self.part(state);
                self.begin();
            }
            "state-done" if fields.depth == 0 => {
                let goes_on = matches!(fields.policy.as_deref(), Some("ok" | "escalate"));
                if goes_on
                    && fields.to.as_deref() != Some(state)
                    && let Some(part) = self.part(state).and_then(|at| self.parts.get_mut(at))
                {
                    part.finish();
                }
            }
            "branch-start" if fields.depth == 0 => {
                if let (Some(part), Some(index)) = (self.current_part(), fields.index) {
                    part.join(index);
                }
            }
            "branch-done" if fields.depth == 0 => {
                if let (Some(part), Some(index)) = (self.current_part(), fields.index) {
                    part.leave(index);
                }
            }
            "log" | "message" => self.say(state, fields.index, fields.text.as_deref()),
            "progress" => self.say(state, fields.index, fields.message.as_deref()),
            "state-start" => self.say(state, None, None),
            _ => {}
        }
    }

    /// The call that reports ends here: the last words, and, where the run is done, all of the number.
    pub(super) fn end(&mut self, snapshot: &Value) {
        let words = told::of_snapshot(snapshot, None);
        let status = snapshot.get("status").and_then(Value::as_str).unwrap_or_default();
        if status != "running" {
            if self.current.is_none() {
                self.current = self.part("");
            }
            if let Some(part) = self.current_part() {
                // With a try of its own: what it was doing is over.
                let _ = part.branch.counting_progress(None).emit_with(&words);
            }
        }
        if status == "done" {
            for part in std::mem::take(&mut self.parts) {
                part.branch.done();
            }
            if let Some(open) = self.open.take() {
                open.close();
            }
        }
    }

    fn current_part(&mut self) -> Option<&mut Part> {
        self.current.and_then(|at| self.parts.get_mut(at))
    }

    /// The part of `state`, which joins when there is none.
    fn part(&mut self, state: &str) -> Option<usize> {
        if let Some(at) = self.parts.iter().position(|part| part.state == state) {
            return Some(at);
        }
        let branch = self.open.as_ref()?.branch(1.0).ok()?;
        self.parts.push(Part::new(state, branch));
        Some(self.parts.len() - 1)
    }

    fn begin(&mut self) {
        let step = self.step;
        let Some(part) = self.current_part() else { return };
        if matches!(part.work, Work::Idle) {
            part.work = Work::Lines(part.branch.counting_progress(None));
        }
        if let Work::Lines(lines) = &part.work {
            let _ = lines.emit_with(told::line(Some(&part.state), step, None));
        }
    }

    /// Counts something that was written; `state` may be one of a playbook that the current state calls.
    fn say(&mut self, state: &str, index: Option<u64>, text: Option<&str>) {
        let step = self.step;
        let Some(part) = self.current_part() else { return };
        let place = match index {
            Some(index) => format!("{state}[{index}]"),
            None if state.is_empty() => part.state.clone(),
            None => state.to_owned(),
        };
        let counted = match (&part.work, index) {
            (Work::Lines(lines), _) => lines,
            (Work::Fan { items, .. }, Some(index)) => match items.get(&index) {
                Some(item) => &item.lines,
                None => return,
            },
            _ => return,
        };
        let _ = counted.emit_with(told::line(Some(&place), step, text));
    }
}

impl Part {
    fn new(state: &str, branch: Branch) -> Self {
        Self { state: state.to_owned(), branch, work: Work::Idle, done: false }
    }

    /// A branch of the state begins, or begins again; the state fans out with the first.
    fn join(&mut self, index: u64) {
        if !self.done
            && let Work::Lines(_) = self.work
            && let Work::Lines(lines) = std::mem::replace(&mut self.work, Work::Idle)
            && let Ok(set) = lines.branches()
        {
            self.work = Work::Fan { set, items: HashMap::new() };
        }
        if let Work::Fan { set, items } = &mut self.work
            && !items.contains_key(&index)
            && let Ok(branch) = set.branch(1.0)
        {
            let lines = branch.counting_progress(None);
            items.insert(index, Item { branch, lines, done: false });
        }
    }

    /// A branch is done, as far as is known: the state may be repaired.
    fn leave(&mut self, index: u64) {
        if let Work::Fan { items, .. } = &mut self.work
            && let Some(item) = items.get_mut(&index)
            && !std::mem::replace(&mut item.done, true)
        {
            let _ = item.branch.percent_progress().emit(1.0);
        }
    }

    /// The run goes on from the state. It may come back, as often as it likes: what it does then is a try of its own, once.
    fn finish(&mut self) {
        if !std::mem::replace(&mut self.done, true) {
            self.work = Work::Idle;
            let _ = self.branch.percent_progress().emit(1.0);
        }
    }
}
