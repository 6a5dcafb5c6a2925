//! The way out for a run's lifecycle events, which sees to it that the last one is a `run-finished`, once.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use taffrail_mcp_core::{Event, EventSink, Reason, RunFinished, RunStatus, Usage};

use crate::machine::{Ended, INTERNAL_ERROR};

pub(super) struct Outlet {
    sink: Arc<dyn EventSink>,
    name: String,
    usage: Usage,
    ended: bool,
}

impl Outlet {
    pub(super) fn new(sink: Arc<dyn EventSink>, name: String) -> Self {
        Self { sink, name, usage: Usage::default(), ended: false }
    }

    pub(super) fn emit(&mut self, event: Event) {
        if self.ended {
            return;
        }
        self.note(&event);
        // A sink must not panic. One that does is not let into the run's fate: observers cannot hurt it.
        if catch_unwind(AssertUnwindSafe(|| self.sink.emit(event))).is_err() {
            tracing::error!(playbook = self.name, "the event sink panicked; an event is lost");
        }
    }

    /// Takes note of an event that found its way by itself.
    pub(super) fn note(&mut self, event: &Event) {
        match event {
            Event::StateStart(start) => self.usage.steps = start.step,
            Event::RunFinished(end) if end.depth == 0 => self.ended = true,
            _ => {}
        }
    }

    /// What is told should the machine not be able to.
    pub(super) fn note_usage(&mut self, usage: Usage) {
        self.usage = Usage { steps: self.usage.steps, ..usage };
    }

    /// Ends the run because of a fault of ours.
    pub(super) fn fail(&mut self, detail: String) -> Ended {
        self.finish(RunStatus::Halt, INTERNAL_ERROR, Some(detail))
    }

    fn finish(&mut self, status: RunStatus, error: Reason, detail: Option<String>) -> Ended {
        let (error, usage) = (Some(error), self.usage);
        self.emit(Event::from(RunFinished {
            machine: self.name.clone(),
            depth: 0,
            status,
            error: error.clone(),
            at: None,
            usage,
            detail: detail.clone(),
        }));
        Ended { status, error, at: None, usage, detail, exit: None }
    }
}

impl Drop for Outlet {
    /// The driver's future was dropped: its server ends, or gave the run up.
    fn drop(&mut self) {
        if !self.ended {
            self.finish(RunStatus::Interrupted, Reason::SHUTDOWN, None);
        }
    }
}
