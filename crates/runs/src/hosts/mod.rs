//! Which runs are hosted by a living process, wherever that is.

mod files;
mod keeper;
mod leases;
mod silence;

use std::{fmt, io, path::PathBuf, sync::Arc, time::Duration};

use taffrail_mcp_core::RunId;
use taffrail_relay::{Leases, StoreError};
use tokio::sync::watch;

pub(crate) use leases::LeasedRuns;

use crate::{Config, RunsError};

/// How processes that share a store learn which of them are alive.
#[derive(Clone)]
pub enum Hosts {
    /// By locks of the kernel in this folder, made when it is not there: for processes of one machine. A process that is
    /// gone is known to be at once. All who share a store must have the same folder, or each takes the others' runs for
    /// lost.
    Files(PathBuf),
    /// By signs of life in the store: for processes on any machines. One that gives none for [`Config::host_silence`]
    /// is taken for gone, and its runs are `interrupted`; should it come back, it ends what it still runs and writes
    /// nothing more about that.
    Leases(Arc<dyn Leases>),
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Hosts::Files(_) => "Files",
            Hosts::Leases(_) => "Leases",
        })
    }
}

/// The same, opened.
#[derive(Debug)]
pub(crate) enum Living {
    Files(files::LiveRuns),
    Leases(LeasedRuns),
}

/// What came of locking a run.
#[derive(Debug)]
pub(crate) enum Held {
    /// It is ours.
    Free(Lock),
    /// Another process, or another part of this one, hosts it.
    ByHost,
    /// Somebody just looks whether it has a host.
    ByLookers,
}

/// Says that the run has a host; ends when dropped.
#[derive(Debug)]
pub(crate) enum Lock {
    File(files::LiveLock),
    Lease(leases::LeaseLock),
}

/// Says that the run has no host, and gets none before this is dropped.
#[derive(Debug)]
pub(crate) enum Look {
    File(files::Look),
    Lease(leases::LeaseLook),
}

/// Why it cannot be said who hosts a run.
#[derive(Debug)]
pub(crate) enum HostsError {
    /// In this folder.
    Io(PathBuf, io::Error),
    Store(StoreError),
}

impl From<StoreError> for HostsError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Living {
    /// Opens them. `lost` is told the runs that this process has hosted and that are not its own any more.
    pub(crate) fn open(config: &Config, lost: impl Fn(&[RunId]) + Send + Sync + 'static) -> Result<Self, RunsError> {
        match &config.hosts {
            Hosts::Leases(leases) => {
                Ok(Self::Leases(LeasedRuns::new(Arc::clone(leases), config.host_silence, Box::new(lost))))
            }
            Hosts::Files(folder) => {
                let opened = files::LiveRuns::open(folder.clone());
                let opened = opened.map_err(|source| RunsError::Folder {
                    action: "use the folder",
                    path: folder.clone(),
                    source: Arc::new(source),
                })?;
                Ok(Self::Files(opened))
            }
        }
    }

    /// Locks a run, to host it.
    pub(crate) async fn lock(&self, run: &RunId) -> Result<Held, HostsError> {
        match self {
            Self::Files(files) => files.lock(run).map_err(|error| files.failed(error)),
            Self::Leases(leases) => Ok(leases.lock(run).await?),
        }
    }

    /// Makes sure that a run has no host; `None` when it has one.
    pub(crate) async fn look(&self, run: &RunId) -> Result<Option<Look>, HostsError> {
        match self {
            Self::Files(files) => Ok(files.look(run).map_err(|error| files.failed(error))?.map(Look::File)),
            Self::Leases(leases) => Ok(leases.look(run).await?.map(Look::Lease)),
        }
    }

    /// Changes when a process was found to be gone, or has left. Kernel locks do not tell.
    pub(crate) fn departures(&self) -> Option<watch::Receiver<u64>> {
        match self {
            Self::Files(_) => None,
            Self::Leases(leases) => Some(leases.departures()),
        }
    }

    /// Other processes that host and are known to be alive.
    pub(crate) fn peers(&self) -> usize {
        match self {
            Self::Files(_) => 0,
            Self::Leases(leases) => leases.peers(),
        }
    }

    /// How long who just looks takes for that, about.
    pub(crate) const fn look_time(&self) -> Duration {
        match self {
            Self::Files(_) => Duration::from_millis(1),
            Self::Leases(_) => Duration::from_millis(5),
        }
    }

    /// Tells the others that this process ends in good order.
    pub(crate) async fn leave(&self) {
        if let Self::Leases(leases) = self {
            leases.leave().await;
        }
    }
}

impl Lock {
    /// Gives it up, done on return where that can be.
    pub(crate) async fn release(self) {
        match self {
            Lock::File(lock) => drop(lock),
            Lock::Lease(lock) => lock.release().await,
        }
    }

    /// Whether the others take this process for gone.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self, Lock::Lease(lock) if lock.is_lost())
    }
}

impl Look {
    /// Ends it, done on return where that can be.
    pub(crate) async fn done(self) {
        match self {
            Look::File(look) => drop(look),
            Look::Lease(look) => look.done().await,
        }
    }
}
