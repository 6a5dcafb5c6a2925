//! Hosting by leases: a run's key is held by the process that hosts it.
//!
//! A process takes keys under a name that it makes up, and is done with that name once others have taken it for gone:
//! what it hosted until then is not its own any more, what it hosts from then on is, under another name. Who only looks
//! takes the key too, for a moment and under a name of another kind, so that nobody takes it for a host.
//!
//! A host that was taken for gone and is not may have events under way when it learns that. They are not stored: see
//! [`taffrail_relay::Publisher::fenced`].

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use taffrail_mcp_core::RunId;
use taffrail_relay::{Leases, StoreError};
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use super::{Held, Lock, keeper, silence::Silence};
use crate::ids;

/// Names of processes that host, and of those that look, begin so.
const HOST: &str = "host:";
const LOOKER: &str = "look:";

/// A look that somebody else takes at the same run lasts no longer, or it is one of a process that is gone.
const OTHERS_LOOK: Duration = Duration::from_secs(2);
/// How often it is looked whether it is over.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// How long it is believed who hosts a run, while that process is alive.
const BELIEVED: Duration = Duration::from_secs(1);
/// Most runs for which that is kept.
const MAX_BELIEVED: usize = 4096;

/// Told the runs that this process has lost.
type Lost = Box<dyn Fn(&[RunId]) + Send + Sync>;

/// The runs of a store that several machines share.
#[derive(Debug)]
pub(crate) struct LeasedRuns {
    shared: Arc<Shared>,
}

/// What its tasks know too.
pub(super) struct Shared {
    pub(super) leases: Arc<dyn Leases>,
    pub(super) silence: Duration,
    lost: Lost,
    state: Mutex<State>,
    /// Something is to be given back.
    pub(super) wake: Arc<Notify>,
    /// Held while a sign of life is given.
    pub(super) beating: tokio::sync::Mutex<()>,
    /// Changes when a process was found to be gone, or has left.
    left: watch::Sender<u64>,
}

#[derive(Debug)]
pub(super) struct State {
    /// The name that this process hosts under.
    pub(super) name: String,
    /// Whether anybody else knows it.
    pub(super) known: bool,
    /// What is held, or just being taken or given back, and under which name.
    held: HashMap<RunId, String>,
    pub(super) to_release: Vec<(RunId, String)>,
    pub(super) to_forget: Vec<String>,
    pub(super) watching: Silence,
    /// Who hosts a run, as it was read.
    believed: HashMap<RunId, (String, Instant)>,
    pub(super) kept: bool,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("state", &self.state).finish_non_exhaustive()
    }
}

/// Holds a run's key, for a host.
#[derive(Debug)]
pub(crate) struct LeaseLock {
    shared: Arc<Shared>,
    run: RunId,
    name: String,
    /// What there is to do when it is dropped.
    owes: bool,
}

/// Holds a run's key, for who looks.
#[derive(Debug)]
pub(crate) struct LeaseLook {
    shared: Arc<Shared>,
    name: String,
    owes: bool,
}

impl LeasedRuns {
    pub(crate) fn new(leases: Arc<dyn Leases>, silence: Duration, lost: Lost) -> Self {
        let state = State {
            name: host_name(),
            known: false,
            held: HashMap::new(),
            to_release: Vec::new(),
            to_forget: Vec::new(),
            watching: Silence::new(silence),
            believed: HashMap::new(),
            kept: false,
        };
        let (state, left) = (Mutex::new(state), watch::Sender::new(0));
        let (wake, beating) = (Arc::default(), tokio::sync::Mutex::default());
        Self { shared: Arc::new(Shared { leases, silence, lost, state, wake, beating, left }) }
    }

    /// As [`super::Living::lock`].
    pub(crate) async fn lock(&self, run: &RunId) -> Result<Held, StoreError> {
        keeper::start(&self.shared);
        loop {
            let Some(lock) = LeaseLock::begin(&self.shared, run) else { return Ok(Held::ByHost) };
            let leases = &self.shared.leases;
            if leases.take(key(run), lock.name.clone()).await? {
                if !lock.is_lost() {
                    return Ok(Held::Free(Lock::Lease(lock)));
                }
                // Meanwhile this process was taken for gone, so that this is worth nothing.
                lock.took_nothing();
                continue;
            }
            let name = lock.name.clone();
            lock.took_nothing();
            if !leases.beat(name.clone()).await? {
                self.shared.revoked(&name);
                continue;
            }
            return Ok(match leases.holder(key(run)).await? {
                Some(holder) if !is_looker(&holder) => Held::ByHost,
                _ => Held::ByLookers,
            });
        }
    }

    /// As [`super::Living::look`].
    pub(crate) async fn look(&self, run: &RunId) -> Result<Option<LeaseLook>, StoreError> {
        keeper::start(&self.shared);
        if self.shared.is_known_to_be_hosted(run) {
            return Ok(None);
        }
        let deadline = Instant::now() + OTHERS_LOOK;
        loop {
            let holder = self.shared.leases.holder(key(run)).await?;
            if let Some(holder) = holder.filter(|holder| !is_looker(holder))
                && self.shared.believe(run, holder)
            {
                return Ok(None);
            }
            let look = LeaseLook::begin(&self.shared);
            if self.shared.leases.take(key(run), look.name.clone()).await? {
                return Ok(Some(look));
            }
            look.done().await;
            let holder = self.shared.leases.holder(key(run)).await?;
            if holder.as_deref().is_some_and(|holder| !is_looker(holder)) || Instant::now() > deadline {
                return Ok(None);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// As [`super::Living::departures`].
    pub(crate) fn departures(&self) -> watch::Receiver<u64> {
        keeper::start(&self.shared);
        self.shared.left.subscribe()
    }

    /// As [`super::Living::peers`].
    pub(crate) fn peers(&self) -> usize {
        let state = self.shared.state();
        state.watching.known().filter(|name| !is_looker(name) && *name != state.name).count()
    }

    /// As [`super::Living::leave`].
    pub(crate) async fn leave(&self) {
        keeper::leave(&self.shared).await;
    }
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // Whole at any time, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Others have taken this process for gone, under this name: what it hosts is not its own any more.
    pub(super) fn revoked(&self, name: &str) {
        let lost: Vec<RunId> = {
            let mut state = self.state();
            if state.name != name {
                return;
            }
            state.name = host_name();
            state.known = false;
            let held = state.held.iter().filter(|(_, by)| *by == name);
            held.map(|(run, _)| run.clone()).collect()
        };
        tracing::error!(
            runs = lost.len(),
            "this process gave no sign of life for too long, and others have taken it for gone: the runs that it hosted are ended here, and interrupted"
        );
        (self.lost)(&lost);
    }

    /// A process was found to be gone, or has left.
    pub(super) fn tell_who_left(&self, names: &[String]) {
        if names.iter().any(|name| !is_looker(name)) {
            self.left.send_modify(|times| *times += 1);
        }
    }

    /// What was given back is gone from the store.
    pub(super) fn released(&self, run: &RunId, name: &str) {
        let mut state = self.state();
        if state.held.get(run).is_some_and(|by| by == name) {
            state.held.remove(run);
        }
    }

    /// Whether there is no need to ask who hosts a run.
    fn is_known_to_be_hosted(&self, run: &RunId) -> bool {
        let now = Instant::now();
        let mut state = self.state();
        if state.held.contains_key(run) {
            return true;
        }
        let Some((holder, read)) = state.believed.get(run) else { return false };
        let still = now.saturating_duration_since(*read) < BELIEVED && state.watching.is_alive(holder, now);
        if !still {
            state.believed.remove(run);
        }
        still
    }

    /// Keeps who hosts a run, when that process is known to be alive.
    fn believe(&self, run: &RunId, holder: String) -> bool {
        let now = Instant::now();
        let mut state = self.state();
        let alive = state.watching.is_alive(&holder, now);
        if alive {
            if state.believed.len() >= MAX_BELIEVED {
                state.believed.retain(|_, (_, read)| now.saturating_duration_since(*read) < BELIEVED);
            }
            state.believed.insert(run.clone(), (holder, now));
        }
        alive
    }
}

impl LeaseLock {
    /// Makes ready to take a key, so that it is given back however that ends; `None` when it is in use here.
    fn begin(shared: &Arc<Shared>, run: &RunId) -> Option<Self> {
        let mut state = shared.state();
        if state.held.contains_key(run) {
            return None;
        }
        let name = state.name.clone();
        state.held.insert(run.clone(), name.clone());
        state.known = true;
        Some(Self { shared: Arc::clone(shared), run: run.clone(), name, owes: true })
    }

    /// Others have taken this process for gone since.
    pub(crate) fn is_lost(&self) -> bool {
        self.shared.state().name != self.name
    }

    fn took_nothing(mut self) {
        self.owes = false;
        self.shared.released(&self.run, &self.name);
    }

    pub(crate) async fn release(mut self) {
        let released = self.shared.leases.release(key(&self.run), self.name.clone());
        if let Ok(Ok(())) = tokio::time::timeout(self.shared.silence, released).await {
            self.owes = false;
            self.shared.released(&self.run, &self.name);
        }
    }
}

impl Drop for LeaseLock {
    fn drop(&mut self) {
        if self.owes {
            self.shared.state().to_release.push((self.run.clone(), self.name.clone()));
            self.shared.wake.notify_one();
        }
    }
}

impl LeaseLook {
    fn begin(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), name: format!("{LOOKER}{}", ids::unique()), owes: true }
    }

    pub(crate) async fn done(mut self) {
        let left = self.shared.leases.leave(self.name.clone());
        if let Ok(Ok(())) = tokio::time::timeout(self.shared.silence, left).await {
            self.owes = false;
        }
    }
}

impl Drop for LeaseLook {
    fn drop(&mut self) {
        if self.owes {
            self.shared.state().to_forget.push(self.name.clone());
            self.shared.wake.notify_one();
        }
    }
}

/// The key of a run.
pub(super) fn key(run: &RunId) -> String {
    format!("run:{run}")
}

fn host_name() -> String {
    format!("{HOST}{}", ids::unique())
}

fn is_looker(name: &str) -> bool {
    name.starts_with(LOOKER)
}
