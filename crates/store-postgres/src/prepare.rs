//! The part of an append that needs a processor, done on the calling thread.

use memchr::memchr_iter;
use taffrail_mcp_core::{RunFold, RunId, ThreadId};
use taffrail_relay::{Append, Block, Claim};

use crate::{
    codec::{Packed, pack},
    fault::Fault,
};

/// Last position that fits the table.
pub(crate) const SEQ_MAX: u64 = i64::MAX as u64 - 1;
/// Largest block, in bytes of lines: a quarter of what a message to the server can hold. The relay's are a thousandth.
const BLOCK_MAX_BYTES: usize = 256 << 20;

/// An [`Append`], checked and ready to be written.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) thread: ThreadId,
    pub(crate) expected: i64,
    /// The head after it.
    pub(crate) head: i64,
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
    pub(crate) first: i64,
    pub(crate) count: i32,
    pub(crate) ts: i64,
    /// Bytes of the lines.
    pub(crate) raw: i32,
    pub(crate) packed: Packed,
}

/// One row of `runs`.
#[derive(Debug)]
pub(crate) struct RunRow {
    pub(crate) run: RunId,
    pub(crate) thread: ThreadId,
    pub(crate) status: &'static str,
    pub(crate) fold: Vec<u8>,
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
        let claimant = blocks.first().map(|b| &b.run).or(runs.first().map(|r| &r.run)).cloned();
        // A head that no thread can have stays one.
        let expected = expected.0.min(SEQ_MAX) as i64;
        let mut head = expected;
        let mut rows = Vec::with_capacity(blocks.len());
        for block in blocks {
            let row = BlockRow::new(block, &thread, head).map_err(Fault::Refused)?;
            head += i64::from(row.count);
            rows.push(row);
        }
        let runs = runs.into_iter().map(RunRow::new).collect::<Result<_, _>>()?;
        Ok(Self { thread, expected, head, rows, runs, claim, claimant })
    }

    /// About how much it adds to a statement, in bytes.
    pub(crate) fn size(&self) -> usize {
        let rows: usize = self.rows.iter().map(|row| row.packed.bytes.len() + 64).sum();
        let runs: usize = self.runs.iter().map(|run| run.fold.len() + 64).sum();
        rows + runs
    }

    /// Bytes of its lines.
    pub(crate) fn raw(&self) -> i64 {
        self.rows.iter().map(|row| i64::from(row.raw)).sum()
    }

    /// Bytes that its lines take.
    pub(crate) fn stored(&self) -> i64 {
        // A length fits.
        self.rows.iter().map(|row| row.packed.bytes.len() as i64).sum()
    }

    /// Time of its last record.
    pub(crate) fn updated(&self) -> Option<i64> {
        self.rows.last().map(|row| row.ts)
    }
}

impl BlockRow {
    /// The row of a block that must follow `head`.
    fn new(block: Block, thread: &ThreadId, head: i64) -> Result<Self, String> {
        let Block { run, first, count, ts, bytes } = block;
        // Not negative: it is a clamped position, plus what was checked here.
        let next = head as u64 + 1;
        if first.0 != next {
            return Err(format!("a block begins at {first} where {next} is next"));
        }
        let room = SEQ_MAX - head as u64;
        let fits = i32::try_from(count).ok().filter(|_| (1..=room).contains(&count));
        let Some(rows) = fits else { return Err(format!("a block of {count} records at {first}")) };
        if bytes.len() > BLOCK_MAX_BYTES {
            return Err(format!("a block of {} bytes at {first}", bytes.len()));
        }
        let lines = memchr_iter(b'\n', &bytes).count() as u64;
        if lines != count || bytes.last() != Some(&b'\n') {
            return Err(format!("a block of {count} records at {first} has {lines} lines"));
        }
        Ok(Self {
            run: (run.as_str() != thread.as_str()).then_some(run),
            first: next as i64,
            count: rows,
            ts: ts.micros() as i64,
            raw: bytes.len() as i32,
            packed: pack(bytes),
        })
    }
}

impl RunRow {
    fn new(fold: RunFold) -> Result<Self, Fault> {
        let json = serde_json::to_vec(&fold).map_err(|e| Fault::Refused(format!("run {}: {e}", fold.run)))?;
        Ok(Self { status: fold.status.as_str(), run: fold.run, thread: fold.thread, fold: json })
    }
}
