//! A store in memory, as `docs/store-from-scratch.md` builds it.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

use taffrail_mcp_core::{BoxFuture, RunFold, RunId, Seq, ThreadId, Timestamp};
use taffrail_relay::{Append, Appended, Block, Extent, ListRuns, ReadBlocks, Store, StoreError, ThreadUsage, Trimmed};
use tokio::sync::watch;

/// Keeps logs until the process ends.
#[derive(Debug, Default)]
pub(crate) struct Notebook {
    state: Mutex<State>,
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    threads: HashMap<ThreadId, Thread>,
    /// In the order in which they began.
    runs: Vec<RunFold>,
    /// The value, and the run that took it.
    claims: BTreeMap<String, (String, RunId)>,
}

#[derive(Debug, Default)]
struct Thread {
    blocks: Vec<Block>,
    /// Stays when the blocks go: numbers are never used again.
    head: Seq,
    updated: Timestamp,
    trimmed: Trimmed,
}

impl State {
    fn append(&mut self, append: Append) -> Appended {
        let Append { thread, expected, blocks, runs, claim } = append;
        if let Some((value, _)) = claim.as_ref().and_then(|claim| self.claims.get(&claim.key)) {
            return Appended::Claimed { value: value.clone() };
        }
        // Looking at a thread must not make it.
        let head = self.threads.get(&thread).map(|log| log.head).unwrap_or_default();
        if head != expected || !follow_each_other(expected, &blocks) {
            return Appended::Conflict { head };
        }
        if let (Some(claim), Some(block)) = (claim, blocks.first()) {
            self.claims.insert(claim.key, (claim.value, block.run.clone()));
        }
        let log = self.threads.entry(thread).or_default();
        if let Some(last) = blocks.last() {
            (log.head, log.updated) = (last.last(), last.ts);
        }
        log.blocks.extend(blocks);
        for fold in runs {
            match self.runs.iter_mut().find(|known| known.run == fold.run) {
                Some(known) => *known = fold,
                None => self.runs.push(fold),
            }
        }
        Appended::Stored
    }
}

/// Whatever a caller does, a thread's positions stay dense.
fn follow_each_other(expected: Seq, blocks: &[Block]) -> bool {
    let mut end = expected;
    blocks.iter().all(|block| {
        let follows = block.count > 0 && block.first == end.next();
        end = block.last();
        follows
    })
}

impl State {
    fn read(&self, query: &ReadBlocks) -> Vec<Block> {
        let ReadBlocks { thread, after, until, run, max_bytes, backwards } = query;
        let all = self.threads.get(thread).map(|log| log.blocks.as_slice()).unwrap_or_default();
        let wanted = all
            .iter()
            .filter(|block| after < until && block.last() > *after && block.first <= *until)
            .filter(|block| run.as_ref().is_none_or(|run| block.run == *run));
        let mut bytes = 0;
        let mut full = |block: &&Block| {
            let more = bytes < (*max_bytes).max(1);
            bytes += block.bytes.len();
            more
        };
        if !backwards {
            return wanted.take_while(&mut full).cloned().collect();
        }
        let mut taken: Vec<Block> = wanted.rev().take_while(&mut full).cloned().collect();
        taken.reverse();
        taken
    }
}

impl State {
    fn extent(&self, thread: &ThreadId) -> Extent {
        self.threads.get(thread).map(Thread::extent).unwrap_or_default()
    }

    fn trim(&mut self, thread: &ThreadId, through: Seq) -> Trimmed {
        let Some(log) = self.threads.get_mut(thread) else { return Trimmed::default() };
        let gone = log.blocks.partition_point(|block| block.last() <= through);
        let mut removed = Trimmed::default();
        for block in log.blocks.drain(..gone) {
            removed.records += block.count;
            removed.bytes += block.bytes.len() as u64;
        }
        log.trimmed.records += removed.records;
        log.trimmed.bytes += removed.bytes;
        removed
    }

    fn usage(&self) -> Vec<ThreadUsage> {
        let mut all: Vec<ThreadUsage> = self.threads.iter().map(|(thread, log)| log.usage(thread)).collect();
        all.sort_by_key(|usage| usage.updated);
        all
    }
}

impl Thread {
    fn extent(&self) -> Extent {
        let first = self.blocks.first().map_or(self.head.next(), |block| block.first);
        Extent { first, head: self.head }
    }

    fn usage(&self, thread: &ThreadId) -> ThreadUsage {
        let bytes = self.blocks.iter().map(|block| block.bytes.len() as u64).sum();
        ThreadUsage {
            thread: thread.clone(),
            extent: self.extent(),
            bytes,
            stored_bytes: bytes,
            updated: self.updated,
            trimmed: self.trimmed,
        }
    }
}

impl State {
    fn list(&self, query: &ListRuns) -> Vec<RunFold> {
        let ListRuns { status, thread, before, limit } = query;
        let mut newest_first = self.runs.iter().rev();
        if let Some(before) = before {
            // Goes on behind the one that is named.
            newest_first.by_ref().find(|fold| fold.run == *before);
        }
        newest_first
            .filter(|fold| status.is_empty() || status.contains(&fold.status))
            .filter(|fold| thread.as_ref().is_none_or(|thread| fold.thread == *thread))
            .take(if *limit == 0 { 100 } else { *limit })
            .cloned()
            .collect()
    }

    /// The run and its claims; its records stay until they are trimmed.
    fn forget(&mut self, run: &RunId) {
        self.runs.retain(|fold| fold.run != *run);
        self.claims.retain(|_, (_, owner)| owner != run);
    }
}

impl Notebook {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing here leaves half a change behind when it panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ready<T: Send + 'static>(value: T) -> BoxFuture<'static, Result<T, StoreError>> {
    Box::pin(std::future::ready(Ok(value)))
}

impl Store for Notebook {
    fn append(&self, group: Vec<Append>) -> BoxFuture<'static, Result<Vec<Appended>, StoreError>> {
        let mut state = self.lock();
        let answers = group.into_iter().map(|append| state.append(append)).collect();
        drop(state);
        self.changes.send_modify(|change| *change += 1);
        ready(answers)
    }

    fn read(&self, query: ReadBlocks) -> BoxFuture<'static, Result<Vec<Block>, StoreError>> {
        ready(self.lock().read(&query))
    }

    fn extent(&self, thread: ThreadId) -> BoxFuture<'static, Result<Extent, StoreError>> {
        ready(self.lock().extent(&thread))
    }

    fn run(&self, run: RunId) -> BoxFuture<'static, Result<Option<RunFold>, StoreError>> {
        ready(self.lock().runs.iter().find(|fold| fold.run == run).cloned())
    }

    fn runs(&self, query: ListRuns) -> BoxFuture<'static, Result<Vec<RunFold>, StoreError>> {
        ready(self.lock().list(&query))
    }

    fn claim(&self, key: String) -> BoxFuture<'static, Result<Option<String>, StoreError>> {
        ready(self.lock().claims.get(&key).map(|(value, _)| value.clone()))
    }

    fn threads(&self) -> BoxFuture<'static, Result<Vec<ThreadUsage>, StoreError>> {
        ready(self.lock().usage())
    }

    fn trim(&self, thread: ThreadId, through: Seq) -> BoxFuture<'static, Result<Trimmed, StoreError>> {
        ready(self.lock().trim(&thread, through))
    }

    fn forget(&self, run: RunId) -> BoxFuture<'static, Result<(), StoreError>> {
        self.lock().forget(&run);
        ready(())
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
