//! The one task that appends.

use std::{sync::Arc, time::Duration};

use taffrail_mcp_core::Seq;
use taffrail_relay::{Appended, StoreError};
use tokio::{
    sync::{mpsc::UnboundedReceiver, oneshot},
    time::timeout,
};
use tracing::debug;

use crate::{
    batch::{APPEND, Batch},
    conn::Conn,
    fault::Fault,
    prepare::Prepared,
    signal::Signal,
    target::Target,
};

/// Groups are merged into one statement up to this size, in bytes.
const BATCH_BYTES: usize = 8 << 20;
/// How often a statement that collided with others is run again. Locks are taken in one order, so once is rare.
const COLLISIONS: usize = 10;

/// How long the loser of a numbering race is waited for: its caller only has to renumber.
const RETRY_WAIT: Duration = Duration::from_millis(5);

/// Gives back what the loser of a race has reserved.
const GIVE_BACK: &str = "SELECT pg_advisory_unlock_all()";

/// A group to be appended, and where the answer goes; nobody may be waiting any more.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) group: Vec<Prepared>,
    pub(crate) answer: oneshot::Sender<Result<Vec<Appended>, StoreError>>,
}

impl Job {
    fn size(&self) -> usize {
        self.group.iter().map(Prepared::size).sum()
    }
}

/// The writer's side of the store.
pub(crate) struct Writer {
    pub(crate) target: Arc<Target>,
    pub(crate) conn: Option<Conn>,
    pub(crate) signal: Arc<Signal>,
    /// An append of the last batch was a conflict, and its thread may be reserved for the next try.
    pub(crate) conflicted: bool,
}

impl Writer {
    /// Does jobs in their order until all senders are gone and all is done.
    ///
    /// One statement is under way at a time. While it is, others gather, and go together in the next one; what was
    /// handed over first is decided first, whatever happens to a connection.
    pub(crate) async fn run(mut self, mut jobs: UnboundedReceiver<Job>) {
        while let Some(first) = self.next(&mut jobs).await {
            let mut size = first.size();
            let mut batch = vec![first];
            while size < BATCH_BYTES
                && let Ok(job) = jobs.try_recv()
            {
                size += job.size();
                batch.push(job);
            }
            self.write(batch).await;
        }
    }

    /// Waits for a job. What is reserved for the loser of a race is given back when that does not come again at once.
    async fn next(&mut self, jobs: &mut UnboundedReceiver<Job>) -> Option<Job> {
        if self.conflicted {
            if let Ok(job) = timeout(RETRY_WAIT, jobs.recv()).await {
                return job;
            }
            self.conflicted = false;
            if let Some(conn) = self.conn.as_mut().filter(|conn| conn.is_usable())
                && conn.query(GIVE_BACK, &[]).await.is_err()
            {
                // Whatever is wrong with it, its end gives everything back.
                self.conn = None;
            }
        }
        jobs.recv().await
    }

    async fn write(&mut self, batch: Vec<Job>) {
        let appends: Vec<&Prepared> = batch.iter().flat_map(|job| &job.group).collect();
        match self.append(&appends).await {
            Ok(answers) => answer(batch, answers),
            // Somebody's data is at fault; the others shall not suffer from it.
            Err(fault) if fault.is_about_content() && batch.len() > 1 => {
                for job in batch {
                    let appends: Vec<&Prepared> = job.group.iter().collect();
                    let result = self.append(&appends).await.map_err(|fault| self.target.error("write to", fault));
                    // Whoever does not wait any more needs no answer, here and below.
                    let _ = job.answer.send(result);
                }
            }
            Err(fault) => {
                let error = self.target.error("write to", fault);
                for job in batch {
                    let _ = job.answer.send(Err(error.clone()));
                }
            }
        }
    }

    /// Applies appends in one transaction: all of them, or none. Tries again only what the server has told to be
    /// rolled back. A lost connection leaves open what became of it, and that is for the caller to find out.
    async fn append(&mut self, appends: &[&Prepared]) -> Result<Vec<Appended>, Fault> {
        if appends.is_empty() {
            return Ok(Vec::new());
        }
        // A second conflict in a row was not another process's doing.
        let again = std::mem::take(&mut self.conflicted);
        let batch = Batch::new(appends, again);
        let mut collisions = 0;
        loop {
            let conn = self.conn().await?;
            let fault = match conn.query(APPEND, &batch.params()).await {
                Ok(rows) => {
                    let answers = batch.in_order_of_calls(answers(&rows, appends.len())?);
                    let is_conflict = |answer: &Appended| matches!(answer, Appended::Conflict { .. });
                    self.conflicted = !again && answers.iter().any(is_conflict);
                    if answers.contains(&Appended::Stored) {
                        self.signal.appended();
                    }
                    return Ok(answers);
                }
                Err(fault) => fault,
            };
            if fault.is_connection_lost() {
                self.conn = None;
            }
            if !fault.is_collision() || collisions == COLLISIONS {
                return Err(fault);
            }
            collisions += 1;
            debug!(%fault, collisions, "an append collided with others and is tried again");
        }
    }

    /// The connection, made anew when it was lost.
    async fn conn(&mut self) -> Result<&mut Conn, Fault> {
        let usable = self.conn.take().filter(Conn::is_usable);
        let conn = match usable {
            Some(conn) => conn,
            None => Conn::open(&self.target, None).await?,
        };
        Ok(self.conn.insert(conn))
    }
}

/// What the function answered.
fn answers(rows: &[tokio_postgres::Row], count: usize) -> Result<Vec<Appended>, Fault> {
    let odd = || Fault::Damaged("the function `append` gave an answer that it cannot give".into());
    let row = rows.first().ok_or_else(odd)?;
    let Some(kinds) = row.try_get::<_, Option<Vec<i16>>>(0)? else { return Ok(vec![Appended::Stored; count]) };
    let heads: Vec<i64> = row.try_get(1)?;
    let claimed: Vec<Option<&[u8]>> = row.try_get(2)?;
    if [kinds.len(), heads.len(), claimed.len()] != [count; 3] {
        return Err(odd());
    }
    let each = kinds.iter().zip(heads).zip(claimed).map(|((kind, head), value)| {
        Ok(match (kind, value) {
            (0, _) => Appended::Stored,
            (1, _) => Appended::Conflict { head: Seq(u64::try_from(head).map_err(|_| odd())?) },
            (2, Some(value)) => Appended::Claimed { value: String::from_utf8_lossy(value).into_owned() },
            _ => return Err(odd()),
        })
    });
    each.collect()
}

/// Gives each job its part of the answers.
fn answer(batch: Vec<Job>, answers: Vec<Appended>) {
    let mut answers = answers.into_iter();
    for job in batch {
        let own = answers.by_ref().take(job.group.len()).collect();
        let _ = job.answer.send(Ok(own));
    }
}
