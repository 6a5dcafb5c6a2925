//! Waiting for a run.

use taffrail_mcp_core::{RunFold, RunId, Seq};

use crate::{RunsError, Service};

/// What to wait for. Each is true at once for a run that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// It is not `running`.
    Settled,
    /// It is over: neither `running` nor `suspended`.
    Ended,
    /// It entered a state, was suspended, went on or ended in a record after this one.
    ChangedAfter(Seq),
    /// The same, but the end of the run is no more than its last change: an interrupted run may go on one day.
    GoesOnAfter(Seq),
    /// It has a record after this one.
    RecordAfter(Seq),
}

impl Until {
    fn holds(self, fold: &RunFold) -> bool {
        match self {
            Until::Settled => fold.status.rests(),
            Until::Ended => fold.status.ended(),
            Until::ChangedAfter(seq) => fold.status.ended() || fold.changed > seq,
            Until::GoesOnAfter(seq) => fold.changed > seq,
            Until::RecordAfter(seq) => fold.status.ended() || fold.last > seq,
        }
    }
}

impl Service {
    /// Waits until something is true of a run, without limit; dropping the future ends the wait and nothing else.
    ///
    /// Many waits for one run cost little more than one: they share the looks at it.
    ///
    /// # Errors
    ///
    /// [`RunsError::NoRun`], and when the store cannot be read.
    pub async fn wait(&self, run: &RunId, until: Until) -> Result<RunFold, RunsError> {
        let begun = self.fold(run).await?;
        if until.holds(&begun) {
            return Ok(begun);
        }
        let mut news = self.watched(&begun, matches!(until, Until::RecordAfter(_)));
        loop {
            match &*news.borrow_and_update() {
                // What was seen before this wait began may be long over.
                Some(Ok(fold)) if fold.last >= begun.last && until.holds(fold) => return Ok(RunFold::clone(fold)),
                Some(Err(error)) => return Err(error.clone()),
                _ => {}
            }
            news.changed().await.map_err(|_| RunsError::Closing)?;
        }
    }
}
