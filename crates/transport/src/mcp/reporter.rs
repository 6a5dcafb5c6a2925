//! A run's records as the progress of the call that waits for it.
//!
//! The number is states done, of how many the playbook has where that is known; the branches of a state that fans out
//! share it, by the tree of `taffrail-progress`. The message is where the run is and what it last wrote. Going back to a
//! state, trying again and joining late slow the number down and never turn it back.

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
}

#[derive(Debug)]
enum Work {
    /// Not begun, or done for now: it may begin again.
    Idle,
    /// It writes lines; how many there will be nobody knows.
    Lines(CountingProgress),
    Fan {
        set: Branches,
        items: HashMap<u64, (Branch, CountingProgress)>,
    },
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
                if let Some(part) = self.part(state).and_then(|at| self.parts.get_mut(at)) {
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
        let running = snapshot.get("status").and_then(Value::as_str) == Some("running");
        if !running && let Some(part) = self.current_part() {
            // A state that is done has nothing to count any more: its next try says it.
            let _ = part.branch.counting_progress(None).emit_with(&words);
        }
        if snapshot.get("status").and_then(Value::as_str) == Some("done") {
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
        if let Some(part) = self.current_part() {
            let lines = part.branch.counting_progress(None);
            let _ = lines.emit_with(told::line(Some(&part.state), step, None));
            part.work = Work::Lines(lines);
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
                Some((_, lines)) => lines,
                None => return,
            },
            _ => return,
        };
        let _ = counted.emit_with(told::line(Some(&place), step, text));
    }
}

impl Part {
    fn new(state: &str, branch: Branch) -> Self {
        Self { state: state.to_owned(), branch, work: Work::Idle }
    }

    /// A branch of the state begins; the state fans out with the first.
    fn join(&mut self, index: u64) {
        if let Work::Lines(_) = self.work
            && let Work::Lines(lines) = std::mem::replace(&mut self.work, Work::Idle)
            && let Ok(set) = lines.branches()
        {
            self.work = Work::Fan { set, items: HashMap::new() };
        }
        if let Work::Fan { set, items } = &mut self.work
            && let Ok(branch) = set.branch(1.0)
        {
            let lines = branch.counting_progress(None);
            items.insert(index, (branch, lines));
        }
    }

    fn leave(&mut self, index: u64) {
        if let Work::Fan { items, .. } = &mut self.work
            && let Some((branch, _)) = items.remove(&index)
        {
            branch.done();
        }
    }

    /// Done, as far as is known: the run may come back to it.
    fn finish(&mut self) {
        self.work = Work::Idle;
        let _ = self.branch.percent_progress().emit(1.0);
    }
}
