//! The one thread that writes.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{Receiver, RecvTimeoutError, TryRecvError},
    },
    time::Duration,
};

use rusqlite::{Connection, TransactionBehavior};
use taffrail_mcp_core::{RunId, Seq, ThreadId};
use taffrail_relay::{Appended, StoreError, Trimmed};
use tokio::sync::oneshot;

use crate::{
    apply,
    checkpoint::{Checkpointer, checkpoint},
    db::Db,
    fault::Fault,
    prepare::Prepared,
    turnstile::Turnstile,
};

/// Groups are merged into one transaction up to this size, in bytes: its pages stay in memory until the commit.
const BATCH_BYTES: usize = 8 << 20;

/// How long the loser of a numbering race is waited for: its caller only has to renumber.
const RETRY_WAIT: Duration = Duration::from_millis(2);

/// Where an answer goes; nobody may be waiting any more.
pub(crate) type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

/// Something to be done by the writer.
#[derive(Debug)]
pub(crate) enum Job {
    Append { group: Vec<Prepared>, answer: Answer<Vec<Appended>> },
    Trim { thread: ThreadId, through: Seq, so_far: Trimmed, answer: Answer<Trimmed> },
    Forget { run: RunId, answer: Answer<()> },
}

impl Job {
    fn size(&self) -> usize {
        match self {
            Job::Append { group, .. } => group.iter().map(Prepared::size).sum(),
            // Ends the batch: it may free many pages.
            Job::Trim { .. } => BATCH_BYTES,
            Job::Forget { .. } => 0,
        }
    }
}

/// What became of a job, to be told after the commit.
enum Outcome {
    Appended(Vec<Appended>),
    Trimmed(Trimmed, bool),
    Forgotten,
}

impl Outcome {
    fn is_conflict(&self) -> bool {
        let Outcome::Appended(answers) = self else { return false };
        answers.iter().any(|answer| matches!(answer, Appended::Conflict { .. }))
    }
}

/// The writer's side of the store.
pub(crate) struct Writer {
    pub(crate) db: Arc<Db>,
    pub(crate) conn: Connection,
    pub(crate) turnstile: Turnstile,
    pub(crate) checkpointer: Checkpointer,
    /// An append of the last transaction was a conflict, and the turnstile is still held for its next try.
    pub(crate) conflicted: bool,
}

impl Writer {
    /// Does jobs in their order until all senders are gone and all is done.
    pub(crate) fn run(mut self, jobs: &Receiver<Job>) {
        let wal_bytes = self.watch_wal();
        // Trims that are not finished; they go on behind what has come in meanwhile.
        let mut again = VecDeque::new();
        loop {
            let batch = match next_batch(jobs, &mut again, self.conflicted) {
                Next::Batch(batch) => batch,
                Next::Nothing => {
                    self.conflicted = false;
                    self.turnstile.leave();
                    continue;
                }
                Next::End => break,
            };
            let outcomes = self.commit(&batch);
            answer(batch, outcomes, &mut again);
            self.checkpointer.written(wal_bytes.load(Relaxed));
        }
        let Self { conn, checkpointer, .. } = self;
        drop(checkpointer);
        // The last connection of all processes does this by itself; now nobody else should have to read a long log.
        // Not worth waiting for.
        let _ = conn.busy_timeout(std::time::Duration::ZERO);
        checkpoint(&conn, "TRUNCATE");
    }

    /// Keeps the length of the write-ahead log as of the last commit, in bytes.
    fn watch_wal(&mut self) -> Arc<AtomicU64> {
        let page = self.conn.pragma_query_value(None, "page_size", |row| row.get(0)).unwrap_or(4096);
        let bytes = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&bytes);
        let hook = move |_: &mut rusqlite::hooks::Wal, pages: std::ffi::c_int| {
            seen.store(u64::try_from(pages).unwrap_or(0) * page, Relaxed);
            Ok(())
        };
        if let Err(error) = self.conn.wal_hook(Some(hook)) {
            tracing::warn!(%error, "the write-ahead log is not watched and may grow");
        }
        bytes
    }

    /// Does a batch in one transaction: all of it, or nothing.
    fn commit(&mut self, batch: &[Job]) -> Result<Vec<Outcome>, StoreError> {
        self.try_commit(batch).map_err(|fault| {
            self.conflicted = false;
            self.turnstile.leave();
            self.db.error("write", fault)
        })
    }

    fn try_commit(&mut self, batch: &[Job]) -> Result<Vec<Outcome>, Fault> {
        self.turnstile.pass();
        // Rolls back when dropped.
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // A second conflict in a row was not another process's doing.
        let had_conflict = std::mem::take(&mut self.conflicted);
        let mut outcomes = Vec::with_capacity(batch.len());
        for job in batch {
            outcomes.push(match job {
                Job::Append { group, .. } => {
                    Outcome::Appended(group.iter().map(|a| apply::append(&tx, a)).collect::<Result<_, _>>()?)
                }
                Job::Trim { thread, through, .. } => {
                    let (removed, done) = apply::trim(&tx, thread, *through)?;
                    Outcome::Trimmed(removed, done)
                }
                Job::Forget { run, .. } => {
                    apply::forget(&tx, run)?;
                    Outcome::Forgotten
                }
            });
        }
        self.conflicted = !had_conflict && outcomes.iter().any(Outcome::is_conflict);
        if !self.conflicted {
            // Before the commit, so that whoever waits is next, not we again.
            self.turnstile.leave();
        }
        tx.commit()?;
        Ok(outcomes)
    }
}

/// What there is to do.
enum Next {
    Batch(Vec<Job>),
    /// Not even `RETRY_WAIT` later.
    Nothing,
    /// All senders are gone and all is done.
    End,
}

/// Waits for a job, `briefly` or for ever, and takes all that are there, up to `BATCH_BYTES`.
fn next_batch(jobs: &Receiver<Job>, again: &mut VecDeque<Job>, briefly: bool) -> Next {
    let mut batch = Vec::new();
    let mut size = 0;
    if again.is_empty() {
        let first = if briefly {
            jobs.recv_timeout(RETRY_WAIT)
        } else {
            jobs.recv().map_err(|_| RecvTimeoutError::Disconnected)
        };
        match first {
            Ok(job) => push(&mut batch, &mut size, job),
            Err(RecvTimeoutError::Timeout) => return Next::Nothing,
            Err(RecvTimeoutError::Disconnected) => return Next::End,
        }
    }
    while size < BATCH_BYTES {
        match jobs.try_recv() {
            Ok(job) => push(&mut batch, &mut size, job),
            Err(TryRecvError::Empty) => break,
            Err(TryRecvError::Disconnected) => {
                // The store is being closed: an unfinished trim can go on another day.
                again.clear();
                break;
            }
        }
    }
    // However much comes in, a trim goes on: it makes the room for it.
    batch.extend(again.pop_front());
    if batch.is_empty() { Next::End } else { Next::Batch(batch) }
}

fn push(batch: &mut Vec<Job>, size: &mut usize, job: Job) {
    *size += job.size();
    batch.push(job);
}

/// Tells everybody what became of their job. A receiver that is gone is nobody's loss.
fn answer(batch: Vec<Job>, outcomes: Result<Vec<Outcome>, StoreError>, again: &mut VecDeque<Job>) {
    let outcomes = match outcomes {
        Ok(outcomes) => outcomes,
        Err(error) => {
            for job in batch {
                match job {
                    Job::Append { answer, .. } => drop(answer.send(Err(error.clone()))),
                    Job::Trim { answer, .. } => drop(answer.send(Err(error.clone()))),
                    Job::Forget { answer, .. } => drop(answer.send(Err(error.clone()))),
                }
            }
            return;
        }
    };
    for (job, outcome) in batch.into_iter().zip(outcomes) {
        match (job, outcome) {
            (Job::Append { answer, .. }, Outcome::Appended(answers)) => drop(answer.send(Ok(answers))),
            (Job::Forget { answer, .. }, Outcome::Forgotten) => drop(answer.send(Ok(()))),
            (Job::Trim { thread, through, so_far, answer }, Outcome::Trimmed(removed, done)) => {
                let so_far = Trimmed { records: so_far.records + removed.records, bytes: so_far.bytes + removed.bytes };
                if done {
                    drop(answer.send(Ok(so_far)));
                } else {
                    again.push_back(Job::Trim { thread, through, so_far, answer });
                }
            }
            // `commit` makes outcomes of the same kind in the same order; the answer is dropped, which is an error.
            _ => {}
        }
    }
}
