//! Fair turns between processes that write.
//!
//! SQLite's write lock goes to whoever asks at the right moment: a process that commits without pause frees it for
//! microseconds, and one that polls can wait for ever. So who wants the lock first passes a turnstile, an advisory
//! lock on a file of its own, and holds it until it has the write lock. The one that committed last then queues behind
//! the one that waits.
//!
//! A writer that lost a numbering race keeps the turnstile for a moment: it was told the head, and its next try comes
//! before anyone else moves that again. Else it could lose to a flood for ever.
//!
//! The turnstile is for fairness only; the write lock protects the data. So nobody waits long for a turnstile: should
//! its holder be stopped, the others go around.

use std::{
    fs::{File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

use taffrail_relay::StoreError;

use crate::fault::io_error;

/// Longest wait for the turnstile. Its holder waits at most for the end of one transaction, a few milliseconds.
const PATIENCE: Duration = Duration::from_millis(100);
/// Pause between two tries. A commit takes at least as long.
const PAUSE: Duration = Duration::from_micros(100);

/// The turnstile of one store.
#[derive(Debug)]
pub(crate) struct Turnstile {
    file: File,
    held: bool,
}

impl Turnstile {
    /// Opens the turnstile of the database at `path`, and makes it when it is missing.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let mut name = path.as_os_str().to_owned();
        name.push("-turn");
        let path = PathBuf::from(name);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(|e| io_error(&path, "open", e))?;
        Ok(Self { file, held: false })
    }

    /// Passes; returns at the latest after `PATIENCE`. To be left once the write lock is held.
    pub(crate) fn pass(&mut self) {
        let mut since = None;
        while !self.held {
            match self.file.try_lock() {
                Ok(()) => self.held = true,
                Err(TryLockError::WouldBlock) => {
                    if since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                        return;
                    }
                    sleep(PAUSE);
                }
                // A file system without such locks: correct all the same.
                Err(TryLockError::Error(_)) => return,
            }
        }
    }

    /// Lets the next one pass.
    pub(crate) fn leave(&mut self) {
        if std::mem::take(&mut self.held) {
            // Cannot fail for a lock that is held; if it did, the others would go around.
            let _ = self.file.unlock();
        }
    }
}
