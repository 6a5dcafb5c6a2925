//! Ending a run.

use std::time::Duration;

use taffrail_mcp_core::{CancelRequested, Event, Reason, RunFinished, RunFold, RunId, RunStatus};
use taffrail_relay::{Claim, RelayError};

use crate::{RunsError, Service, wait::Until};

/// How long a store may take to write a request down before the run is ended without.
const ASK_TIME: Duration = Duration::from_secs(2);

/// How long the producer of an external run may take to end it, beyond the grace that its processes have: it learns of
/// the request with the next events that it sends.
const PRODUCER_TIME: Duration = Duration::from_secs(10);

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
    /// over stays as it is. An external run is ended by its producer, which is told with its next events; one that has not
    /// done so after the grace and 10 s more is ended here.
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
        if fold.external {
            return self.cancel_external(fold, asked, kill).await;
        }
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
        let end = cancelled(&fold, None);
        let key = match &fold.checkpoint {
            Some((checkpoint, _)) => format!("checkpoint:{checkpoint}"),
            None => format!("cancelled:{}", fold.run),
        };
        let claim = Claim { key, value: String::new() };
        match self.inner.relay.commit(&fold.thread, &fold.run, &[asked, end], Some(claim)).await {
            Err(RelayError::Claimed { .. }) => self.cancel_again(fold.run, false).await,
            committed => Ok(committed?),
        }
    }

    /// Asks the producer of a run to end it, and ends the run without when that takes too long.
    async fn cancel_external(&self, fold: RunFold, asked: Event, kill: bool) -> Result<RunFold, RunsError> {
        let run = fold.run.clone();
        if fold.status.ended() {
            // Nobody is there to be asked. The producer may come back just now: then that, or this, comes first.
            let ended = [asked, cancelled(&fold, None)];
            let still = |now: Option<&RunFold>| now.is_some_and(|now| now.changed == fold.changed);
            return match self.inner.relay.commit_if(&fold.thread, &run, &ended, None, still).await? {
                Some(fold) => Ok(fold),
                None => self.cancel_again(run, kill).await,
            };
        }
        if self.unless_over(&fold, asked).await?.is_some() {
            self.inner.ingests.expire(&run);
            // In a task of its own: whoever asked may go away, and the run must end all the same.
            let ending = tokio::spawn(self.clone().end_external(fold, kill));
            ending.await.map_err(|_| RunsError::Closing)??;
        }
        match self.read(&run).await? {
            // By its producer, in answer to the request.
            interrupted if interrupted.status == RunStatus::Interrupted => self.cancel_again(run, kill).await,
            fold => Ok(fold),
        }
    }

    /// Waits for the producer of a run to end it, and then does without.
    async fn end_external(self, fold: RunFold, kill: bool) -> Result<(), RunsError> {
        let patience = PRODUCER_TIME + if kill { Duration::ZERO } else { self.inner.config.grace };
        let ended = tokio::time::timeout(patience, self.wait(&fold.run, Until::Ended)).await;
        if ended.is_err() {
            let end = cancelled(&fold, Some("its producer did not end it in time".into()));
            self.unless_over(&fold, end).await?;
        }
        Ok(())
    }

    /// Somebody else went on with the run, or ended it: looks again.
    async fn cancel_again(&self, run: RunId, kill: bool) -> Result<RunFold, RunsError> {
        Box::pin(self.cancel(Cancel { run, reason: None, actor: "taffrail".into(), kill })).await
    }
}

/// The end of a cancelled run whose processes are gone, or not ours.
fn cancelled(fold: &RunFold, detail: Option<String>) -> Event {
    let end = RunFinished {
        machine: fold.playbook.clone(),
        depth: 0,
        status: RunStatus::Cancelled,
        error: Some(Reason::CANCELLED),
        at: fold.state.clone(),
        usage: fold.usage,
        detail,
    };
    end.into()
}
