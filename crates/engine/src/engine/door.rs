//! What all events of a run pass: counts its process output, so that `usage` says what the log holds, and closes behind
//! the last event, so that nothing follows it, whatever a process that is still being ended has to say.

use std::{
    future,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use taffrail_mcp_core::{BoxFuture, Event, EventBatch, EventSink};

use crate::machine::Reading;

/// A sink in front of the run's sink.
pub(super) struct Door {
    sink: Arc<dyn EventSink>,
    closed: AtomicBool,
    lines: AtomicU64,
    bytes: AtomicU64,
    clipped_lines: AtomicU64,
    clipped_bytes: AtomicU64,
}

/// Output counted at once.
#[derive(Default)]
struct Count {
    lines: u64,
    bytes: u64,
    clipped_lines: u64,
    clipped_bytes: u64,
}

impl Door {
    pub(super) fn new(sink: Arc<dyn EventSink>) -> Self {
        let [lines, bytes, clipped_lines, clipped_bytes] = [const { AtomicU64::new(0) }; 4];
        Self { sink, closed: AtomicBool::new(false), lines, bytes, clipped_lines, clipped_bytes }
    }

    /// Lets nothing more out: the last event found its way by itself.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// What has been counted, added to what an earlier session used.
    pub(super) fn add_to(&self, used: Reading) -> Reading {
        let sum = |used: u64, more: &AtomicU64| used.saturating_add(more.load(Ordering::Relaxed));
        Reading {
            wall: used.wall,
            log_lines: sum(used.log_lines, &self.lines),
            log_bytes: sum(used.log_bytes, &self.bytes),
            clipped_lines: sum(used.clipped_lines, &self.clipped_lines),
            clipped_bytes: sum(used.clipped_bytes, &self.clipped_bytes),
        }
    }

    fn add(&self, count: &Count) {
        let Count { lines, bytes, clipped_lines, clipped_bytes } = count;
        self.lines.fetch_add(*lines, Ordering::Relaxed);
        self.bytes.fetch_add(*bytes, Ordering::Relaxed);
        self.clipped_lines.fetch_add(*clipped_lines, Ordering::Relaxed);
        self.clipped_bytes.fetch_add(*clipped_bytes, Ordering::Relaxed);
    }
}

impl Count {
    fn clipped(&mut self, event: &Event) {
        if let Event::Clipped(clipped) = event {
            self.clipped_lines += clipped.lines;
            self.clipped_bytes += clipped.bytes;
        }
    }
}

impl EventSink for Door {
    fn emit(&self, event: Event) {
        let last = matches!(&event, Event::RunFinished(end) if end.depth == 0);
        if self.closed.fetch_or(last, Ordering::AcqRel) {
            return;
        }
        let mut count = Count::default();
        if let Event::Log(log) = &event {
            (count.lines, count.bytes) = (log.lines(), log.bytes());
        }
        count.clipped(&event);
        self.add(&count);
        self.sink.emit(event);
    }

    fn send<'a>(&'a self, batch: &'a mut EventBatch) -> BoxFuture<'a, ()> {
        if self.closed.load(Ordering::Acquire) {
            batch.clear();
            return Box::pin(future::ready(()));
        }
        let (lines, bytes) = batch.output();
        let mut count = Count { lines, bytes, ..Count::default() };
        batch.folding().iter().for_each(|(_, event)| count.clipped(event));
        Box::pin(async move {
            self.sink.send(batch).await;
            // Only now: a send that is dropped half-way has not happened.
            self.add(&count);
        })
    }
}
