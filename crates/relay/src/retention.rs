//! Which old records go. What is decided has no I/O; [`sweep`] carries it out.

mod sweep;

use std::{collections::BTreeMap, time::Duration};

use taffrail_mcp_core::{RunFold, RunId, RunStatus, Seq, ThreadId, Timestamp};

pub use sweep::{Swept, sweep};

use crate::{ThreadUsage, Trimmed};

/// How much of old logs is kept.
///
/// Records of runs that are going on or wait are never touched, nor is anything behind them in their thread; those of an
/// interrupted run, which can go on, only when it is older than `max_age`. What goes is the beginning of a thread, at
/// most up to the first run that stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Runs whose last record is older go. Default: kept.
    pub max_age: Option<Duration>,
    /// While all threads together take more bytes of disk, the ones that were quiet longest go. Default: no limit.
    pub max_bytes: Option<u64>,
    /// The last records of each thread that stay in any case. Default: none.
    pub keep_records: u64,
}

/// A run, as far as retention is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The run.
    pub run: RunId,
    /// Its first record.
    pub first: Seq,
    /// Its last record.
    pub last: Seq,
    /// Time of that.
    pub updated: Timestamp,
    /// Whether it goes on.
    pub status: RunStatus,
}

impl From<&RunFold> for Span {
    fn from(fold: &RunFold) -> Self {
        let RunFold { run, first, last, updated_at: updated, status, .. } = fold;
        Self { run: run.clone(), first: *first, last: *last, updated: *updated, status: *status }
    }
}

/// What is in a store.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    /// Its threads, in the order of their last record, oldest first.
    pub threads: Vec<ThreadUsage>,
    /// Their runs: at least those that go on, wait, or are interrupted.
    pub runs: BTreeMap<ThreadId, Vec<Span>>,
    /// Whether those are all runs. Then old ones are found also in threads that are not quiet.
    pub complete: bool,
}

/// One thread to be cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The log.
    pub thread: ThreadId,
    /// Its first record.
    pub first: Seq,
    /// Records up to this one go.
    pub through: Seq,
    /// Bytes of the lines that go, about.
    pub bytes: u64,
    /// Interrupted runs of which records go: they must not go on meanwhile.
    pub resting: Vec<Span>,
}

impl Retention {
    /// Decides.
    pub fn plan(&self, survey: &Survey, now: Timestamp) -> Vec<Cut> {
        let Survey { threads, runs, complete } = survey;
        let mut total: u64 = threads.iter().map(|thread| thread.stored_bytes).sum();
        let mut cuts = Vec::new();
        for usage in threads {
            let spans = runs.get(&usage.thread).map(Vec::as_slice).unwrap_or_default();
            let too_much = self.max_bytes.is_some_and(|max| total > max);
            let mut end = Seq::START;
            if too_much || self.is_old(usage.updated, now) {
                end = before(spans.iter().filter(|span| self.is_live(span, now)), usage.extent.head);
            } else if *complete && self.max_age.is_some() {
                // The thread goes on; its first runs may be old all the same.
                let stays = |span: &&Span| self.is_live(span, now) || !self.is_old(span.updated, now);
                let limit = before(spans.iter().filter(stays), usage.extent.head);
                end = spans.iter().map(|span| span.last).filter(|last| *last <= limit).max().unwrap_or_default();
            }
            let through = end.min(Seq(usage.extent.head.0.saturating_sub(self.keep_records)));
            if through < usage.extent.first {
                continue;
            }
            let part = |bytes| part_of(bytes, usage, through);
            total = total.saturating_sub(part(usage.stored_bytes));
            let resting = spans.iter().filter(|span| !span.status.is_final() && span.first <= through);
            cuts.push(Cut {
                thread: usage.thread.clone(),
                first: usage.extent.first,
                through,
                bytes: part(usage.bytes),
                resting: resting.cloned().collect(),
            });
        }
        cuts
    }

    fn is_old(&self, updated: Timestamp, now: Timestamp) -> bool {
        let age = Duration::from_micros(now.micros().saturating_sub(updated.micros()));
        self.max_age.is_some_and(|max| age > max)
    }

    fn is_live(&self, span: &Span, now: Timestamp) -> bool {
        match span.status {
            RunStatus::Running | RunStatus::Suspended => true,
            RunStatus::Interrupted => !self.is_old(span.updated, now),
            RunStatus::Done | RunStatus::Halt | RunStatus::Cancelled => false,
        }
    }
}

/// The last position before all of these, or else the head.
fn before<'a>(spans: impl Iterator<Item = &'a Span>, head: Seq) -> Seq {
    spans.map(|span| Seq(span.first.0.saturating_sub(1))).min().unwrap_or(head)
}

/// What the records up to `through` have of a thread's bytes, as if all had the same size.
fn part_of(bytes: u64, usage: &ThreadUsage, through: Seq) -> u64 {
    let records = (usage.extent.head.0 + 1).saturating_sub(usage.extent.first.0).max(1);
    let cut = (through.0 + 1).saturating_sub(usage.extent.first.0).min(records);
    let part = u128::from(bytes) * u128::from(cut) / u128::from(records);
    u64::try_from(part).unwrap_or(bytes)
}

impl Cut {
    /// What it removes at most: a store may remove whole blocks only.
    pub(crate) const fn most(&self) -> Trimmed {
        Trimmed { records: (self.through.0 + 1).saturating_sub(self.first.0), bytes: self.bytes }
    }
}

#[cfg(test)]
mod tests;
