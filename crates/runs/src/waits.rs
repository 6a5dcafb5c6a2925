//! Looking at a run for all who wait for it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use taffrail_mcp_core::{RunFold, RunId, Start, ThreadId};
use tokio::{sync::watch, time::Instant};

use crate::{RunsError, Service};

/// A run that is said to be running is looked for at least this often while somebody waits for it: its host may have
/// been killed, which nothing tells of.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// And after a pause, which is longer the more often it has changed lately: most records of a flood change nothing that
/// is waited for, but who waits for a short run waits for its first ones.
const FIRST_REST: Duration = Duration::from_millis(1);
const LONGEST_REST: Duration = Duration::from_millis(20);

/// What was seen of a run last; nothing before the first look.
type Seen = Option<Result<Arc<RunFold>, RunsError>>;

/// The runs that somebody waits for here.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    runs: Mutex<HashMap<RunId, Arc<Watched>>>,
}

#[derive(Debug, Default)]
struct Watched {
    /// Changes with every look that shows another record.
    records: watch::Sender<Seen>,
    /// Changes when the run's state does.
    turns: watch::Sender<Seen>,
}

impl Watched {
    fn news(&self, records: bool) -> watch::Receiver<Seen> {
        if records { self.records.subscribe() } else { self.turns.subscribe() }
    }

    fn tell(&self, seen: Result<RunFold, RunsError>) {
        let seen = seen.map(Arc::new);
        for (to, every_record) in [(&self.records, true), (&self.turns, false)] {
            to.send_if_modified(|known| {
                let same = match (&*known, &seen) {
                    (Some(Ok(known)), Ok(seen)) => {
                        let turned = (known.status, known.changed) != (seen.status, seen.changed);
                        !(turned || (every_record && known.last != seen.last))
                    }
                    _ => false,
                };
                if !same {
                    *known = Some(seen.clone());
                }
                !same
            });
        }
    }

    fn is_alone(&self) -> bool {
        self.records.receiver_count() == 0 && self.turns.receiver_count() == 0
    }

    /// Resolves when nobody waits any more, or not just now.
    async fn left(&self) {
        self.records.closed().await;
        self.turns.closed().await;
    }
}

impl Waits {
    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Arc<Watched>>> {
        // Whole at any time, so a panic elsewhere does not spoil it.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a run that nobody waits for. Whoever comes does so before or after that.
    fn end(&self, run: &RunId, watched: &Watched) -> bool {
        let mut runs = self.runs();
        let ends = watched.is_alone();
        if ends {
            runs.remove(run);
        }
        ends
    }

    /// Runs that somebody waits for.
    pub(crate) fn count(&self) -> usize {
        self.runs().len()
    }
}

/// Who looks at a run; when that ends, however it does, those who still wait learn it, and the next one begins anew.
struct Looking {
    service: Service,
    run: RunId,
    watched: Arc<Watched>,
}

impl Drop for Looking {
    fn drop(&mut self) {
        let mut runs = self.service.inner.waits.runs();
        if runs.get(&self.run).is_some_and(|watched| Arc::ptr_eq(watched, &self.watched)) {
            runs.remove(&self.run);
        }
    }
}

impl Service {
    /// What is seen of a run from now on: each time that it has another record, or only when its state changes.
    pub(crate) fn watched(&self, fold: &RunFold, records: bool) -> watch::Receiver<Seen> {
        let mut runs = self.inner.waits.runs();
        if let Some(watched) = runs.get(&fold.run) {
            return watched.news(records);
        }
        let watched = Arc::new(Watched::default());
        let news = watched.news(records);
        runs.insert(fold.run.clone(), Arc::clone(&watched));
        tokio::spawn(self.clone().watch_run(fold.clone(), watched));
        news
    }

    /// Looks at a run until nobody waits for it any more, or the store fails.
    async fn watch_run(self, fold: RunFold, watched: Arc<Watched>) {
        let RunFold { run, thread, .. } = fold;
        let looking = Looking { service: self, run, watched };
        if let Err(error) = looking.look(&thread).await {
            let watched = Arc::clone(&looking.watched);
            // First of all nobody comes any more.
            drop(looking);
            watched.tell(Err(error));
        }
    }
}

impl Looking {
    async fn look(&self, thread: &ThreadId) -> Result<(), RunsError> {
        let Self { service, run, watched } = self;
        // Before the first look, so that nothing is missed between two.
        let mut follower = service.inner.relay.follow(thread, None, Start::Live).await?;
        let mut settled: Option<Instant> = None;
        let mut rest = FIRST_REST;
        loop {
            // Whether the host is alive has nothing to do with how the log grows.
            let fold = match settled.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
                true => service.read(run).await?,
                false => {
                    settled = Some(Instant::now());
                    service.fold(run).await?
                }
            };
            watched.tell(Ok(fold));
            let looked = Instant::now();
            tokio::select! {
                () = watched.left() => {
                    if service.inner.waits.end(run, watched) {
                        return Ok(());
                    }
                }
                _ = async {
                    tokio::time::sleep(rest).await;
                    tokio::time::timeout(LOOK_EVERY, follower.wait()).await
                } => {}
            }
            rest = if looked.elapsed() > LONGEST_REST * 2 { FIRST_REST } else { (rest * 2).min(LONGEST_REST) };
        }
    }
}
