//! The runs that this process hosts.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use taffrail_engine::process::Cancel;
use taffrail_mcp_core::{Note, RunId};
use tokio::sync::watch;

use crate::door::Door;

/// The handles of one hosted run.
#[derive(Debug, Clone)]
pub(crate) struct Hosted {
    /// Ends it for good.
    pub(crate) cancel: Cancel,
    /// Interrupts it.
    pub(crate) shutdown: Cancel,
    /// Writes its events.
    pub(crate) door: Arc<Door>,
    /// Closed when it is over and everything about it is stored.
    pub(crate) over: watch::Receiver<()>,
}

impl Hosted {
    /// Ends it at once and without a word in its log: others go on with it, or have ended it.
    pub(crate) fn lose(&self) {
        self.door.shut();
        self.shutdown.kill();
    }
}

/// All of them. A clone is the same set.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostedRuns {
    runs: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    runs: HashMap<RunId, Hosted>,
    closing: bool,
}

impl HostedRuns {
    fn state(&self) -> MutexGuard<'_, State> {
        // Whole at any time, so a panic elsewhere does not spoil it.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a run; `false` when no more are taken.
    pub(crate) fn add(&self, run: RunId, hosted: Hosted) -> bool {
        let mut state = self.state();
        let open = !state.closing;
        if open {
            state.runs.insert(run, hosted);
        }
        open
    }

    pub(crate) fn remove(&self, run: &RunId) {
        self.state().runs.remove(run);
    }

    pub(crate) fn get(&self, run: &RunId) -> Option<Hosted> {
        self.state().runs.get(run).cloned()
    }

    /// Ends runs that are not ours any more, at once and without a word in their logs.
    pub(crate) fn lose(&self, runs: &[RunId]) {
        for hosted in runs.iter().filter_map(|run| self.get(run)) {
            hosted.lose();
        }
    }

    /// Hosted runs.
    pub(crate) fn count(&self) -> usize {
        self.state().runs.len()
    }

    /// Takes in no more, and gives back all.
    pub(crate) fn close(&self) -> Vec<Hosted> {
        let mut state = self.state();
        state.closing = true;
        state.runs.values().cloned().collect()
    }

    /// Puts a note into the log of a run, if it is hosted here.
    pub(crate) fn note(&self, run: &RunId, note: Note) {
        if let Some(hosted) = self.get(run) {
            hosted.door.note(note);
        }
    }
}
