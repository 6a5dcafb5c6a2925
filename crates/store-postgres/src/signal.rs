//! Tells other processes of appends, and hears of theirs.
//!
//! A notification is sent after the commit, by a connection of its own. In the transaction of an append it would take a
//! lock of the whole database until the commit is on disk, and so make all commits of all processes wait for each
//! other. A notification that gets lost is only a delay: every [`POLL_EVERY`] a look at what is visible finds the rest.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, mpsc, watch},
    time::{Instant, sleep, sleep_until},
};
use tokio_postgres::Notification;
use tracing::{debug, warn};

use crate::{conn::Conn, fault::Fault, target::Target};

/// Least time between two notifications of one store; what is appended in between is told by the next one. The first
/// after a pause is sent at once.
pub const NOTIFY_EVERY: Duration = Duration::from_millis(20);

/// Time between two looks for appends that no notification told of: the delay that a lost one costs.
pub const POLL_EVERY: Duration = Duration::from_secs(1);

/// Longest pause between two attempts to hear of changes again after the connection was lost; the first is a tenth.
/// Once it is there, [`taffrail_relay::Store::changes`] grows, for what was missed.
pub const RECONNECT_EVERY: Duration = Duration::from_secs(1);

/// Equal for two moments between which no transaction became visible.
const SNAPSHOT: &str = "SELECT pg_current_snapshot()::text";

const NOTIFY: &str = "SELECT pg_notify($1, '')";

/// What the other tasks and the store share with the one that signals.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    version: watch::Sender<u64>,
    /// There is something to tell.
    pending: AtomicBool,
    wake: Notify,
    closing: AtomicBool,
}

impl Signal {
    /// Something was appended here.
    pub(crate) fn appended(&self) {
        self.pending.store(true, Relaxed);
        self.wake.notify_one();
    }

    /// A receiver of the number of changes. The first one sees it grow, for what was appended before anybody watched.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        let first = self.version.receiver_count() == 0;
        let receiver = self.version.subscribe();
        if first {
            self.changed();
        }
        receiver
    }

    /// Ends the task, after it has told what there is to tell.
    pub(crate) fn close(&self) {
        self.closing.store(true, Relaxed);
        self.wake.notify_one();
    }

    fn changed(&self) {
        self.version.send_modify(|version| *version = version.wrapping_add(1));
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Relaxed)
    }

    /// Works until closed. Trouble is told once in a row, not at each attempt.
    pub(crate) async fn run(self: Arc<Self>, target: Arc<Target>) {
        let mut pause = RECONNECT_EVERY / 10;
        let mut known = false;
        while !self.is_closing() {
            let began = Instant::now();
            let Err(fault) = self.listen(&target).await else { return };
            if began.elapsed() > RECONNECT_EVERY {
                (pause, known) = (RECONNECT_EVERY / 10, false);
            }
            if known {
                debug!(%fault, "still no connection for changes");
            } else {
                warn!(%fault, database = %target.place, "the connection for changes by other processes was lost; trying again");
            }
            known = true;
            tokio::select! {
                () = sleep(pause) => {}
                () = self.closed() => return,
            }
            pause = (pause * 2).min(RECONNECT_EVERY);
        }
    }

    async fn closed(&self) {
        while !self.is_closing() {
            self.wake.notified().await;
        }
    }

    /// Signals over one connection until it breaks or the store is closed.
    async fn listen(&self, target: &Arc<Target>) -> Result<(), Fault> {
        let (sender, mut heard) = mpsc::unbounded_channel::<Notification>();
        let mut conn = Conn::open(target, Some(sender)).await?;
        // Nobody waits for the disk because of a notification, which is not on it.
        conn.batch(&format!("SET synchronous_commit = off; LISTEN {}", target.quoted)).await?;
        self.changed();
        let mut seen = self.look(&mut conn).await?;
        let mut next_look = Instant::now() + target.config.poll;
        let mut next_word = Instant::now();
        loop {
            if self.pending.load(Relaxed) && (Instant::now() >= next_word || self.is_closing()) {
                // Before the statement: an append that comes while it runs needs another one.
                self.pending.store(false, Relaxed);
                if let Err(fault) = conn.query(NOTIFY, &[&target.schema]).await {
                    self.pending.store(true, Relaxed);
                    return Err(fault);
                }
                next_word = Instant::now() + NOTIFY_EVERY;
                continue;
            }
            if self.is_closing() {
                return Ok(());
            }
            let due = if self.pending.load(Relaxed) { next_word.min(next_look) } else { next_look };
            tokio::select! {
                biased;
                () = self.wake.notified() => {}
                notification = heard.recv() => match notification {
                    // Our own are for the others.
                    Some(notification) if notification.process_id() == conn.process_id => {}
                    Some(_) => self.changed(),
                    None => return Err(Fault::Closed),
                },
                () = sleep_until(due) => {}
            }
            if Instant::now() >= next_look {
                // Also finds out whether the connection still works.
                let now = self.look(&mut conn).await?;
                if now != seen {
                    self.changed();
                }
                seen = now;
                next_look = Instant::now() + target.config.poll;
            }
        }
    }

    /// What is visible now.
    async fn look(&self, conn: &mut Conn) -> Result<String, Fault> {
        let rows = conn.query(SNAPSHOT, &[]).await?;
        let row = rows.first().ok_or_else(|| Fault::Damaged("the server tells no snapshot".into()))?;
        Ok(row.try_get(0)?)
    }
}
