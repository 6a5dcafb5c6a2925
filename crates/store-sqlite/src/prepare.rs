//! The part of an append that needs a processor, done on the calling thread.

use memchr::memchr_iter;
use taffrail_mcp_core::{RunFold, RunId, Seq, ThreadId};
use taffrail_relay::{Append, Block, Claim};

use crate::{
    codec::{Packed, pack},
    fault::Fault,
    schema::SEQ_MAX,
};

/// An [`Append`], checked and ready to be written.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) thread: ThreadId,
    pub(crate) expected: Seq,
    /// The head after it.
    pub(crate) head: Seq,
    pub(crate) rows: Vec<BlockRow>,
    pub(crate) runs: Vec<RunRow>,
    pub(crate) claim: Option<Claim>,
    /// The run that a claim goes with.
    pub(crate) claimant: Option<RunId>,
}

/// One row of `blocks`.
#[derive(Debug)]
pub(crate) struct BlockRow {
    /// `None` when it is named as its thread.
    pub(crate) run: Option<RunId>,
    pub(crate) first: u64,
    pub(crate) count: u64,
    pub(crate) ts: u64,
    /// Bytes of the lines.
    pub(crate) raw: u64,
    pub(crate) packed: Packed,
}

/// One row of `runs`.
#[derive(Debug)]
pub(crate) struct RunRow {
    pub(crate) run: RunId,
    pub(crate) thread: ThreadId,
    pub(crate) status: &'static str,
    pub(crate) fold: String,
}

impl Prepared {
    /// Checks and compresses.
    ///
    /// # Errors
    ///
    /// [`Fault::Refused`] when the blocks are not consecutive lines after `expected`: no answer of the contract fits,
    /// and storing them would leave a hole.
    pub(crate) fn new(append: Append) -> Result<Self, Fault> {
        let Append { thread, expected, blocks, runs, claim } = append;
        let mut head = expected;
        let claimant = blocks.first().map(|b| &b.run).or(runs.first().map(|r| &r.run)).cloned();
        let mut rows = Vec::with_capacity(blocks.len());
        for block in blocks {
            check(&block, head).map_err(Fault::Refused)?;
            head = block.last();
            rows.push(BlockRow::new(block, &thread));
        }
        let runs = runs.into_iter().map(RunRow::new).collect::<Result<_, _>>()?;
        Ok(Self { thread, expected, head, rows, runs, claim, claimant })
    }

    /// About how much it adds to a transaction, in bytes.
    pub(crate) fn size(&self) -> usize {
        let rows: usize = self.rows.iter().map(|row| row.packed.bytes().len() + 64).sum();
        let runs: usize = self.runs.iter().map(|run| run.fold.len() + 64).sum();
        rows + runs
    }
}

fn check(block: &Block, head: Seq) -> Result<(), String> {
    let Block { first, count, bytes, .. } = block;
    if *first != head.next() {
        return Err(format!("a block begins at {first} where {} is next", head.next()));
    }
    if *count == 0 || first.0.checked_add(count - 1).is_none_or(|last| last > SEQ_MAX) {
        return Err(format!("a block of {count} records at {first}"));
    }
    let lines = memchr_iter(b'\n', bytes).count() as u64;
    if lines != *count || bytes.last() != Some(&b'\n') {
        return Err(format!("a block of {count} records at {first} has {lines} lines"));
    }
    Ok(())
}

impl BlockRow {
    fn new(block: Block, thread: &ThreadId) -> Self {
        let Block { run, first, count, ts, bytes } = block;
        let run = (run.as_str() != thread.as_str()).then_some(run);
        Self { run, first: first.0, count, ts: ts.micros(), raw: bytes.len() as u64, packed: pack(bytes) }
    }
}

impl RunRow {
    fn new(fold: RunFold) -> Result<Self, Fault> {
        let json = serde_json::to_string(&fold).map_err(|e| Fault::Refused(format!("run {}: {e}", fold.run)))?;
        Ok(Self { status: fold.status.as_str(), run: fold.run, thread: fold.thread, fold: json })
    }
}
