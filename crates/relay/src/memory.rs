//! A store in memory: for tests, for logs that need not outlive the process, and as the shortest example of a store.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
};

use taffrail_mcp_core::{BoxFuture, RunFold, RunId, Seq, ThreadId, Timestamp};
use tokio::sync::watch;

use crate::{
    Append, Appended, Block, Extent, ListRuns, ReadBlocks, Store, StoreError, ThreadUsage, Trimmed, hot::lock,
};

/// Keeps everything in memory: nothing survives the process. A clone is the same store.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    changes: Arc<watch::Sender<u64>>,
}

#[derive(Debug, Default)]
struct State {
    threads: HashMap<ThreadId, Thread>,
    /// In the order they were started.
    runs: Vec<RunFold>,
    claims: BTreeMap<String, (String, RunId)>,
}

#[derive(Debug, Default)]
struct Thread {
    blocks: Vec<Block>,
    extent: Extent,
    updated: Timestamp,
    trimmed: Trimmed,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn answer<T: Send + 'static>(&self, f: impl FnOnce(&mut State) -> T) -> BoxFuture<'static, Result<T, StoreError>> {
        let value = f(&mut lock(&self.state));
        Box::pin(std::future::ready(Ok(value)))
    }
}

impl State {
    fn append(&mut self, append: Append) -> Appended {
        let Append { thread, expected, blocks, runs, claim } = append;
        if let Some((value, _)) = claim.as_ref().and_then(|claim| self.claims.get(&claim.key)) {
            return Appended::Claimed { value: value.clone() };
        }
        let log = self
            .threads
            .entry(thread)
            .or_insert_with(|| Thread { extent: Extent { first: Seq(1), head: Seq::START }, ..Thread::default() });
        let mut end = expected;
        let consecutive = blocks.iter().all(|block| {
            let follows = block.first == end.next() && block.count > 0;
            end = block.last();
            follows
        });
        if log.extent.head != expected || !consecutive {
            return Appended::Conflict { head: log.extent.head };
        }
        if let (Some(claim), Some(block)) = (claim, blocks.first()) {
            self.claims.insert(claim.key, (claim.value, block.run.clone()));
        }
        if let Some(last) = blocks.last() {
            log.extent.head = last.last();
            log.updated = last.ts;
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

    fn read(&self, query: &ReadBlocks) -> Vec<Block> {
        let blocks = self.threads.get(&query.thread).map(|log| log.blocks.as_slice()).unwrap_or_default();
        let mut wanted: Vec<&Block> = blocks
            .iter()
            .filter(|b| query.after < query.until && b.last() > query.after && b.first <= query.until)
            .filter(|b| query.run.as_ref().is_none_or(|run| b.run == *run))
            .collect();
        if query.backwards {
            wanted.reverse();
        }
        let mut bytes = 0;
        let mut taken: Vec<Block> = wanted
            .into_iter()
            .take_while(|block| {
                let fits = bytes < query.max_bytes.max(1);
                bytes += block.bytes.len();
                fits
            })
            .cloned()
            .collect();
        if query.backwards {
            taken.reverse();
        }
        taken
    }

    fn trim(&mut self, thread: &ThreadId, through: Seq) -> Trimmed {
        let Some(log) = self.threads.get_mut(thread) else { return Trimmed::default() };
        let keep = log.blocks.partition_point(|block| block.last() <= through);
        let mut removed = Trimmed::default();
        for block in log.blocks.drain(..keep) {
            removed.records += block.count;
            removed.bytes += block.bytes.len() as u64;
        }
        log.extent.first = log.blocks.first().map_or(log.extent.head.next(), |block| block.first);
        log.trimmed.records += removed.records;
        log.trimmed.bytes += removed.bytes;
        removed
    }

    fn list(&self, query: &ListRuns) -> Vec<RunFold> {
        let newest_first = self.runs.iter().rev();
        let past = |fold: &&RunFold| query.before.as_ref().is_some_and(|before| fold.run != *before);
        let skip = if query.before.is_some() { newest_first.clone().take_while(past).count() + 1 } else { 0 };
        newest_first
            .skip(skip)
            .filter(|fold| query.status.is_empty() || query.status.contains(&fold.status))
            .filter(|fold| query.thread.as_ref().is_none_or(|thread| fold.thread == *thread))
            .take(if query.limit == 0 { 100 } else { query.limit })
            .cloned()
            .collect()
    }

    fn usage(&self) -> Vec<ThreadUsage> {
        let mut all: Vec<ThreadUsage> = self
            .threads
            .iter()
            .map(|(thread, log)| {
                let bytes = log.blocks.iter().map(|block| block.bytes.len() as u64).sum();
                let (extent, updated, trimmed) = (log.extent, log.updated, log.trimmed);
                ThreadUsage { thread: thread.clone(), extent, bytes, stored_bytes: bytes, updated, trimmed }
            })
            .collect();
        all.sort_by_key(|usage| usage.updated);
        all
    }
}

impl Store for MemoryStore {
    fn append(&self, group: Vec<Append>) -> BoxFuture<'static, Result<Vec<Appended>, StoreError>> {
        let answers = self.answer(|state| group.into_iter().map(|append| state.append(append)).collect());
        self.changes.send_modify(|change| *change += 1);
        answers
    }

    fn read(&self, query: ReadBlocks) -> BoxFuture<'static, Result<Vec<Block>, StoreError>> {
        self.answer(|state| state.read(&query))
    }

    fn extent(&self, thread: ThreadId) -> BoxFuture<'static, Result<Extent, StoreError>> {
        self.answer(|state| state.threads.get(&thread).map(|log| log.extent).unwrap_or_default())
    }

    fn run(&self, run: RunId) -> BoxFuture<'static, Result<Option<RunFold>, StoreError>> {
        self.answer(|state| state.runs.iter().find(|fold| fold.run == run).cloned())
    }

    fn runs(&self, query: ListRuns) -> BoxFuture<'static, Result<Vec<RunFold>, StoreError>> {
        self.answer(|state| state.list(&query))
    }

    fn claim(&self, key: String) -> BoxFuture<'static, Result<Option<String>, StoreError>> {
        self.answer(|state| state.claims.get(&key).map(|(value, _)| value.clone()))
    }

    fn threads(&self) -> BoxFuture<'static, Result<Vec<ThreadUsage>, StoreError>> {
        self.answer(|state| state.usage())
    }

    fn trim(&self, thread: ThreadId, through: Seq) -> BoxFuture<'static, Result<Trimmed, StoreError>> {
        self.answer(|state| state.trim(&thread, through))
    }

    fn forget(&self, run: RunId) -> BoxFuture<'static, Result<(), StoreError>> {
        self.answer(|state| {
            state.runs.retain(|fold| fold.run != run);
            state.claims.retain(|_, (_, claimant)| *claimant != run);
        })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
