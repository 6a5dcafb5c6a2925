//! The way into a log.

use std::{
    fmt,
    num::NonZeroU64,
    sync::{Arc, Weak},
};

use taffrail_mcp_core::{BoxFuture, Event, EventBatch, EventSink, ProducerId, RunId, Seq, ThreadId, Timestamp};
use tokio::sync::watch;

use crate::{
    Config, RelayError, Store, StoreError, clock,
    hot::{Hot, Queue},
    sequencer::Handover,
    writer::write_at_once,
};

/// Writes the events of one run into its thread's log. A clone writes to the same run.
///
/// Two doors: [`EventSink::emit`] for what must be accepted at once, [`EventSink::send`] for what can wait for room.
/// Accepted events are written in order by the relay's writer, also when the publisher is dropped.
#[derive(Debug, Clone)]
pub struct Publisher {
    run: RunId,
    fence: Option<Timestamp>,
    hot: Arc<Hot>,
    queue: Arc<Queue>,
    /// Where who waits for an arrival writes it.
    store: (WeakStore, Config),
}

/// A store that is kept by others.
#[derive(Clone)]
struct WeakStore(Weak<dyn Store>);

impl fmt::Debug for WeakStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Store")
    }
}

/// A point in what was accepted into a thread: everything before it can be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

/// Events that come from elsewhere together.
#[derive(Debug, Default)]
pub struct Arrival {
    /// The events, in order; those of a part happened at one time. `None` is now, and a time to come is now too.
    pub parts: Vec<(Option<Timestamp>, EventBatch)>,
    /// Whose they are and the number of the first, when their producer numbers them.
    pub numbered: Option<Numbered>,
}

/// How the producer of an [`Arrival`] numbers it: its events have the numbers from `first` on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbered {
    /// Who sends them.
    pub producer: ProducerId,
    /// Number of the first event. A producer's very first event has number 1.
    pub first: NonZeroU64,
}

/// What became of an [`Arrival`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Receipt {
    /// Position of its first event; `None` when that arrived so long ago that its place is not known any more, and for
    /// an arrival without events.
    pub first: Option<Seq>,
    /// Position of its last event; `None` as for `first`.
    pub last: Option<Seq>,
    /// Events that were stored now.
    pub stored: u64,
    /// Events that had arrived before, and were not stored again.
    pub known: u64,
}

impl Publisher {
    pub(crate) fn new(
        run: RunId,
        hot: Arc<Hot>,
        queue: Arc<Queue>,
        (store, config): (Weak<dyn Store>, Config),
    ) -> Self {
        Self { run, fence: None, hot, queue, store: (WeakStore(store), config) }
    }

    /// Writes only while the run goes on as it was started, or resumed, at this time ([`taffrail_mcp_core::RunFold`],
    /// `resumed_at`). Once anybody else has ended the run, or gone on with it, events are accepted and dropped: whoever
    /// was taken for gone and is not cannot spoil the log. Decided by the log itself, at each record's place in it.
    #[must_use]
    pub fn fenced(self, started: Timestamp) -> Self {
        Self { fence: Some(started), ..self }
    }

    /// The run it writes for.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The thread it writes to.
    pub fn thread(&self) -> &ThreadId {
        &self.hot.thread
    }

    /// Accepts an event, as [`EventSink::emit`], and says when it cannot.
    ///
    /// # Errors
    ///
    /// [`RelayError::Overloaded`] when more is waiting for the store than [`crate::Config::emit_bytes`].
    pub fn try_emit(&self, event: Event) -> Result<(), RelayError> {
        // Most events are some 200 bytes; a buffer per call costs less than a lock around a shared one.
        let mut body = Vec::with_capacity(512);
        event.encode_body(&mut body);
        let (lines, line_bytes) = match &event {
            Event::Log(log) => (log.lines(), log.bytes()),
            _ => (0, 0),
        };
        let folding = [(0, event)];
        let folding = if folding[0].1.folds() { &folding[..] } else { &[] };
        let (run, fence, ts) = (&self.run, self.fence, clock::now());
        let new = Handover { run, fence, ts, bodies: &body, count: 1, lines, line_bytes, folding };
        if self.hot.accept(new)? {
            self.queue.push(Arc::clone(&self.hot));
        }
        Ok(())
    }

    /// Stores events that come from elsewhere, durable on return. Those whose numbers have arrived before are left out,
    /// whichever process took them, so that sending again is harmless. All of the arrival is stored, in consecutive
    /// positions, or nothing.
    ///
    /// Waits for room, like [`EventSink::send`]. Dropping the future leaves either all or none of it stored.
    ///
    /// # Errors
    ///
    /// [`RelayError::Hole`], [`RelayError::RunOver`], [`RelayError::TooManyProducers`], with nothing stored; the store's
    /// error when it has failed for good.
    pub async fn ingest(&self, arrival: Arrival) -> Result<Receipt, RelayError> {
        let Arrival { parts, numbered } = arrival;
        let now = clock::now();
        let parts: Vec<_> = parts.iter().filter(|(_, batch)| !batch.is_empty()).collect();
        let new: Vec<_> =
            parts.iter().map(|(ts, batch)| Handover::of(&self.run, ts.unwrap_or(now).min(now), batch)).collect();
        if new.is_empty() {
            return Ok(Receipt::default());
        }
        let mut health = self.queue.health.subscribe();
        let (wake, answer) = loop {
            // Registered before the look, so that room made in between is not missed.
            let mut room = std::pin::pin!(self.hot.room().notified());
            room.as_mut().enable();
            if let Some(accepted) = self.hot.accept_arrival(&new, numbered.as_ref()) {
                break accepted;
            }
            if let Some(error) = fatal(&health) {
                return Err(error.into());
            }
            tokio::select! {
                () = room => {}
                changed = health.changed() => changed.map_err(|_| RelayError::Closed)?,
            }
        };
        self.queue.gathering.came();
        if wake {
            let (WeakStore(store), config) = &self.store;
            write_at_once(store, &self.queue, *config, Arc::clone(&self.hot));
        }
        tokio::pin!(answer);
        loop {
            if let Some(error) = fatal(&health) {
                return Err(error.into());
            }
            tokio::select! {
                answer = &mut answer => return answer.map_err(|_| RelayError::Closed)?,
                changed = health.changed() => changed.map_err(|_| RelayError::Closed)?,
            }
        }
    }

    /// Marks what was accepted so far.
    pub fn mark(&self) -> Mark {
        Mark(self.hot.accepted())
    }

    /// Waits until everything before a mark is durable. Dropping the future changes nothing.
    ///
    /// # Errors
    ///
    /// The store's error when it has failed for good, [`RelayError::Closed`] when the relay is gone.
    pub async fn durable(&self, mark: Mark) -> Result<(), RelayError> {
        let mut durable = self.hot.durable();
        let mut health = self.queue.health.subscribe();
        loop {
            if *durable.borrow_and_update() >= mark.0 {
                return Ok(());
            }
            if let Some(error) = fatal(&health) {
                return Err(error.into());
            }
            tokio::select! {
                changed = durable.changed() => changed.map_err(|_| RelayError::Closed)?,
                changed = health.changed() => changed.map_err(|_| RelayError::Closed)?,
            }
        }
    }

    /// Waits until everything accepted so far is durable.
    ///
    /// # Errors
    ///
    /// As [`Publisher::durable`].
    pub async fn flush(&self) -> Result<(), RelayError> {
        self.durable(self.mark()).await
    }
}

fn fatal(health: &watch::Receiver<Option<StoreError>>) -> Option<StoreError> {
    health.borrow().clone().filter(|error| !error.is_transient())
}

impl EventSink for Publisher {
    fn emit(&self, event: Event) {
        if let Err(error) = self.try_emit(event) {
            tracing::error!(%error, run = %self.run, "an event was refused");
        }
    }

    fn send<'a>(&'a self, batch: &'a mut EventBatch) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if batch.is_empty() {
                return;
            }
            let mut new = Handover { fence: self.fence, ..Handover::of(&self.run, clock::now(), batch) };
            let mut health = self.queue.health.subscribe();
            let wake = loop {
                // Registered before the look, so that room made in between is not missed.
                let mut room = std::pin::pin!(self.hot.room().notified());
                room.as_mut().enable();
                new = match self.hot.accept_with_room(new) {
                    Ok(wake) => break wake,
                    Err(back) => back,
                };
                if fatal(&health).is_some() {
                    // Nothing will ever be written again. The work goes on; its log cannot.
                    break false;
                }
                tokio::select! {
                    () = room => {}
                    _ = health.changed() => {}
                }
            };
            if wake {
                self.queue.push(Arc::clone(&self.hot));
            }
            batch.clear();
        })
    }
}
