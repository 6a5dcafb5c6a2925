//! Taking in events from elsewhere.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use taffrail_mcp_core::{CancelRequested, Event, Note, RunFold, RunId, Timestamp};
use taffrail_relay::{Arrival, Publisher, Receipt, RelayError};
use tokio::time::Instant;

use crate::{RunsError, Service, clock, external};

/// A run's state is read again when it was read this long ago: how late a producer learns that its run was cancelled.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A run that nothing came for is let go of after this time.
const IDLE: Duration = Duration::from_secs(30);

/// Most runs that are held. Each may keep up to 1 MiB of its log in memory.
const MAX_HELD: usize = 256;

/// What became of events that came from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ingested {
    /// Where they are.
    pub receipt: Receipt,
    /// Somebody wants the external run to end: its producer should end what it runs, and say so with a `run-finished`.
    pub cancel: Option<CancelRequested>,
}

impl Service {
    /// Stores events of a run that come from elsewhere, durable on return.
    ///
    /// Events that the run's state depends on ([`Event::folds`]) are taken for external runs only. An external run that was
    /// taken for abandoned goes on with the first arrival, also with one without events, which says that the producer
    /// is alive. That is written down only when the last record is a third of [`crate::Config::external_silence`] old.
    ///
    /// # Errors
    ///
    /// [`RunsError::NoRun`], [`RunsError::NotExternal`], and those of [`Publisher::ingest`]; nothing is stored then.
    pub async fn ingest(&self, run: &RunId, arrival: Arrival) -> Result<Ingested, RunsError> {
        let held = self.held(run).await?;
        let mut fold = held.fold();
        if !fold.external
            && let Some(event) = folding(&arrival).next()
        {
            return Err(RunsError::NotExternal { run: run.clone(), kind: event.kind().to_owned() });
        }
        if external::was_given_up(&fold) {
            fold = held.saw(self.producer_is_back(fold).await?);
        }
        let ends = folding(&arrival).any(|event| matches!(event, Event::RunFinished(end) if end.depth == 0));
        let written = written(&arrival);
        let receipt = match written {
            Some(_) => held.publisher.ingest(arrival).await?,
            None if fold.status.is_final() => {
                return Err(RelayError::RunOver { run: run.clone(), status: fold.status }.into());
            }
            None => Receipt::default(),
        };
        if !fold.external || ends || fold.status.ended() {
            return Ok(Ingested { receipt, cancel: None });
        }
        let silence = self.inner.config.external_silence;
        // Events that waited elsewhere keep their times, which then do not tell when they came; but a remark that does
        // would be the earliest time of all that is still to come, so it is put off as long as it can be.
        let (last, limit) = match written {
            Some(written) => (written, silence * 2 / 3),
            None => (fold.updated_at, silence / 3),
        };
        if clock::since(last) > limit
            && let Some(fold) = self.unless_over(&fold, Note::info("producer-alive").into()).await?
        {
            held.saw(fold);
        }
        Ok(Ingested { receipt, cancel: fold.cancel.clone() })
    }

    /// Writes an event of ours into a run, unless that is over.
    pub(crate) async fn unless_over(&self, fold: &RunFold, event: Event) -> Result<Option<RunFold>, RunsError> {
        let goes_on = |now: Option<&RunFold>| now.is_some_and(|now| !now.status.is_final());
        Ok(self.inner.relay.commit_if(&fold.thread, &fold.run, &[event], None, goes_on).await?)
    }

    /// A run that events come for, its state at most a moment old.
    async fn held(&self, run: &RunId) -> Result<Arc<Held>, RunsError> {
        if let Some(held) = self.inner.ingests.find(run) {
            if held.look_due() {
                match self.read(run).await {
                    Ok(fold) => _ = held.saw(fold),
                    Err(error) => {
                        self.inner.ingests.drop(run);
                        return Err(error);
                    }
                }
            }
            return Ok(held);
        }
        let fold = self.read(run).await?;
        let publisher = self.inner.relay.publisher(&fold.thread, run).await?;
        Ok(self.inner.ingests.hold(run, publisher, fold))
    }
}

/// The events of an arrival that a run's state depends on.
fn folding(arrival: &Arrival) -> impl Iterator<Item = &Event> {
    arrival.parts.iter().flat_map(|(_, batch)| batch.folding()).map(|(_, event)| event)
}

/// The time that its last record has at least; `None` when it has no events.
fn written(arrival: &Arrival) -> Option<Timestamp> {
    let parts = arrival.parts.iter().filter(|(_, batch)| !batch.is_empty());
    parts.map(|(ts, _)| ts.unwrap_or_else(clock::now)).max()
}

/// A run that events came for lately.
#[derive(Debug)]
struct Held {
    publisher: Publisher,
    state: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    fold: Arc<RunFold>,
    /// When it was read; `None` when it is known to be old.
    at: Option<Instant>,
    used: Instant,
}

impl Held {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        lock(&self.state)
    }

    fn fold(&self) -> Arc<RunFold> {
        Arc::clone(&self.seen().fold)
    }

    fn saw(&self, fold: RunFold) -> Arc<RunFold> {
        let fold = Arc::new(fold);
        let mut seen = self.seen();
        (seen.fold, seen.at) = (Arc::clone(&fold), Some(Instant::now()));
        fold
    }

    fn expire(&self) {
        self.seen().at = None;
    }

    /// Whether the caller should read its state. One of many does.
    fn look_due(&self) -> bool {
        let mut seen = self.seen();
        let now = Instant::now();
        let due = seen.at.is_none_or(|at| now.duration_since(at) >= LOOK_EVERY);
        if due {
            seen.at = Some(now);
        }
        due
    }
}

/// All of them. Nothing that must be right is decided by what is known here: the relay decides about each event by the
/// state that the run has where the event is put.
#[derive(Debug, Default)]
pub(crate) struct Ingests {
    runs: Arc<Mutex<HashMap<RunId, Arc<Held>>>>,
}

impl Ingests {
    fn find(&self, run: &RunId) -> Option<Arc<Held>> {
        let held = lock(&self.runs).get(run).cloned()?;
        held.seen().used = Instant::now();
        Some(held)
    }

    fn hold(&self, run: &RunId, publisher: Publisher, fold: RunFold) -> Arc<Held> {
        let now = Instant::now();
        let seen = Seen { fold: Arc::new(fold), at: Some(now), used: now };
        let held = Arc::new(Held { publisher, state: Mutex::new(seen) });
        let mut runs = lock(&self.runs);
        if runs.len() >= MAX_HELD {
            let oldest = runs.iter().min_by_key(|(_, held)| held.seen().used).map(|(run, _)| run.clone());
            oldest.and_then(|run| runs.remove(&run));
        }
        if runs.is_empty() {
            tokio::spawn(let_go(Arc::downgrade(&self.runs)));
        }
        runs.insert(run.clone(), Arc::clone(&held));
        held
    }

    fn drop(&self, run: &RunId) {
        lock(&self.runs).remove(run);
    }

    /// What is known of a run is old.
    pub(crate) fn expire(&self, run: &RunId) {
        if let Some(held) = lock(&self.runs).get(run) {
            held.expire();
        }
    }

    /// Runs that events came for lately.
    pub(crate) fn count(&self) -> usize {
        lock(&self.runs).len()
    }
}

/// Lets go of what is not used any more, until nothing is left.
async fn let_go(runs: Weak<Mutex<HashMap<RunId, Arc<Held>>>>) {
    loop {
        tokio::time::sleep(IDLE / 3).await;
        let Some(runs) = runs.upgrade() else { return };
        let mut runs = lock(&runs);
        let now = Instant::now();
        runs.retain(|_, held| now.duration_since(held.seen().used) < IDLE);
        if runs.is_empty() {
            return;
        }
    }
}

/// Takes a lock whose holders never leave half a change behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
