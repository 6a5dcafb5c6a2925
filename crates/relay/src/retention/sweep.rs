//! Carrying out what retention decides.

use taffrail_mcp_core::{RunFold, RunId, RunStatus, Seq, ThreadId};

use super::{Cut, Retention, Span, Survey};
use crate::{ListRuns, Relay, RelayError, Trimmed};

/// Bytes of lines that one call to a store removes: appends to the thread may have to wait that long.
const STEP_BYTES: u64 = 64 << 20;

/// What was planned may turn out to be less than enough; then it is planned again, at most so often.
const ROUNDS: usize = 5;

/// What a sweep did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Swept {
    /// Threads that were cut.
    pub threads: u64,
    /// Runs that left the index, because none of their records is left.
    pub runs: Vec<RunId>,
    /// Records, and bytes of their lines, that were removed. A dry run tells the most that can go: a store may remove
    /// whole blocks only, and bytes are taken as evenly spread.
    pub trimmed: Trimmed,
}

impl Swept {
    /// Adds what another cut did.
    pub fn add(&mut self, other: Swept) {
        self.threads += other.threads;
        self.runs.extend(other.runs);
        self.trimmed.records += other.trimmed.records;
        self.trimmed.bytes += other.trimmed.bytes;
    }
}

/// Applies a retention to a relay's store, or with `dry_run` only tells what it would do.
///
/// For logs whose runs nobody hosts or resumes meanwhile: interrupted runs are only looked at again right before. Several
/// sweeps at once, also by several processes, remove no more than one does.
///
/// # Errors
///
/// When the store cannot be read or written; what was removed before stays removed.
pub async fn sweep(relay: &Relay, retention: &Retention, dry_run: bool) -> Result<Swept, RelayError> {
    let mut swept = Swept::default();
    for _ in 0..ROUNDS {
        let survey = Survey::take(relay, true).await?;
        let mut round = Swept::default();
        for cut in retention.plan(&survey, crate::clock::now()) {
            if dry_run {
                round.add(cut.foretell(relay).await?);
            } else if cut.still_rests(relay).await? {
                round.add(cut.carry_out(relay).await?);
            }
        }
        let enough = dry_run || retention.max_bytes.is_none() || round.trimmed == Trimmed::default();
        swept.add(round);
        if enough {
            break;
        }
    }
    Ok(swept)
}

impl Survey {
    /// Looks at a store: at all runs, or only those that retention must not touch.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn take(relay: &Relay, complete: bool) -> Result<Self, RelayError> {
        let (mut survey, folds) = Self::begin(relay, complete).await?;
        folds.iter().for_each(|fold| survey.add(fold));
        Ok(survey)
    }

    /// The same without the runs, and those, for who knows better how they are. [`Survey::add`] adds them.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn begin(relay: &Relay, complete: bool) -> Result<(Self, Vec<RunFold>), RelayError> {
        // The threads first: what a run writes that begins between the two is behind the end that they have here.
        let status = match complete {
            true => Vec::new(),
            false => vec![RunStatus::Running, RunStatus::Suspended, RunStatus::Interrupted],
        };
        let threads = relay.store().threads().await?;
        let folds = relay.runs(ListRuns { status, limit: usize::MAX, ..ListRuns::default() }).await?;
        Ok((Self { threads, complete, ..Self::default() }, folds))
    }

    /// Adds a run.
    pub fn add(&mut self, fold: &RunFold) {
        self.runs.entry(fold.thread.clone()).or_default().push(Span::from(fold));
    }
}

impl Cut {
    /// Whether the interrupted runs that it is about have no new records.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn still_rests(&self, relay: &Relay) -> Result<bool, RelayError> {
        for span in &self.resting {
            if relay.run(&span.run).await?.is_some_and(|fold| fold.last != span.last) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What it would do.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn foretell(&self, relay: &Relay) -> Result<Swept, RelayError> {
        let runs = runs_of(relay, &self.thread).await?;
        let runs = runs.into_iter().filter(|fold| fold.last <= self.through).map(|fold| fold.run).collect();
        Ok(Swept { threads: 1, runs, trimmed: self.most() })
    }

    /// Removes the records, in steps, and the runs that have none left.
    ///
    /// # Errors
    ///
    /// When the store cannot be read or written; what was removed before stays removed.
    pub async fn carry_out(&self, relay: &Relay) -> Result<Swept, RelayError> {
        let mut swept = Swept::default();
        let most = self.most();
        // As many records as have about the bytes of a step.
        let step = most.records.saturating_mul(STEP_BYTES).checked_div(most.bytes).unwrap_or(most.records).max(1);
        let mut through = Seq(self.first.0.saturating_sub(1));
        while through < self.through {
            through = Seq(through.0.saturating_add(step)).min(self.through);
            let trimmed = relay.store().trim(self.thread.clone(), through).await?;
            swept.trimmed.records += trimmed.records;
            swept.trimmed.bytes += trimmed.bytes;
        }
        swept.threads = u64::from(swept.trimmed.records > 0);
        let first = relay.extent(&self.thread).await?.first;
        for fold in runs_of(relay, &self.thread).await?.into_iter().filter(|fold| fold.last < first) {
            // Looked at again: it may have written since it was listed.
            if relay.run(&fold.run).await?.is_some_and(|now| now.last < first) {
                relay.store().forget(fold.run.clone()).await?;
                swept.runs.push(fold.run);
            }
        }
        Ok(swept)
    }
}

async fn runs_of(relay: &Relay, thread: &ThreadId) -> Result<Vec<RunFold>, RelayError> {
    relay.runs(ListRuns { thread: Some(thread.clone()), limit: usize::MAX, ..ListRuns::default() }).await
}
