//! Runs whose host is gone.

use taffrail_mcp_core::{Event, Reason, RunFold, RunId, RunStatus};
use taffrail_relay::{ListRuns, RelayError};

use crate::{RunsError, Service, external, hosts::HostsError};

/// What a recovery found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Runs that went on without a host, or nothing came for, and that are `interrupted` (or `cancelled`, when that was asked for) now.
    pub runs: Vec<RunId>,
    /// Spool files whose torn end was cut.
    pub spools: u64,
}

impl Service {
    /// Looks at all runs that are said to go on, and mends spool files that a crash has torn. For start-up.
    ///
    /// # Errors
    ///
    /// When the store or the spool folder cannot be used.
    pub async fn recover(&self) -> Result<Recovered, RunsError> {
        Ok(Recovered { runs: self.recover_runs().await?, spools: self.mend_spools().await? })
    }

    /// Looks at all runs that are said to go on: those that have ended since.
    pub(crate) async fn recover_runs(&self) -> Result<Vec<RunId>, RunsError> {
        let mut recovered = Vec::new();
        let going_on = vec![RunStatus::Running, RunStatus::Suspended];
        let going_on = ListRuns { status: going_on, limit: usize::MAX, ..ListRuns::default() };
        for fold in self.inner.relay.runs(going_on).await? {
            let run = fold.run.clone();
            if !fold.status.ended() && self.settled(fold).await?.status.ended() {
                recovered.push(run);
            }
        }
        Ok(recovered)
    }

    /// Mends spool files that a crash has torn: how many it were.
    pub(crate) async fn mend_spools(&self) -> Result<u64, RunsError> {
        let folder = self.inner.config.layout.spool();
        let mended = tokio::task::spawn_blocking(move || taffrail_spool::mend(folder)).await;
        let mended = mended.map_err(|_| RunsError::Closing)?;
        Ok(mended.map_err(|error| RunsError::Spool(error.into()))?.files)
    }

    /// A fold that does not say `running` of a run that nobody hosts.
    pub(crate) async fn settled(&self, fold: RunFold) -> Result<RunFold, RunsError> {
        if fold.external {
            return self.settled_external(fold).await;
        }
        if fold.status != RunStatus::Running || self.inner.hosted.get(&fold.run).is_some() {
            return Ok(fold);
        }
        let look = match self.inner.living.look(&fold.run).await {
            Ok(Some(look)) => look,
            Ok(None) => return Ok(fold),
            Err(HostsError::Store(error)) if error.is_transient() => {
                tracing::debug!(run = %fold.run, %error, "cannot look for the host of a run");
                return Ok(fold);
            }
            Err(error) => return Err(self.cannot_lock(error)),
        };
        let settled = self.settled_unhosted(fold).await;
        look.done().await;
        settled
    }

    /// The same while nobody hosts the run, or can begin to.
    async fn settled_unhosted(&self, fold: RunFold) -> Result<RunFold, RunsError> {
        // Read again: the host may have ended it in good order just now.
        let Some(fold) = self.inner.relay.run(&fold.run).await? else { return Ok(fold) };
        if fold.status != RunStatus::Running {
            return Ok(fold);
        }
        let (status, error) = match fold.cancel.is_some() {
            true => (RunStatus::Cancelled, Reason::CANCELLED),
            false => (RunStatus::Interrupted, Reason::PROCESS_GONE),
        };
        let end = external::ended(&fold, status, error, "the process that ran it ended without ending it");
        self.conclude(fold, end).await
    }

    /// Writes the end of a run that cannot write it itself, unless it has a record that this is not about.
    pub(crate) async fn conclude(&self, fold: RunFold, end: Event) -> Result<RunFold, RunsError> {
        let (thread, run, last) = (&fold.thread, &fold.run, fold.last);
        let same = |now: Option<&RunFold>| now.is_some_and(|now| now.last == last);
        match self.inner.relay.commit_if(thread, run, std::slice::from_ref(&end), None, same).await {
            Ok(Some(fold)) => Ok(fold),
            Ok(None) => self.read(run).await,
            // Looking must work on a full disk too: it is told as it is, and stored by whoever looks later.
            Err(RelayError::Store(error)) if error.is_transient() => {
                tracing::debug!(run = %fold.run, %error, "that the run is interrupted could not be stored");
                let mut told = fold;
                told.apply(told.last, told.updated_at, &end);
                Ok(told)
            }
            Err(error) => Err(error.into()),
        }
    }
}
