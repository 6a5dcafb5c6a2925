//! Which runs are hosted by a living process: one locked file a run.
//!
//! A lock of the kernel ends with its process, however that ends, so there is no heartbeat and no time to wait for.
//! The file is locked before the run's record says `running`, and removed after one says otherwise: who finds a run
//! `running` and its file free has found a run without a host. Looking takes a shared lock, so that those who look at
//! the same time do not take each other for hosts.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};
use taffrail_mcp_core::RunId;

use super::{Held, HostsError, Lock};

/// The folder of lock files.
#[derive(Debug, Clone)]
pub(crate) struct LiveRuns {
    folder: PathBuf,
}

/// Says that the run has a host; ends when dropped.
#[derive(Debug)]
pub(crate) struct LiveLock {
    path: PathBuf,
    _file: File,
}

impl Drop for LiveLock {
    fn drop(&mut self) {
        // Removed while it is still locked: whoever opened it before finds out that it is not the file of that name
        // any more, and looks again.
        let _ = fs::remove_file(&self.path);
    }
}

/// Says that the run has no host, and gets none before this is dropped.
#[derive(Debug)]
pub(crate) struct Look {
    path: PathBuf,
    file: File,
}

impl Drop for Look {
    fn drop(&mut self) {
        // The last one who looks removes the file, under the same rule.
        let alone = flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if alone && is_at(&self.file, &self.path).unwrap_or(false) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl LiveRuns {
    /// Opens the folder, making it when it is not there.
    pub(crate) fn open(folder: PathBuf) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        Ok(Self { folder })
    }

    pub(crate) fn failed(&self, error: io::Error) -> HostsError {
        HostsError::Io(self.folder.clone(), error)
    }

    /// Locks a run, to host it.
    pub(crate) fn lock(&self, run: &RunId) -> io::Result<Held> {
        let path = self.path(run);
        loop {
            let file = open(&path)?;
            if try_lock(&file, FlockOperation::NonBlockingLockExclusive)? {
                if is_at(&file, &path)? {
                    return Ok(Held::Free(Lock::File(LiveLock { path, _file: file })));
                }
            } else if !try_lock(&file, FlockOperation::NonBlockingLockShared)? {
                return Ok(Held::ByHost);
            } else if is_at(&file, &path)? {
                return Ok(Held::ByLookers);
            }
        }
    }

    /// Makes sure that a run has no host; `None` when it has one.
    pub(crate) fn look(&self, run: &RunId) -> io::Result<Option<Look>> {
        let path = self.path(run);
        loop {
            let file = open(&path)?;
            if !try_lock(&file, FlockOperation::NonBlockingLockShared)? {
                return Ok(None);
            }
            if is_at(&file, &path)? {
                return Ok(Some(Look { path, file }));
            }
        }
    }

    fn path(&self, run: &RunId) -> PathBuf {
        self.folder.join(format!("{run}.lock"))
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn try_lock(file: &File, how: FlockOperation) -> io::Result<bool> {
    match flock(file, how) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether the open file is the one that has this name now.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let opened = file.metadata()?;
    match fs::metadata(path) {
        Ok(named) => Ok((opened.dev(), opened.ino()) == (named.dev(), named.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(held: Held) -> LiveLock {
        let Held::Free(Lock::File(lock)) = held else { panic!("{held:?}") };
        lock
    }

    #[test]
    fn a_run_has_one_host_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let live = LiveRuns::open(dir.path().join("live")).unwrap();
        let run = RunId::new("r").unwrap();
        let lock = free(live.lock(&run).unwrap());
        assert!(matches!(live.lock(&run).unwrap(), Held::ByHost));
        assert!(live.look(&run).unwrap().is_none());
        drop(lock);
        assert_eq!(fs::read_dir(dir.path().join("live")).unwrap().count(), 0);
        free(live.lock(&run).unwrap());
    }

    #[test]
    fn who_looks_is_no_host() {
        let dir = tempfile::tempdir().unwrap();
        let live = LiveRuns::open(dir.path().join("live")).unwrap();
        let run = RunId::new("r").unwrap();
        let [one, two] = [0, 1].map(|_| live.look(&run).unwrap().unwrap());
        assert!(matches!(live.lock(&run).unwrap(), Held::ByLookers));
        drop(one);
        assert!(matches!(live.lock(&run).unwrap(), Held::ByLookers));
        drop(two);
        assert_eq!(fs::read_dir(dir.path().join("live")).unwrap().count(), 0);
        free(live.lock(&run).unwrap());
    }
}
