//! Which runs are hosted by a living process: one locked file a run.
//!
//! A lock of the kernel ends with its process, however that ends, so there is no heartbeat and no time to wait for.
//! The file is locked before the run's record says `running`, and removed after one says otherwise: who finds a run
//! `running` and its file free has found a run without a host.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};
use taffrail_mcp_core::RunId;

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

impl LiveRuns {
    /// Opens the folder, making it when it is not there.
    pub(crate) fn open(folder: PathBuf) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        Ok(Self { folder })
    }

    /// Locks a run; `None` when another process, or another part of this one, hosts it.
    pub(crate) fn lock(&self, run: &RunId) -> io::Result<Option<LiveLock>> {
        let path = self.folder.join(format!("{run}.lock"));
        loop {
            let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if is_at(&file, &path)? => return Ok(Some(LiveLock { path, _file: file })),
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
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

    #[test]
    fn a_run_has_one_host_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let live = LiveRuns::open(dir.path().join("live")).unwrap();
        let run = RunId::new("r").unwrap();
        let lock = live.lock(&run).unwrap().unwrap();
        assert!(live.lock(&run).unwrap().is_none());
        drop(lock);
        assert_eq!(fs::read_dir(dir.path().join("live")).unwrap().count(), 0);
        assert!(live.lock(&run).unwrap().is_some());
    }
}
