//! Which old records go. The plan has no I/O; [`sweep`] carries it out.

use std::{collections::BTreeSet, time::Duration};

use taffrail_mcp_core::{RunId, RunStatus, Seq, ThreadId, Timestamp};

use crate::{ListRuns, Relay, RelayError, ThreadUsage, Trimmed};

/// How much of old logs is kept. Threads with a run that is going on, or that could go on, are never touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Threads that were quiet for longer go. Default: kept.
    pub max_age: Option<Duration>,
    /// While all threads together take more bytes of disk, the ones that were quiet longest go. Default: no limit.
    pub max_bytes: Option<u64>,
    /// The last records of each thread that stay in any case. Default: none.
    pub keep_records: u64,
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
    /// Bytes of all its lines.
    pub bytes: u64,
}

impl Retention {
    /// Decides, for threads in the order of their last record, oldest first.
    pub fn plan(&self, threads: &[ThreadUsage], busy: &BTreeSet<ThreadId>, now: Timestamp) -> Vec<Cut> {
        let mut total: u64 = threads.iter().map(|thread| thread.stored_bytes).sum();
        let mut cuts = Vec::new();
        for usage in threads {
            let age = Duration::from_micros(now.micros().saturating_sub(usage.updated.micros()));
            let too_old = self.max_age.is_some_and(|max| age > max);
            let too_much = self.max_bytes.is_some_and(|max| total > max);
            let through = Seq(usage.extent.head.0.saturating_sub(self.keep_records));
            if (too_old || too_much) && !busy.contains(&usage.thread) && through >= usage.extent.first {
                total = total.saturating_sub(usage.stored_bytes);
                cuts.push(Cut { thread: usage.thread.clone(), first: usage.extent.first, through, bytes: usage.bytes });
            }
        }
        cuts
    }
}

/// What a sweep did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Swept {
    /// Threads that were cut.
    pub threads: u64,
    /// Runs that left the index, because none of their records is left.
    pub runs: Vec<RunId>,
    /// Records, and bytes of their lines, that were removed. A dry run tells the most that can go: a store may remove
    /// whole blocks only, and of a thread that is cut in part all bytes are told.
    pub trimmed: Trimmed,
}

/// Applies a retention to a relay's store, or with `dry_run` only tells what it would do.
///
/// # Errors
///
/// When the store cannot be read or written; what was removed before stays removed.
pub async fn sweep(relay: &Relay, retention: &Retention, dry_run: bool) -> Result<Swept, RelayError> {
    let going_on = vec![RunStatus::Running, RunStatus::Suspended, RunStatus::Interrupted];
    let busy: BTreeSet<ThreadId> = all_runs(relay, ListRuns { status: going_on, ..ListRuns::default() }).await?;
    let threads = relay.store().threads().await?;
    let mut swept = Swept::default();
    for cut in retention.plan(&threads, &busy, crate::clock::now()) {
        swept.threads += 1;
        let of_thread = ListRuns { thread: Some(cut.thread.clone()), limit: usize::MAX, ..ListRuns::default() };
        let runs = relay.runs(of_thread).await?;
        if dry_run {
            swept.trimmed.bytes += cut.bytes;
            swept.trimmed.records += cut.through.0.saturating_sub(cut.first.0) + 1;
            swept.runs.extend(runs.into_iter().filter(|fold| fold.last <= cut.through).map(|fold| fold.run));
            continue;
        }
        let trimmed = relay.store().trim(cut.thread.clone(), cut.through).await?;
        swept.trimmed.records += trimmed.records;
        swept.trimmed.bytes += trimmed.bytes;
        let first = relay.extent(&cut.thread).await?.first;
        for fold in runs.into_iter().filter(|fold| fold.last < first) {
            // Looked at again: it may have written since it was listed.
            if relay.run(&fold.run).await?.is_some_and(|now| now.last >= first) {
                continue;
            }
            relay.store().forget(fold.run.clone()).await?;
            swept.runs.push(fold.run);
        }
    }
    Ok(swept)
}

async fn all_runs(relay: &Relay, query: ListRuns) -> Result<BTreeSet<ThreadId>, RelayError> {
    let folds = relay.runs(ListRuns { limit: usize::MAX, ..query }).await?;
    Ok(folds.into_iter().map(|fold| fold.thread).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Extent;

    fn usage(name: &str, hours_ago: u64, bytes: u64) -> ThreadUsage {
        ThreadUsage {
            thread: ThreadId::new(name).unwrap(),
            extent: Extent { first: Seq(1), head: Seq(100) },
            bytes,
            stored_bytes: bytes,
            updated: Timestamp::from_micros((1000 - hours_ago) * 3_600_000_000),
            trimmed: Trimmed::default(),
        }
    }

    #[track_caller]
    fn check(retention: Retention, expected: &[(&str, u64)]) {
        let threads = [usage("live", 90, 10), usage("old", 50, 10), usage("middle", 20, 10), usage("new", 1, 10)];
        let busy = BTreeSet::from([ThreadId::new("live").unwrap()]);
        let cuts = retention.plan(&threads, &busy, Timestamp::from_micros(1000 * 3_600_000_000));
        assert_eq!(cuts.iter().map(|c| (c.thread.as_str(), c.through.0)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn age_bytes_and_what_stays() {
        let hours = |n: u64| Some(Duration::from_secs(n * 3600));
        check(Retention::default(), &[]);
        check(Retention { max_age: hours(30), ..Retention::default() }, &[("old", 100)]);
        check(Retention { max_bytes: Some(25), ..Retention::default() }, &[("old", 100), ("middle", 100)]);
        check(
            Retention { max_bytes: Some(0), keep_records: 30, ..Retention::default() },
            &[("old", 70), ("middle", 70), ("new", 70)],
        );
        check(Retention { max_age: hours(0), keep_records: 100, ..Retention::default() }, &[]);
    }
}
