//! A store in memory: for tests, for logs that need not outlive the process, and as the shortest example of a store.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
};

use taffrail_mcp_core::{BoxFuture, RunFold, RunId, Seq, ThreadId, Timestamp};
use tokio::sync::watch;

use crate::{
    Append, Appended, Block, Extent, ListRuns, ReadBlocks, ReadWindow, Store, StoreError, ThreadUsage, Trimmed, Window,
    hot::lock,
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
    /// By a number that counts them in the order they were started.
    runs: BTreeMap<u64, RunFold>,
    numbers: HashMap<RunId, u64>,
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
            let new = self.runs.last_key_value().map_or(0, |(last, _)| last + 1);
            let number = *self.numbers.entry(fold.run.clone()).or_insert(new);
            self.runs.insert(number, fold);
        }
        Appended::Stored
    }

    fn run(&self, run: &RunId) -> Option<&RunFold> {
        self.runs.get(self.numbers.get(run)?)
    }

    fn read(&self, query: &ReadBlocks) -> Vec<Block> {
        let blocks = self.threads.get(&query.thread).map(|log| log.blocks.as_slice()).unwrap_or_default();
        // A thread's blocks are in order, so the wanted ones are found and not looked for.
        let start = blocks.partition_point(|block| block.last() <= query.after);
        let end = blocks.partition_point(|block| block.first <= query.until).max(start);
        let wanted = blocks.get(start..end).filter(|_| query.after < query.until).unwrap_or_default();
        let of_run = |block: &&Block| query.run.as_ref().is_none_or(|run| block.run == *run);
        let wanted: Box<dyn Iterator<Item = &Block>> = match query.backwards {
            true => Box::new(wanted.iter().rev().filter(of_run)),
            false => Box::new(wanted.iter().filter(of_run)),
        };
        let mut bytes = 0;
        let mut taken: Vec<Block> = wanted
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
        let before = query.before.as_ref().map(|before| self.numbers.get(before).copied().unwrap_or(0));
        self.runs
            .range(..before.unwrap_or(u64::MAX))
            .rev()
            .map(|(_, fold)| fold)
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
        self.answer(|state| state.run(&run).cloned())
    }

    fn window(&self, query: ReadWindow) -> Option<BoxFuture<'static, Result<Option<Window>, StoreError>>> {
        Some(self.answer(|state| {
            let fold = state.run(&query.run)?.clone();
            let extent = state.threads.get(&fold.thread).map(|log| log.extent).unwrap_or_default();
            let blocks = state.read(&query.of_thread(fold.thread.clone()));
            Some(Window { fold, extent, blocks })
        }))
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
            state.numbers.remove(&run).map(|number| state.runs.remove(&number));
            state.claims.retain(|_, (_, claimant)| *claimant != run);
        })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
