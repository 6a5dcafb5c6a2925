//! The one way into the log of a hosted run, which closes behind its end.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use taffrail_mcp_core::{BoxFuture, Event, EventBatch, EventSink, Note, Timestamp};
use taffrail_relay::Publisher;

/// Passes on what the engine reports, and remarks of others until the run has ended: a `run-finished` is the last that
/// a run writes.
#[derive(Debug)]
pub(crate) struct Door {
    publisher: Publisher,
    /// The same, for this run as it was started, once that is known.
    fenced: OnceLock<Publisher>,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The engine has ended the run.
    Ended,
    /// The run is not ours any more.
    Shut,
}

impl Door {
    pub(crate) fn new(publisher: Publisher) -> Self {
        Self { publisher, fenced: OnceLock::new(), state: Mutex::new(State::Open) }
    }

    /// What it leads to.
    pub(crate) fn publisher(&self) -> &Publisher {
        self.fenced.get().unwrap_or(&self.publisher)
    }

    /// From now on, leads there only while the run goes on as it was started at this time.
    pub(crate) fn fence(&self, started: Timestamp) {
        self.fenced.get_or_init(|| self.publisher.clone().fenced(started));
    }

    /// Drops whatever comes from now on.
    pub(crate) fn shut(&self) {
        *self.state() = State::Shut;
    }

    /// A remark that is not the engine's.
    pub(crate) fn note(&self, note: Note) {
        let state = self.state();
        if *state == State::Open {
            self.publisher().emit(note.into());
        }
    }

    /// Held while an event is handed over, so that nothing slips in behind the last one.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSink for Door {
    fn emit(&self, event: Event) {
        let mut state = self.state();
        if *state == State::Shut {
            return;
        }
        if matches!(&event, Event::RunFinished(end) if end.depth == 0) {
            *state = State::Ended;
        }
        self.publisher().emit(event);
    }

    fn send<'a>(&'a self, batch: &'a mut EventBatch) -> BoxFuture<'a, ()> {
        if *self.state() == State::Shut {
            batch.clear();
            return Box::pin(std::future::ready(()));
        }
        self.publisher().send(batch)
    }
}
