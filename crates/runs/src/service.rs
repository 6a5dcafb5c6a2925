//! The service itself: what it is made of, and how it is opened and closed.

use std::{future, sync::Arc, time::Duration};

use taffrail_engine::{Engine, playbook::Library, process};
use taffrail_mcp_core::{Level, Note, RunFold, RunId, Snapshot};
use taffrail_relay::{ListRuns, Relay};
use taffrail_spool::{Spools, What};

use crate::{Config, RunsError, clock, hosted::HostedRuns, hosts::Living, ingest::Ingests, next, retain, waits::Waits};

/// How long a store that fails is waited for at the end.
const STORE_TIME: Duration = Duration::from_secs(5);

/// Runs, on one store and one data directory. A clone is the same service.
#[derive(Debug, Clone)]
pub struct Service {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) relay: Relay,
    pub(crate) config: Config,
    pub(crate) library: Library,
    pub(crate) engine: Engine,
    pub(crate) living: Living,
    pub(crate) hosted: HostedRuns,
    pub(crate) ingests: Ingests,
    pub(crate) waits: Waits,
    pub(crate) removed: retain::Counts,
    pub(crate) spools: Spools,
}

impl Service {
    /// Opens a service. Needs a tokio runtime for everything but this.
    ///
    /// # Errors
    ///
    /// [`RunsError::Folder`] when the data directory cannot be used.
    pub fn open(relay: Relay, config: Config) -> Result<Self, RunsError> {
        let hosted = HostedRuns::default();
        let lost = hosted.clone();
        let living = Living::open(&config, move |runs| lost.lose(runs))?;
        let noted = hosted.clone();
        let spools = Spools::new(config.layout.spool(), config.spool_limits).on_notice(move |notice| {
            let level = if matches!(notice.what, What::Paused { .. }) { Level::Warning } else { Level::Info };
            noted.note(&notice.run, Note { text: notice.to_string().into(), level });
        });
        let library = Library::new(&config.playbooks);
        let engine = Engine::new(library.clone());
        let (ingests, waits, removed) = Default::default();
        Ok(Self {
            inner: Arc::new(Inner { relay, config, library, engine, living, hosted, ingests, waits, removed, spools }),
        })
    }

    /// The relay below.
    pub fn relay(&self) -> &Relay {
        &self.inner.relay
    }

    /// The spool files.
    pub fn spools(&self) -> &Spools {
        &self.inner.spools
    }

    /// How it was configured.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// A run's state now. A run whose host is gone is made `interrupted` first.
    ///
    /// # Errors
    ///
    /// [`RunsError::NoRun`], and when the store cannot be read.
    pub async fn fold(&self, run: &RunId) -> Result<RunFold, RunsError> {
        let fold = self.read(run).await?;
        self.settled(fold).await
    }

    /// A run's state as it is stored.
    pub(crate) async fn read(&self, run: &RunId) -> Result<RunFold, RunsError> {
        self.inner.relay.run(run).await?.ok_or_else(|| RunsError::NoRun { run: run.to_string() })
    }

    /// A run's snapshot now.
    ///
    /// # Errors
    ///
    /// As [`Service::fold`].
    pub async fn snapshot(&self, run: &RunId) -> Result<Snapshot, RunsError> {
        let fold = self.fold(run).await?;
        self.snapshot_of(&fold).await
    }

    /// The snapshot of a fold.
    pub(crate) async fn snapshot_of(&self, fold: &RunFold) -> Result<Snapshot, RunsError> {
        let head = self.inner.relay.extent(&fold.thread).await?.head;
        // Whoever waits for what comes after `head` has seen all up to it: a record that came since the fold was read
        // belongs into the snapshot.
        let again = if head > fold.last { Some(self.read(&fold.run).await?) } else { None };
        let fold = again.as_ref().unwrap_or(fold);
        let mut snapshot = fold.snapshot(head.max(fold.last), clock::now());
        let spool = self.inner.spools.path(&fold.run);
        if self.inner.spools.is_attached(&fold.run) || spool.exists() {
            snapshot.spool = Some(spool.display().to_string());
        }
        snapshot.next = next::step(&snapshot, fold);
        Ok(snapshot)
    }

    /// Runs, newest first. Those whose host is gone are made `interrupted` first.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn runs(&self, query: ListRuns) -> Result<Vec<Snapshot>, RunsError> {
        let mut snapshots = Vec::new();
        for fold in self.inner.relay.runs(query).await? {
            let fold = self.settled(fold).await?;
            snapshots.push(self.snapshot_of(&fold).await?);
        }
        Ok(snapshots)
    }

    /// Ends the service: interrupts the runs it hosts, waits until their processes are gone and everything is stored.
    ///
    /// Takes at most the grace of the processes and, while the store fails, 5 s more: a full disk does not keep a process
    /// from ending. What could not be stored then is lost, and whoever looks finds the runs `interrupted`.
    pub async fn close(&self) {
        let hosted = self.inner.hosted.close();
        for run in &hosted {
            run.shutdown.cancel();
        }
        let ended = async {
            for mut run in hosted {
                // Resolves with an error when the sender is gone, which is what is waited for.
                while run.over.changed().await.is_ok() {}
            }
            self.inner.living.leave().await;
            self.inner.relay.close().await;
        };
        tokio::select! {
            () = ended => {}
            () = self.store_given_up(self.patience()) => {
                tracing::error!("the store still fails: the last events of the runs hosted here are not stored");
            }
        }
        let _ = tokio::task::spawn_blocking(process::dismiss_guard).await;
    }

    /// Resolves when this time is over and the store fails: waiting for it any longer would be in vain. For who was told
    /// to end.
    pub async fn store_given_up(&self, patience: Duration) {
        tokio::time::sleep(patience).await;
        // An error of `wait_for` is the end of the relay, after which nothing is stored either.
        let _ = self.inner.relay.health().wait_for(Option::is_some).await;
    }

    /// How long processes have to end, and the store after them.
    pub fn patience(&self) -> Duration {
        self.inner.config.grace + STORE_TIME
    }

    /// The same with less patience: processes that have not ended after `grace` are killed.
    pub async fn close_within(&self, grace: Duration) {
        let hosted = self.inner.hosted.close();
        let impatient = async {
            tokio::time::sleep(grace).await;
            for run in &hosted {
                run.shutdown.kill();
            }
            future::pending::<()>().await;
        };
        tokio::select! {
            () = self.close() => {}
            () = impatient => {}
        }
    }
}
