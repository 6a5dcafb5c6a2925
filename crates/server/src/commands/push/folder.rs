//! The folder of one run that is sent, and who has it.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result};
use rustix::fs::{FlockOperation, flock};
use taffrail_relay::Relay;
use taffrail_runs::{Config, Layout, Service};
use taffrail_store_sqlite::SqliteStore;

use super::format::{Job, replace};

/// A folder that is being made or removed for longer was left so by a kill.
const STALE: Duration = Duration::from_secs(24 * 3600);

/// A run's folder, locked by this process: a kernel's lock, which ends with the process.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    _lock: File,
}

/// Where the folders are.
fn all(layout: &Layout) -> PathBuf {
    layout.root().join("push")
}

impl Folder {
    /// Makes the folder of a new run. It has its name, and so can be found, only when it is locked.
    pub(super) fn make(layout: &Layout, job: &Job) -> Result<Self> {
        let path = all(layout).join(job.run.as_str());
        let fresh = all(layout).join(format!(".new-{}", job.run));
        let made = || -> Result<File> {
            DirBuilder::new().recursive(true).mode(0o700).create(&fresh)?;
            let lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(fresh.join("lock"))?;
            flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
            job.write(&fresh.join("job.json"))?;
            fs::rename(&fresh, &path)?;
            Ok(lock)
        };
        let lock = made().with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self { path, _lock: lock })
    }

    /// Takes a folder that another process left; `None` when its process lives, or somebody else took it.
    pub(super) fn take(path: PathBuf) -> Result<Option<(Self, Job)>> {
        let Ok(lock) = OpenOptions::new().write(true).open(path.join("lock")) else { return Ok(None) };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        // Whoever had it has sent everything meanwhile.
        if !path.join("job.json").exists() {
            return Ok(None);
        }
        let job = Job::read(&path.join("job.json"))?;
        Ok(Some((Self { path, _lock: lock }, job)))
    }

    /// The folders that are there, oldest first. Sweeps up what was being made or removed when a process was killed.
    pub(super) fn list(layout: &Layout) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        for entry in fs::read_dir(all(layout)).into_iter().flatten().flatten() {
            let path = entry.path();
            if !entry.file_name().to_string_lossy().starts_with('.') {
                folders.push(path);
                continue;
            }
            let age = entry.metadata().and_then(|data| data.modified()).ok().and_then(|time| time.elapsed().ok());
            if age.is_some_and(|age| age > STALE) {
                let _ = fs::remove_dir_all(&path);
            }
        }
        // Ids of runs sort by time.
        folders.sort();
        folders
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the run's own log, and the service that hosts it.
    pub(super) fn open(&self) -> Result<Service> {
        let layout = Layout::new(&self.path);
        let store = Arc::new(SqliteStore::open(layout.store(), Default::default())?);
        let relay = Relay::start(store, Default::default())?;
        let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        let config = Config { spool: false, ..Config::new(layout, PathBuf::new(), cwd) };
        Ok(Service::open(relay, config)?)
    }

    /// Notes a change of the job.
    pub(super) fn save(&self, job: &Job) {
        if let Err(error) = job.write(&self.path.join("job.json")) {
            // What is lost by that is asked of the server again.
            tracing::warn!("{error:#}");
        }
    }

    /// Up to which number everything has arrived, as far as was noted.
    pub(super) fn acknowledged(&self) -> u64 {
        let text = fs::read_to_string(self.path.join("acknowledged")).unwrap_or_default();
        text.trim().parse().unwrap_or_default()
    }

    /// Notes that. Not synced: what a crash takes back is asked of the server.
    pub(super) fn acknowledge(&self, number: u64) {
        if let Err(error) = replace(&self.path.join("acknowledged"), number.to_string().as_bytes(), false) {
            tracing::debug!(%error, "how far the server has the events could not be noted");
        }
    }

    /// Removes the folder: everything is where it belongs. Its services are closed before.
    pub(super) fn remove(self) {
        // Nobody finds one that is half removed.
        let old = self.path.with_file_name(format!(
            ".old-{}",
            self.path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default()
        ));
        let removed = fs::rename(&self.path, &old).and_then(|()| fs::remove_dir_all(&old));
        if let Err(error) = removed {
            tracing::warn!(path = %self.path.display(), %error, "the folder of a run that was sent cannot be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use taffrail_mcp_core::RunId;

    use super::*;

    #[test]
    fn a_folder_is_left_only_by_a_process_that_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        let run = RunId::new("r").unwrap();
        let job = Job::new("http://h".to_owned(), run.clone(), run.into(), "make".to_owned());
        assert!(Folder::list(&layout).is_empty());
        let folder = Folder::make(&layout, &job).unwrap();
        folder.acknowledge(7);
        let [path] = &Folder::list(&layout)[..] else { panic!() };
        // Locks of one process exclude each other, too.
        assert!(Folder::take(path.clone()).unwrap().is_none());
        drop(folder);
        let (folder, left) = Folder::take(path.clone()).unwrap().unwrap();
        assert_eq!((left, folder.acknowledged()), (job.clone(), 7));
        assert!(Folder::take(path.clone()).unwrap().is_none());
        folder.remove();
        assert!(Folder::list(&layout).is_empty() && !path.exists());
        assert!(Folder::take(path.clone()).unwrap().is_none());
        assert_eq!(fs::read_dir(dir.path().join("push")).unwrap().count(), 0);
    }
}
