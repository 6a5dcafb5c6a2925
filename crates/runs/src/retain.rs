//! Removing old runs.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicU64, Ordering},
};

use taffrail_mcp_core::RunId;
use taffrail_relay::{Cut, Retention, Survey, Swept, Trimmed};
use taffrail_spool::SpoolError;

use crate::{RunsError, Service, clock, hosts::Look};

/// What was planned may turn out to be less than enough; then it is planned again, at most so often.
const ROUNDS: usize = 5;

/// What sweeps of the log have removed since the service was opened, for monitoring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Removed {
    /// Sweeps.
    pub sweeps: u64,
    /// Runs that left the index.
    pub runs: u64,
    /// Records.
    pub records: u64,
    /// Bytes of their lines.
    pub bytes: u64,
}

/// The same, counting.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    sweeps: AtomicU64,
    runs: AtomicU64,
    records: AtomicU64,
    bytes: AtomicU64,
}

impl Counts {
    fn add(&self, swept: &Swept) {
        self.sweeps.fetch_add(1, Ordering::Relaxed);
        self.runs.fetch_add(swept.runs.len() as u64, Ordering::Relaxed);
        self.records.fetch_add(swept.trimmed.records, Ordering::Relaxed);
        self.bytes.fetch_add(swept.trimmed.bytes, Ordering::Relaxed);
    }

    pub(crate) fn now(&self) -> Removed {
        let [sweeps, runs, records, bytes] =
            [&self.sweeps, &self.runs, &self.records, &self.bytes].map(|count| count.load(Ordering::Relaxed));
        Removed { sweeps, runs, records, bytes }
    }
}

impl Service {
    /// Applies a retention to the log now: removes records, in steps that keep no writer waiting for long, and runs that
    /// have none left. Runs that go on or wait stay as they are; an interrupted one cannot be resumed while it is being
    /// removed. When `complete`, old runs are found also in threads that others still write to, at the price of a look at
    /// every run. Any number of processes may do this at once.
    ///
    /// # Errors
    ///
    /// When the store cannot be read or written; what was removed before stays removed.
    pub async fn sweep_log(&self, retention: &Retention, complete: bool) -> Result<Swept, RunsError> {
        let mut swept = Swept::default();
        for _ in 0..ROUNDS {
            let survey = self.survey(complete).await?;
            let mut round = Swept::default();
            for cut in retention.plan(&survey, clock::now()) {
                if let Some(looks) = self.hold(&cut).await? {
                    let done = cut.carry_out(&self.inner.relay).await;
                    for look in looks {
                        look.done().await;
                    }
                    round.add(done?);
                }
            }
            let enough = retention.max_bytes.is_none() || round.trimmed == Trimmed::default();
            swept.add(round);
            if enough {
                break;
            }
        }
        self.inner.removed.add(&swept);
        Ok(swept)
    }

    /// What [`Service::sweep_log`] would remove, at most.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn plan_sweep(&self, retention: &Retention) -> Result<Swept, RunsError> {
        let survey = self.survey(true).await?;
        let mut planned = Swept::default();
        for cut in retention.plan(&survey, clock::now()) {
            planned.add(cut.foretell(&self.inner.relay).await?);
        }
        Ok(planned)
    }

    /// What is in the store. A run without a host is interrupted, also when a full disk keeps that from being written
    /// down: it may be what filled the disk.
    async fn survey(&self, complete: bool) -> Result<Survey, RunsError> {
        let (mut survey, folds) = Survey::begin(&self.inner.relay, complete).await?;
        for fold in folds {
            match self.settled(fold.clone()).await {
                Ok(settled) => survey.add(&settled),
                Err(error) => {
                    tracing::debug!(run = %fold.run, %error, "cannot look for the host of a run, which stays");
                    survey.add(&fold);
                }
            }
        }
        Ok(survey)
    }

    /// Makes sure that the interrupted runs of a cut stay so; nothing when one has gone on.
    async fn hold(&self, cut: &Cut) -> Result<Option<Vec<Look>>, RunsError> {
        let mut looks = Vec::new();
        for span in &cut.resting {
            match self.inner.living.look(&span.run).await {
                Ok(Some(look)) => looks.push(look),
                Ok(None) => return Ok(None),
                Err(error) => return Err(self.cannot_lock(error)),
            }
        }
        Ok(cut.still_rests(&self.inner.relay).await?.then_some(looks))
    }

    /// Removes the spool files of runs that nobody can ask for any more, or with `dry_run` only counts them.
    pub async fn remove_spools(&self, runs: Vec<RunId>, dry_run: bool) -> taffrail_spool::Swept {
        let folder = self.inner.config.layout.spool();
        let runs: BTreeSet<RunId> = runs.into_iter().collect();
        if runs.is_empty() {
            return taffrail_spool::Swept::default();
        }
        let removed = tokio::task::spawn_blocking(move || {
            let mut swept = taffrail_spool::Swept::default();
            let listed = told("list the spool files", taffrail_spool::list(&folder));
            for listed in listed.into_iter().filter(|listed| runs.contains(&listed.run)) {
                let files = match dry_run {
                    true => Ok(listed.files),
                    false => taffrail_spool::remove(&folder, &listed.run),
                };
                // That of a process that is just ending is left to the limit of age.
                let busy = matches!(files, Err(SpoolError::Busy { .. }));
                let files = if busy { 0 } else { told("remove spool files", files) };
                if files > 0 {
                    swept.files += files as u64;
                    swept.bytes += listed.bytes;
                }
            }
            swept
        });
        removed.await.unwrap_or_default()
    }
}

/// What a step gave, or nothing and a warning.
fn told<T: Default>(what: &str, result: Result<T, SpoolError>) -> T {
    result.unwrap_or_else(|error| {
        tracing::warn!(%error, "could not {what}");
        T::default()
    })
}
