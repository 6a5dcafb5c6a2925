//! Hosting: a run goes on in a task of this process until it rests.

use std::{sync::Arc, time::Duration};

use taffrail_engine::{Run, process::Cancel};
use taffrail_mcp_core::{RunFold, RunId, Start, ThreadId, Timestamp};
use taffrail_spool::RelaySource;
use tokio::sync::watch;

use crate::{RunsError, Service, door::Door, hosted::Hosted, hosts::Lock};

/// Requests from other processes are looked for at most this often. A run that says much wakes who looks all the time.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// When that fails, they are looked for again after this time.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl Service {
    /// The two ways to end a run from outside, with the configured grace.
    pub(crate) fn cancels(&self) -> (Cancel, Cancel) {
        let cancel = || Cancel::new().with_grace(self.inner.config.grace);
        (cancel(), cancel())
    }

    /// Starts the task of a run whose first events are stored, since `started`. The task owns everything; nobody has to wait for it.
    pub(crate) async fn host(
        &self,
        run: Run,
        door: Arc<Door>,
        (cancel, shutdown): (Cancel, Cancel),
        lock: Lock,
        started: Timestamp,
    ) -> Result<(), RunsError> {
        door.fence(started);
        let id = door.publisher().run().clone();
        let (alive, over) = watch::channel(());
        let hosted = Hosted { cancel: cancel.clone(), shutdown: shutdown.clone(), door: Arc::clone(&door), over };
        if !self.inner.hosted.add(id.clone(), hosted.clone()) {
            // Driven all the same, with the shutdown made: it writes its own end and is resumable.
            shutdown.cancel();
        }
        if lock.is_lost() {
            // Before it was added, when nobody could find it here.
            hosted.lose();
        }
        self.attach_spool(door.publisher().thread(), &id).await;
        let service = self.clone();
        tokio::spawn(async move {
            let thread = door.publisher().thread().clone();
            let watcher = tokio::spawn(service.clone().obey(id.clone(), thread, cancel));
            run.drive().await;
            watcher.abort();
            if let Err(error) = door.publisher().flush().await {
                tracing::error!(run = %id, %error, "the end of the run could not be stored");
            }
            lock.release().await;
            service.inner.hosted.remove(&id);
            drop(alive);
        });
        Ok(())
    }

    async fn attach_spool(&self, thread: &ThreadId, run: &RunId) {
        if !self.inner.config.spool {
            return;
        }
        let source = RelaySource::new(self.inner.relay.clone(), thread.clone(), run.clone());
        if let Err(error) = self.inner.spools.attach(run, source).await {
            // An optimisation for those who share the disk: the log has everything.
            tracing::warn!(%run, %error, "no spool file");
            self.inner.hosted.note(run, taffrail_mcp_core::Note::warning(format!("spool-unavailable: {error}")));
        }
    }

    /// Carries out cancel requests that other processes have put into the run's log.
    async fn obey(self, run: RunId, thread: ThreadId, cancel: Cancel) {
        // Woken by its own thread only: what happens to other runs costs nothing here.
        let mut follower = loop {
            match self.inner.relay.follow(&thread, None, Start::Live).await {
                Ok(follower) => break follower,
                Err(error) => tracing::warn!(%run, %error, "cannot look for cancel requests"),
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        };
        loop {
            match self.inner.relay.run(&run).await {
                Ok(Some(RunFold { cancel: Some(request), .. })) => {
                    if request.kill {
                        cancel.kill();
                        return;
                    }
                    cancel.cancel();
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%run, %error, "cannot look for cancel requests");
                    // What was not seen now may be the last change for a long time.
                    tokio::time::sleep(LOOK_AGAIN).await;
                    continue;
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
            if follower.wait().await.is_err() {
                return;
            }
        }
    }

    /// Gives a hosted run's log and file the time to be complete.
    ///
    /// For a command that exits after its run: waits until the run is over here and its spool has everything, at most
    /// `within` for the latter.
    pub async fn finish(&self, run: &RunId, within: Duration) {
        if let Some(mut hosted) = self.inner.hosted.get(run) {
            while hosted.over.changed().await.is_ok() {}
        }
        if let Ok(Some(fold)) = self.inner.relay.run(run).await
            && self.inner.config.spool
        {
            self.inner.spools.drain(run, fold.last, within).await;
        }
    }
}
