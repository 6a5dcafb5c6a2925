//! What a long-lived service does by itself.

use std::{collections::BTreeSet, time::Duration};

use taffrail_mcp_core::{RunId, RunStatus};
use taffrail_relay::ListRuns;
use taffrail_spool::Swept;

use crate::{RunsError, Service};

/// How often the spool's limits of total size and age are applied. A run can write its 256 MiB in a minute, but the
/// folder's 2 GiB leave room for that.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

impl Service {
    /// Looks after what a crash left, and keeps the spool folder within its limits, until it is dropped. For a process
    /// that hosts runs.
    pub async fn tend(&self) {
        if let Err(error) = self.recover().await {
            tracing::warn!(%error, "could not look after runs that a crash left");
        }
        loop {
            if let Err(error) = self.sweep_spool().await {
                tracing::warn!(%error, "could not keep the spool folder within its limits");
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
