//! Notices what other processes append.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{Builder, JoinHandle},
    time::Duration,
};

use rusqlite::Connection;
use taffrail_relay::StoreError;
use tokio::sync::watch;
use tracing::warn;

use crate::db::{Db, Role};

/// Time between two looks: a change is noticed within the 50 ms of the contract, also on a busy machine. A look takes
/// about 3 µs.
const INTERVAL: Duration = Duration::from_millis(20);

/// The number that changes, and the thread that changes it, which runs only while somebody listens.
#[derive(Debug)]
pub(crate) struct Changes {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    db: Arc<Db>,
    version: watch::Sender<u64>,
    state: Mutex<State>,
    closed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    running: bool,
    closed: bool,
}

impl Changes {
    pub(crate) fn new(db: Arc<Db>) -> Self {
        let shared = Shared { db, version: watch::Sender::new(0), state: Mutex::default(), closed: Condvar::new() };
        Self { shared: Arc::new(shared), thread: Mutex::default() }
    }

    /// A receiver; the thread looks for changes until the last one is dropped.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        let receiver = self.shared.version.subscribe();
        let mut state = self.shared.state();
        if !state.running && !state.closed {
            let shared = Arc::clone(&self.shared);
            match Builder::new().name("sqlite-changes".into()).spawn(move || shared.run()) {
                Ok(thread) => {
                    state.running = true;
                    *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
                }
                Err(error) => warn!(%error, "no thread for noticing what other processes append"),
            }
        }
        receiver
    }

    /// Ends the thread.
    pub(crate) fn close(&self) {
        self.shared.state().closed = true;
        self.shared.closed.notify_all();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let (mut watched, mut failing) = (None, false);
        loop {
            let looked = self.look(&mut watched);
            // Once, not fifty times a second.
            if let Err(error) = &looked
                && !failing
            {
                warn!(%error, "cannot look for changes by other processes; trying again");
            }
            failing = looked.is_err();
            let state = self.state();
            let timeout = self.closed.wait_timeout_while(state, INTERVAL, |state| !state.closed);
            let (mut state, _) = timeout.unwrap_or_else(PoisonError::into_inner);
            // Decided under the lock that `subscribe` takes, so that a new receiver finds this thread running, or gone.
            if state.closed || self.version.receiver_count() == 0 {
                state.running = false;
                return;
            }
        }
    }

    /// Bumps the number when the database has changed, and when it cannot be known whether it has.
    fn look(&self, watched: &mut Option<(Connection, i64)>) -> Result<(), StoreError> {
        let (conn, before) = match watched.take() {
            Some((conn, version)) => (conn, Some(version)),
            None => (self.db.connect(Role::Reader)?, None),
        };
        let version = conn
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .map_err(|e| self.db.error("read", e))?;
        if before != Some(version) {
            self.version.send_modify(|n| *n = n.wrapping_add(1));
        }
        *watched = Some((conn, version));
        Ok(())
    }
}
