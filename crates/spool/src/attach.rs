//! Spools that are kept up to date in the background.

use std::{
    collections::HashMap,
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use taffrail_mcp_core::{RunId, Seq};
use tokio::{
    sync::{oneshot, watch},
    task::JoinHandle,
    time::{Duration, Instant},
};

use crate::{
    BlockSource, Limits, Notice, SpoolError, Swept,
    door::{self, RealDisk},
    keep, name,
    retry::Retry,
    task::{MakeDisk, Notify, State, Task},
};

/// The spools of one folder.
///
/// Each attached run has a task that pulls blocks from its source and appends them; writing happens on the runtime's
/// blocking threads. Whatever happens to a spool, the run does not notice: a spool that cannot be written pauses, tells
/// so once through the notice function, tries again after 0.25 s to 15 s and goes on from its cursor with no record
/// missing or double. While paused it holds no records.
///
/// A clone is the same spools. Dropping the last one stops the tasks: files stay, with whole lines.
#[derive(Clone)]
pub struct Spools {
    inner: Arc<Inner>,
}

struct Inner {
    folder: PathBuf,
    limits: Limits,
    notify: Notify,
    disk: MakeDisk,
    attached: Mutex<HashMap<RunId, Attached>>,
    tickets: AtomicU64,
}

/// Ends its task when dropped.
struct Attached {
    /// Tells one attachment of a run from the next.
    ticket: u64,
    state: watch::Receiver<State>,
    stop: watch::Sender<()>,
    task: JoinHandle<()>,
}

/// How a wait for a spool ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// The file has every record that was asked for, or the run's last one.
    Complete,
    /// Time was up.
    Incomplete {
        /// Position of the last record that the file has.
        cursor: Seq,
    },
}

impl Spools {
    /// Spools in this folder. Touches no file.
    pub fn new(dir: impl AsRef<Path>, limits: Limits) -> Self {
        Self::with(dir.as_ref(), limits, Arc::new(|_| {}), Arc::new(|| Box::new(RealDisk)))
    }

    /// The same, with a function that is told when a spool pauses, goes on, or comes too late for records. It is called
    /// from async tasks and must return at once. Only before the first attach.
    #[must_use]
    pub fn on_notice(self, notify: impl Fn(Notice) + Send + Sync + 'static) -> Self {
        Self::with(&self.inner.folder, self.inner.limits, Arc::new(notify), Arc::clone(&self.inner.disk))
    }

    pub(crate) fn with(dir: &Path, limits: Limits, notify: Notify, disk: MakeDisk) -> Self {
        // Without a working directory a relative path means nothing; opening it will say so.
        let folder = std::path::absolute(dir).unwrap_or_else(|_| dir.to_path_buf()).components().collect();
        let (attached, tickets) = (Mutex::default(), AtomicU64::new(0));
        Self { inner: Arc::new(Inner { folder, limits, notify, disk, attached, tickets }) }
    }

    /// Where the spool of a run is, or would be: absolute.
    pub fn path(&self, run: &RunId) -> PathBuf {
        self.inner.folder.join(name::segment(run, 0))
    }

    /// Keeps the spool of a run up to date from now on, and gives back its file, which is there.
    ///
    /// The task goes on from what the file has until the source ends, [`Spools::detach`], or the last clone is dropped.
    /// When the run is attached already, the source is dropped and nothing changes. While another process writes the
    /// file, the task stands by, and takes over when that process is gone. Dropping the future changes nothing.
    ///
    /// Must be called in a tokio runtime with time enabled.
    ///
    /// # Errors
    ///
    /// As [`crate::SpoolFile::open`], except for `Busy`. When [`SpoolError::is_transient`], the run is attached all the
    /// same and the file will appear at [`Spools::path`]; otherwise it is not.
    pub async fn attach<S: BlockSource>(&self, run: &RunId, source: S) -> Result<PathBuf, SpoolError> {
        match self.start(run, source) {
            Some(opened) => opened.await.unwrap_or_else(|_| {
                // Stopped before the file was open: by a detach, or because the runtime goes down.
                let source = std::io::ErrorKind::Interrupted.into();
                Err(SpoolError::Io { action: "open", path: self.path(run), source })
            }),
            None => Ok(self.path(run)),
        }
    }

    fn start<S: BlockSource>(&self, run: &RunId, source: S) -> Option<oneshot::Receiver<Result<PathBuf, SpoolError>>> {
        let inner = &self.inner;
        let mut attached = inner.attached();
        // A task whose source panicked has left its entry behind.
        if attached.get(run).is_some_and(|entry| !entry.task.is_finished()) {
            return None;
        }
        let (state_sender, state) = watch::channel(State::default());
        let (stop, stopped) = watch::channel(());
        let (sender, opened) = oneshot::channel();
        let ticket = inner.tickets.fetch_add(1, Ordering::Relaxed);
        let task = Task {
            folder: inner.folder.clone(),
            path: self.path(run),
            run: run.clone(),
            limits: inner.limits,
            source,
            notify: Arc::clone(&inner.notify),
            disk: Arc::clone(&inner.disk),
            state: state_sender,
            stop: stopped,
            retry: Retry::default(),
        };
        let (weak, key) = (Arc::downgrade(inner), run.clone());
        let task = tokio::spawn(async move {
            task.run(sender).await;
            if let Some(inner) = weak.upgrade() {
                let mut attached = inner.attached();
                if attached.get(&key).is_some_and(|entry| entry.ticket == ticket) {
                    attached.remove(&key);
                }
            }
        });
        attached.insert(run.clone(), Attached { ticket, state, stop, task });
        Some(opened)
    }

    /// Whether a task keeps this run's spool up to date, or stands by to.
    pub fn is_attached(&self, run: &RunId) -> bool {
        self.inner.attached().get(run).is_some_and(|entry| !entry.task.is_finished())
    }

    /// Waits until the file has the run's records up to `up_to`, or the run's last one, at most this long. For a command
    /// that is about to exit: `up_to` is the run's last record then.
    ///
    /// Works for runs that are not attached and for files that another process writes, too.
    pub async fn drain(&self, run: &RunId, up_to: Seq, within: Duration) -> Drained {
        let deadline = Instant::now() + within;
        let state = self.inner.attached().get(run).map(|attached| attached.state.clone());
        if let Some(mut state) = state {
            let reached = state.wait_for(|state| state.cursor >= up_to || state.complete);
            let reached = tokio::time::timeout_at(deadline, reached).await.map(|reached| reached.is_ok());
            match reached {
                Ok(true) => return Drained::Complete,
                // The task was stopped: what is in the file counts.
                Ok(false) => {}
                Err(_) => return Drained::Incomplete { cursor: state.borrow().cursor },
            }
        }
        let (folder, key) = (self.inner.folder.clone(), run.clone());
        let last = tokio::task::spawn_blocking(move || keep::last_seq(&folder, &key)).await;
        match last.ok().and_then(Result::ok).flatten().unwrap_or_default() {
            cursor if cursor >= up_to => Drained::Complete,
            cursor => Drained::Incomplete { cursor },
        }
    }

    /// Ends the task of a run and waits until its file is closed. The file stays; nothing happens when the run is not
    /// attached. Dropping the future ends the task all the same.
    pub async fn detach(&self, run: &RunId) {
        let Some(Attached { stop, task, .. }) = self.inner.attached().remove(run) else {
            return;
        };
        drop(stop);
        // A task that panicked is as ended as any.
        let _ = task.await;
    }

    /// [`crate::sweep`] with these limits, now, on a blocking thread. Attached runs are live by themselves.
    ///
    /// # Errors
    ///
    /// As [`crate::sweep`].
    pub async fn sweep(&self, live: impl Fn(&RunId) -> bool + Send + 'static) -> Result<Swept, SpoolError> {
        let (folder, limits) = (self.inner.folder.clone(), self.inner.limits);
        let swept = tokio::task::spawn_blocking(move || keep::sweep(&folder, &limits, &live, door::now())).await;
        swept.unwrap_or_else(|_| {
            let source = std::io::ErrorKind::Interrupted.into();
            Err(SpoolError::Io { action: "sweep", path: self.inner.folder.clone(), source })
        })
    }
}

impl Inner {
    /// The map is whole at any time, so a panic elsewhere does not spoil it.
    fn attached(&self) -> MutexGuard<'_, HashMap<RunId, Attached>> {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Spools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spools").field("folder", &self.inner.folder).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "attach_tests.rs"]
mod tests;
