//! The store itself: hands work to the writer and to readers.

use std::{
    path::Path,
    sync::{Arc, mpsc},
    thread::{Builder, JoinHandle},
};

use taffrail_mcp_core::{BoxFuture, RunFold, RunId, Seq, ThreadId};
use taffrail_relay::{
    Append, Appended, Block, Extent, ListRuns, ReadBlocks, ReadWindow, Store, StoreError, ThreadUsage, Trimmed, Window,
};
use tokio::sync::{oneshot, watch};

use crate::{
    Config, apply,
    checkpoint::Checkpointer,
    db::Db,
    fault::{Fault, io_error},
    poll::Changes,
    pool::Pool,
    prepare::Prepared,
    query, schema,
    writer::{Answer, Job, Writer},
};

/// A [`Store`] in one SQLite file.
///
/// Needs no async runtime of its own; reads use Tokio's blocking threads when they are polled inside one. Two threads
/// (writer, checkpoints) live as long as the value, a third one while somebody holds a receiver of
/// [`Store::changes`]. Beside the file stand `-wal` and `-shm`, which go when the last process closes it properly, and
/// `-turn`, an empty file that stays.
///
/// Dropping it writes what was handed over, waits for that, and copies the write-ahead log into the file: usually a few
/// milliseconds. A trim that is not finished stops where it is.
#[derive(Debug)]
pub struct SqliteStore {
    db: Arc<Db>,
    pool: Arc<Pool>,
    changes: Changes,
    jobs: Option<mpsc::Sender<Job>>,
    writer: Option<JoinHandle<()>>,
}

impl SqliteStore {
    /// Opens the store at `path`, and makes it, readable by its owner only, when there is no file. The folder must
    /// exist. Any number of processes may do this at once. Blocks for a few milliseconds.
    ///
    /// # Errors
    ///
    /// - [`StoreError::Corrupt`] when the file is not a database, is another program's, or is damaged;
    /// - [`StoreError::Newer`] when a newer version of this crate made it;
    /// - [`StoreError::ReadOnly`], [`StoreError::Full`] when it cannot be made or written;
    /// - [`StoreError::Unavailable`] for all else: a missing folder, a process that holds it for longer than
    ///   [`Config::busy_timeout`].
    ///
    /// In all these cases a file that was there is as it was.
    pub fn open(path: impl AsRef<Path>, config: Config) -> Result<Self, StoreError> {
        let db = Arc::new(Db::new(path.as_ref(), config)?);
        let (conn, turnstile) = schema::prepare(&db)?;
        let checkpointer = Checkpointer::start(&db)?;
        let (jobs, queue) = mpsc::channel();
        let writer = Writer { db: Arc::clone(&db), conn, turnstile, checkpointer, conflicted: false };
        let writer = Builder::new().name("sqlite-writer".into()).spawn(move || writer.run(&queue));
        let writer = writer.map_err(|e| io_error(&db.path, "start a thread for", e))?;
        Ok(Self {
            pool: Arc::new(Pool::new(Arc::clone(&db))),
            changes: Changes::new(Arc::clone(&db)),
            db,
            jobs: Some(jobs),
            writer: Some(writer),
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.db.path
    }

    /// Puts a job into the writer's queue, now, and gives a future that waits for the answer.
    fn enqueue<T: Send + 'static>(
        &self,
        job: impl FnOnce(Answer<T>) -> Result<Job, Fault>,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let (answer, answered) = oneshot::channel();
        let queued = job(answer).map_err(|fault| self.db.error("append to", fault)).and_then(|job| {
            let jobs = self.jobs.as_ref().ok_or(StoreError::Closed)?;
            jobs.send(job).map_err(|_| StoreError::Closed)
        });
        Box::pin(async move {
            queued?;
            answered.await.map_err(|_| StoreError::Closed)?
        })
    }

    fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&rusqlite::Connection) -> Result<T, Fault> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        Box::pin(Arc::clone(&self.pool).query("read", query))
    }
}

impl Store for SqliteStore {
    fn append(&self, group: Vec<Append>) -> BoxFuture<'static, Result<Vec<Appended>, StoreError>> {
        self.enqueue(|answer| {
            let group = group.into_iter().map(Prepared::new).collect::<Result<_, _>>()?;
            Ok(Job::Append { group, answer })
        })
    }

    fn read(&self, query: ReadBlocks) -> BoxFuture<'static, Result<Vec<Block>, StoreError>> {
        self.query(move |conn| query::read(conn, &query))
    }

    fn extent(&self, thread: ThreadId) -> BoxFuture<'static, Result<Extent, StoreError>> {
        self.query(move |conn| query::extent(conn, &thread))
    }

    fn run(&self, run: RunId) -> BoxFuture<'static, Result<Option<RunFold>, StoreError>> {
        self.query(move |conn| query::run(conn, &run))
    }

    fn window(&self, query: ReadWindow) -> Option<BoxFuture<'static, Result<Option<Window>, StoreError>>> {
        Some(self.query(move |conn| {
            // One view of all three, and one lock.
            let _view = conn.unchecked_transaction()?;
            let Some(fold) = query::run(conn, &query.run)? else { return Ok(None) };
            let extent = query::extent(conn, &fold.thread)?;
            let blocks = query::read(conn, &query.of_thread(fold.thread.clone()))?;
            Ok(Some(Window { fold, extent, blocks }))
        }))
    }

    fn runs(&self, query: ListRuns) -> BoxFuture<'static, Result<Vec<RunFold>, StoreError>> {
        self.query(move |conn| query::runs(conn, &query))
    }

    fn claim(&self, key: String) -> BoxFuture<'static, Result<Option<String>, StoreError>> {
        self.query(move |conn| apply::claimed(conn, &key))
    }

    fn threads(&self) -> BoxFuture<'static, Result<Vec<ThreadUsage>, StoreError>> {
        self.query(query::threads)
    }

    fn trim(&self, thread: ThreadId, through: Seq) -> BoxFuture<'static, Result<Trimmed, StoreError>> {
        self.enqueue(|answer| Ok(Job::Trim { thread, through, so_far: Trimmed::default(), answer }))
    }

    fn forget(&self, run: RunId) -> BoxFuture<'static, Result<(), StoreError>> {
        self.enqueue(|answer| Ok(Job::Forget { run, answer }))
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // Readers first: the last connection that closes tidies up, and only the writer's can.
        self.changes.close();
        self.pool.close();
        self.jobs = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}
