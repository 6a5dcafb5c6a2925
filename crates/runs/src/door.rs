//! The one way into the log of a hosted run, which closes behind its end.

use std::sync::{Mutex, PoisonError};

use taffrail_mcp_core::{BoxFuture, Event, EventBatch, EventSink, Note};
use taffrail_relay::Publisher;

/// Passes on what the engine reports, and remarks of others until the run has ended: a `run-finished` is the last that
/// a run writes.
#[derive(Debug)]
pub(crate) struct Door {
    publisher: Publisher,
    closed: Mutex<bool>,
}

impl Door {
    pub(crate) fn new(publisher: Publisher) -> Self {
        Self { publisher, closed: Mutex::new(false) }
    }

    /// What it leads to.
    pub(crate) fn publisher(&self) -> &Publisher {
        &self.publisher
    }

    /// A remark that is not the engine's.
    pub(crate) fn note(&self, note: Note) {
        let closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        if !*closed {
            self.publisher.emit(note.into());
        }
    }
}

impl EventSink for Door {
    fn emit(&self, event: Event) {
        // Held while the event is handed over, so that no remark slips in behind the end.
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        *closed |= matches!(&event, Event::RunFinished(end) if end.depth == 0);
        self.publisher.emit(event);
    }

    fn send<'a>(&'a self, batch: &'a mut EventBatch) -> BoxFuture<'a, ()> {
        self.publisher.send(batch)
    }
}
