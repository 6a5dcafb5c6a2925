//! Waiting for a run.

use std::time::Duration;

use taffrail_mcp_core::{RunFold, RunId, Seq, Start};

use crate::{RunsError, Service};

/// A run that is said to be running is looked for at least this often while somebody waits for it: its host may have
/// been killed, which nothing tells of.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What to wait for. Each is true at once for a run that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// It is not `running`.
    Settled,
    /// It is over: neither `running` nor `suspended`.
    Ended,
    /// It entered a state, was suspended, went on or ended in a record after this one.
    ChangedAfter(Seq),
    /// It has a record after this one.
    RecordAfter(Seq),
}

impl Until {
    fn holds(self, fold: &RunFold) -> bool {
        match self {
            Until::Settled => fold.status.rests(),
            Until::Ended => fold.status.ended(),
            Until::ChangedAfter(seq) => fold.status.ended() || fold.changed > seq,
            Until::RecordAfter(seq) => fold.status.ended() || fold.last > seq,
        }
    }
}

impl Service {
    /// Waits until something is true of a run, without limit; dropping the future ends the wait and nothing else.
    ///
    /// # Errors
    ///
    /// [`RunsError::NoRun`], and when the store cannot be read.
    pub async fn wait(&self, run: &RunId, until: Until) -> Result<RunFold, RunsError> {
        let mut fold = self.fold(run).await?;
        let mut follower = self.inner.relay.follow(&fold.thread, Some(run.clone()), Start::After(fold.last)).await?;
        loop {
            if until.holds(&fold) {
                return Ok(fold);
            }
            // Most records of a flood change nothing that is waited for: the state is read once per delivery.
            if let Ok(delivery) = tokio::time::timeout(LOOK_EVERY, follower.next()).await {
                delivery?;
            }
            fold = self.fold(run).await?;
        }
    }
}
