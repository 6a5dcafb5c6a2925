//! Branches of a fan-out: all counted, some kept.

use std::collections::BTreeMap;

use serde_json::Value;
use taffrail_mcp_core::{Exit, Timestamp};

use crate::view::{text, words};

/// Branches that are kept; more are counted only.
const KEPT: usize = 256;
/// Longest item that is kept, in bytes.
const ITEM: usize = 256;

/// Branches of one state.
#[derive(Debug, Default)]
pub(crate) struct Branches {
    /// Those that run, and others while they are few. By index.
    pub(crate) kept: BTreeMap<u64, Branch>,
    /// How many there are, once known.
    pub(crate) total: Option<u64>,
    /// Started.
    pub(crate) started: u64,
    /// Ended, well or not.
    pub(crate) done: u64,
    /// Ended with anything but exit code 0.
    pub(crate) failed: u64,
}

/// One branch.
#[derive(Debug)]
pub(crate) struct Branch {
    /// What it is about; empty for a sample.
    pub(crate) item: String,
    /// How far it says it is.
    pub(crate) progress: Option<String>,
    started: Timestamp,
    /// How and when it ended.
    pub(crate) end: Option<(Exit, Timestamp)>,
}

impl Branch {
    /// Milliseconds it ran, so far.
    pub(crate) fn took(&self, now: Timestamp) -> u64 {
        words::between(self.started, self.end.as_ref().map_or(now, |(_, at)| *at))
    }

    /// Whether it has ended with anything but exit code 0.
    pub(crate) fn failed(&self) -> bool {
        self.end.as_ref().is_some_and(|(exit, _)| !exit.success())
    }
}

impl Branches {
    /// One begins.
    pub(super) fn start(&mut self, index: u64, ts: Timestamp, item: &Value) {
        self.started = self.started.saturating_add(1);
        if self.kept.len() >= KEPT {
            let ended = |failed: bool| {
                move |(index, branch): (&u64, &Branch)| {
                    (branch.end.is_some() && branch.failed() == failed).then_some(*index)
                }
            };
            let out = self.kept.iter().find_map(ended(false)).or_else(|| self.kept.iter().find_map(ended(true)));
            match out {
                Some(out) => drop(self.kept.remove(&out)),
                None => return,
            }
        }
        let item = match item {
            Value::Null => String::new(),
            Value::String(text) => text::head(text, ITEM).to_owned(),
            other => text::head(&other.to_string(), ITEM).to_owned(),
        };
        self.kept.insert(index, Branch { item, progress: None, started: ts, end: None });
    }

    /// One has ended.
    pub(super) fn done(&mut self, index: u64, ts: Timestamp, exit: &Exit) {
        self.done = self.done.saturating_add(1);
        self.failed = self.failed.saturating_add(u64::from(!exit.success()));
        if let Some(branch) = self.kept.get_mut(&index) {
            branch.end = Some((exit.clone(), ts));
            branch.progress = None;
        }
    }

    /// One says how far it is.
    pub(super) fn progress(&mut self, index: u64, said: String) {
        if let Some(branch) = self.kept.get_mut(&index).filter(|branch| branch.end.is_none()) {
            branch.progress = Some(said);
        }
    }

    /// Their state has ended: only those that failed are of interest now.
    pub(super) fn end(&mut self, total: Option<u64>) {
        self.total = total;
        self.kept.retain(|_, branch| branch.failed());
    }

    /// `12 done (2 failed), 4 running`; after the end `2 of 14 branches failed`.
    pub(crate) fn counts(&self) -> String {
        match (self.total, self.started) {
            (None, 0) => String::new(),
            (None, started) => {
                let mut said = format!("{} done", self.done);
                if self.failed > 0 {
                    said.push_str(&format!(" ({} failed)", self.failed));
                }
                if let running @ 1.. = started.saturating_sub(self.done) {
                    said.push_str(&format!(", {running} running"));
                }
                said
            }
            (Some(total), _) if self.failed > 0 => {
                format!("{} of {} failed", self.failed, words::count(total, "branch"))
            }
            (Some(total), _) => words::count(total, "branch"),
        }
    }
}
