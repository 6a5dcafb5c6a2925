//! Ending a run.

use std::time::Duration;

use taffrail_mcp_core::{CancelRequested, Event, Reason, RunFinished, RunFold, RunId, RunStatus};
use taffrail_relay::{Claim, RelayError};

use crate::{RunsError, Service, wait::Until};

/// How long a store may take to write a request down before the run is ended without.
const ASK_TIME: Duration = Duration::from_secs(2);

/// A request to end a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancel {
    /// The run.
    pub run: RunId,
    /// Why, for the log.
    pub reason: Option<String>,
    /// Who asks.
    pub actor: String,
    /// Kill at once instead of asking processes to end first.
    pub kill: bool,
}

impl Service {
    /// Ends a run wherever it is hosted, and returns when its processes are gone and the end is stored. A run that is
    /// over stays as it is.
    ///
    /// Takes up to the grace that processes have. Dropping the future does not take the request back.
    ///
    /// # Errors
    ///
    /// [`RunsError::NoRun`], and when the store fails.
    pub async fn cancel(&self, request: Cancel) -> Result<RunFold, RunsError> {
        let Cancel { run, reason, actor, kill } = request;
        let fold = self.fold(&run).await?;
        if fold.status.is_final() {
            return Ok(fold);
        }
        let asked = Event::from(CancelRequested { actor, reason, kill });
        if fold.status.rests() {
            return self.cancel_resting(fold, asked).await;
        }
        let hosted = self.inner.hosted.get(&run);
        let asking = self.inner.relay.commit(&fold.thread, &run, std::slice::from_ref(&asked), None);
        match tokio::time::timeout(ASK_TIME, asking).await {
            // What cannot be written down is done all the same, where it can be: nobody ends a run by hand because a
            // disk is full.
            Ok(Err(error)) if hosted.is_some() => tracing::warn!(%error, "the request to cancel could not be stored"),
            Ok(asked) => _ = asked?,
            Err(_) => tracing::warn!("the request to cancel could not be stored in time"),
        }
        if let Some(hosted) = hosted {
            // Its own process need not read that in the log first.
            match kill {
                true => hosted.cancel.kill(),
                false => hosted.cancel.cancel(),
            }
        }
        let fold = self.wait(&run, Until::Settled).await?;
        match fold.status {
            // It came to a gate, or lost its host, just before it was told.
            RunStatus::Suspended | RunStatus::Interrupted => {
                let asked = CancelRequested { actor: "taffrail".into(), reason: None, kill: false };
                self.cancel_resting(fold, asked.into()).await
            }
            _ => Ok(fold),
        }
    }

    /// A run that rests has no processes; its end is two records. The checkpoint is claimed, so that a resume and this
    /// cannot both win.
    async fn cancel_resting(&self, fold: RunFold, asked: Event) -> Result<RunFold, RunsError> {
        let end = RunFinished {
            machine: fold.playbook.clone(),
            depth: 0,
            status: RunStatus::Cancelled,
            error: Some(Reason::CANCELLED),
            at: fold.state.clone(),
            usage: fold.usage,
            detail: None,
        };
        let key = match &fold.checkpoint {
            Some((checkpoint, _)) => format!("checkpoint:{checkpoint}"),
            None => format!("cancelled:{}", fold.run),
        };
        let claim = Claim { key, value: String::new() };
        match self.inner.relay.commit(&fold.thread, &fold.run, &[asked, end.into()], Some(claim)).await {
            Err(RelayError::Claimed { .. }) => {
                // Resumed, or cancelled, by somebody else: look again.
                Box::pin(self.cancel(Cancel { run: fold.run, reason: None, actor: "taffrail".into(), kill: false }))
                    .await
            }
            committed => Ok(committed?),
        }
    }
}
