//! What a long-lived service does by itself.

use std::{collections::BTreeSet, time::Duration};

use taffrail_mcp_core::{RunId, RunStatus};
use taffrail_relay::ListRuns;
use taffrail_spool::Swept;

use crate::{RunsError, Service};

/// How often limits of size and age are applied. A run can write its 256 MiB of spool in a minute, but the folder's 2 GiB
/// leave room for that.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Every so many sweeps of the log all its runs are looked at: an hour.
const COMPLETE_EVERY: u64 = 60;

/// Runs that are said to go on are looked at as often, at least.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// What failed is tried again after this time.
const TRY_AGAIN: Duration = Duration::from_secs(1);

impl Service {
    /// Looks after what a crash left, after runs whose host or producer is gone, and keeps the spool folder and the log
    /// within their limits, until it is dropped. For a process that hosts or serves runs; several on one store may.
    pub async fn tend(&self) {
        tokio::join!(self.tend_runs(), self.tend_spools(), self.tend_log());
    }

    /// Nobody has to ask for a run for its end to be written.
    async fn tend_runs(&self) {
        if let Err(error) = self.mend_spools().await {
            tracing::warn!(%error, "could not mend spool files that a crash left");
        }
        let mut departures = self.inner.living.departures();
        let pause = LOOK_EVERY.min(self.inner.config.external_silence / 5);
        loop {
            let pause = match self.recover_runs().await {
                Ok(_) => pause,
                Err(error) => {
                    tracing::warn!(%error, "could not look after runs whose host is gone");
                    TRY_AGAIN.min(pause)
                }
            };
            match &mut departures {
                None => tokio::time::sleep(pause).await,
                // An error is the end of who tells; the pause stays.
                Some(departures) => _ = tokio::time::timeout(pause, departures.changed()).await,
            }
        }
    }

    async fn tend_spools(&self) {
        loop {
            if let Err(error) = self.sweep_spool().await {
                tracing::warn!(%error, "could not keep the spool folder within its limits");
            }
            tokio::time::sleep(SWEEP_EVERY).await;
        }
    }

    async fn tend_log(&self) {
        let Some(retention) = self.inner.config.retention else { return };
        for sweep in 0_u64.. {
            let swept = self.sweep_log(&retention, sweep.is_multiple_of(COMPLETE_EVERY)).await;
            match swept {
                Ok(swept) if swept.threads > 0 => {
                    let (records, bytes, runs) = (swept.trimmed.records, swept.trimmed.bytes, swept.runs.len());
                    tracing::info!(records, bytes, runs, "old records were removed");
                    self.remove_spools(swept.runs, false).await;
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "could not keep the log within its limits"),
            }
            tokio::time::sleep(SWEEP_EVERY).await;
        }
    }

    /// Applies the spool's limits of total size and age now. Files of runs that go on, or wait, are live.
    ///
    /// # Errors
    ///
    /// When the store or the spool folder cannot be used.
    pub async fn sweep_spool(&self) -> Result<Swept, RunsError> {
        let going_on = vec![RunStatus::Running, RunStatus::Suspended];
        let query = ListRuns { status: going_on, limit: usize::MAX, ..ListRuns::default() };
        let live: BTreeSet<RunId> = self.inner.relay.runs(query).await?.into_iter().map(|fold| fold.run).collect();
        let swept = self.inner.spools.sweep(move |run| live.contains(run)).await;
        swept.map_err(|error| RunsError::Spool(error.into()))
    }
}
