//! The background task that keeps one run's spool up to date.
//!
//! It decides little: [`Retry`] says when to try again, the file where to go on.

use std::{path::PathBuf, sync::Arc};

use taffrail_mcp_core::{RunId, Seq};
use taffrail_relay::Block;
use tokio::{
    sync::{oneshot, watch},
    time::{Duration, Instant},
};

use crate::{BlockSource, Delivery, Limits, Notice, SpoolError, SpoolFile, What, door::Disk, keep, retry::Retry};

/// While another process writes the file, how often to look whether it still does, and how far it is.
const STANDBY: Duration = Duration::from_millis(500);

/// Takes notices; called from the task, so it must return at once.
pub(crate) type Notify = Arc<dyn Fn(Notice) + Send + Sync>;
/// Makes the disk that a file writes on.
pub(crate) type MakeDisk = Arc<dyn Fn() -> Box<dyn Disk> + Send + Sync>;

/// How far a spool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct State {
    pub(crate) cursor: Seq,
    /// The run's last record was written.
    pub(crate) complete: bool,
}

/// What a task needs to know.
pub(crate) struct Task<S> {
    pub(crate) folder: PathBuf,
    pub(crate) path: PathBuf,
    pub(crate) run: RunId,
    pub(crate) limits: Limits,
    pub(crate) source: S,
    pub(crate) notify: Notify,
    pub(crate) disk: MakeDisk,
    pub(crate) state: watch::Sender<State>,
    pub(crate) stop: watch::Receiver<()>,
    pub(crate) retry: Retry,
}

/// The task was asked to stop, or the runtime is going down.
struct Stopped;

impl<S: BlockSource> Task<S> {
    /// Runs until the run's last record was written or the task is stopped. `opened` is told what the first attempt to
    /// open the file gave; the task ends when that can never succeed.
    pub(crate) async fn run(mut self, opened: oneshot::Sender<Result<PathBuf, SpoolError>>) {
        // Whether anybody still waits for the answer changes nothing.
        let mut file = match self.open().await {
            Ok(Ok(file)) => {
                let _ = opened.send(Ok(self.path.clone()));
                Some(file)
            }
            Ok(Err(SpoolError::Busy { path })) => {
                self.peek().await;
                let _ = opened.send(Ok(path));
                None
            }
            Ok(Err(error)) if error.is_transient() => {
                let until = self.pause(&error);
                let _ = opened.send(Err(error));
                if self.wait(until).await.is_err() {
                    return;
                }
                None
            }
            Ok(Err(error)) => {
                let _ = opened.send(Err(error));
                return;
            }
            Err(Stopped) => return,
        };
        loop {
            let opened = match file.take() {
                Some(file) => Ok(file),
                None => self.reopen().await,
            };
            match opened {
                Ok(opened) => match self.follow(opened).await {
                    Ok(true) => return,
                    Ok(false) => {}
                    Err(Stopped) => return,
                },
                Err(Stopped) => return,
            }
        }
    }

    /// Writes what the source delivers; `true` at the end of the run, `false` when the file must be opened anew.
    async fn follow(&mut self, mut file: SpoolFile) -> Result<bool, Stopped> {
        self.source.start_at(file.cursor());
        loop {
            self.state.send_modify(|state| state.cursor = file.cursor());
            let delivery = tokio::select! {
                biased;
                _ = self.stop.changed() => return Err(Stopped),
                delivery = self.source.next() => delivery,
            };
            let failed = match delivery {
                Ok(Delivery::End) => {
                    self.state.send_modify(|state| state.complete = true);
                    return Ok(true);
                }
                Ok(Delivery::Gap { to }) => {
                    let from = file.cursor().next();
                    file.skip_to(to);
                    if from <= to {
                        self.tell(What::Missed { from, to });
                    }
                    continue;
                }
                Ok(Delivery::Blocks(blocks)) => {
                    let from = blocks.iter().find_map(|block| block.after(file.cursor())).map(|block| block.first);
                    let written;
                    (file, written) = self.append(file, blocks).await?;
                    match written {
                        Ok(()) => {
                            if let Some(from) = from
                                && self.retry.succeeded()
                            {
                                self.tell(What::Resumed { from });
                            }
                            continue;
                        }
                        Err(error) => (self.pause(&error), matches!(error, SpoolError::Full { .. })),
                    }
                }
                Err(error) => (self.pause(&error), true),
            };
            self.state.send_modify(|state| state.cursor = file.cursor());
            let (until, usable) = failed;
            if !usable {
                drop(file);
                self.wait(until).await?;
                return Ok(false);
            }
            // What could not be written is not held in memory: the log has it.
            self.wait(until).await?;
            self.source.start_at(file.cursor());
        }
    }

    async fn append(
        &mut self,
        mut file: SpoolFile,
        blocks: Vec<Block>,
    ) -> Result<(SpoolFile, Result<(), SpoolError>), Stopped> {
        blocking(move || {
            let written = blocks.iter().try_for_each(|block| file.append(block));
            (file, written)
        })
        .await
    }

    async fn open(&mut self) -> Result<Result<SpoolFile, SpoolError>, Stopped> {
        let (disk, folder, run, limits) = ((self.disk)(), self.folder.clone(), self.run.clone(), self.limits);
        blocking(move || SpoolFile::open_on(disk, &folder, &run, limits)).await
    }

    /// Opens the file as soon as that is possible.
    async fn reopen(&mut self) -> Result<SpoolFile, Stopped> {
        loop {
            let until = match self.open().await? {
                Ok(file) => return Ok(file),
                Err(SpoolError::Busy { .. }) => {
                    self.peek().await;
                    Instant::now() + STANDBY
                }
                Err(error) => self.pause(&error),
            };
            self.wait(until).await?;
        }
    }

    /// Learns how far the other process has come.
    async fn peek(&mut self) {
        let (folder, run) = (self.folder.clone(), self.run.clone());
        if let Ok(Ok(Some(seq))) = blocking(move || keep::last_seq(&folder, &run)).await {
            self.state.send_modify(|state| state.cursor = seq);
        }
    }

    fn pause(&mut self, error: &dyn std::error::Error) -> Instant {
        let (until, begins) = self.retry.failed(Instant::now());
        if begins {
            let mut reason = error.to_string();
            let mut source = error.source();
            while let Some(cause) = source {
                reason = format!("{reason}: {cause}");
                source = cause.source();
            }
            tracing::warn!(run = %self.run, reason, "spool paused");
            self.tell(What::Paused { reason });
        }
        until
    }

    async fn wait(&mut self, until: Instant) -> Result<(), Stopped> {
        tokio::select! {
            _ = self.stop.changed() => Err(Stopped),
            () = tokio::time::sleep_until(until) => Ok(()),
        }
    }

    fn tell(&self, what: What) {
        (self.notify)(Notice { run: self.run.clone(), path: self.path.clone(), what });
    }
}

/// Runs what blocks off the async threads. When the runtime goes down, or the work panics, there is nothing to go on
/// with.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Stopped> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Stopped)
}
