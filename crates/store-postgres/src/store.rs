//! The store itself: hands work to the writer and to readers.

use std::{fmt, future::ready, sync::Arc};

use taffrail_mcp_core::{BoxFuture, RunFold, RunId, Seq, ThreadId};
use taffrail_relay::{
    Append, Appended, Block, Extent, ListRuns, ReadBlocks, ReadWindow, Store, StoreError, ThreadUsage, Trimmed, Window,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
};
use tokio_postgres::Row;

use crate::{
    Config,
    conn::Conn,
    fault::Fault,
    io::Io,
    pool::Pool,
    prepare::Prepared,
    query::{self, Question},
    schema,
    signal::Signal,
    target::Target,
    writer::{Job, Writer},
};

/// Blocks up to this many bytes of lines are decompressed where the read is awaited: that takes a quarter of a
/// millisecond. Larger reads go to a thread that may be kept busy.
const INLINE_BYTES: usize = 512 << 10;

/// A [`Store`] in one schema of a PostgreSQL database.
///
/// One thread talks to the server, over two connections that stay (one appends, one signals) and up to
/// [`Config::readers`] more that read, trim and keep leases. It needs no runtime of the caller. Lost connections are
/// made again, at the primary when the connection string names several servers.
///
/// Dropping it writes what was handed over and waits for that, at most 10 s. A trim that is not finished stops where
/// it is.
pub struct PostgresStore {
    target: Arc<Target>,
    pool: Arc<Pool>,
    signal: Arc<Signal>,
    jobs: Option<mpsc::UnboundedSender<Job>>,
    writer: Option<JoinHandle<()>>,
    signaller: Option<JoinHandle<()>>,
    io: Io,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (place, schema) = (&self.target.place, &self.target.schema);
        f.debug_struct("PostgresStore").field("place", place).field("schema", schema).finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Opens the store that a connection string names, and makes its schema when there is none. Any number of
    /// processes may do this at once.
    ///
    /// The connection string is a URL or `key=value` pairs, as libpq and `tokio-postgres` have them. It may name
    /// several servers: the one that takes writes is used. `sslmode` is `disable`, `prefer` (the default: encrypts
    /// when the server can, and believes it) or `require` (encrypts, and checks certificate and name; `verify-full` is
    /// the same). Ours are `schema` and `sslrootcert`.
    ///
    /// # Errors
    ///
    /// - [`StoreError::NewerSchema`] when a newer version of this crate made the schema;
    /// - [`StoreError::Damaged`] when the schema is another program's, or damaged;
    /// - [`StoreError::Unavailable`] for all else: a connection string that cannot be read, a server that is away or
    ///   older than PostgreSQL 13, a wrong password, a missing database or right.
    ///
    /// In all these cases the database is as it was. No error holds a password.
    pub async fn open(url: &str, config: Config) -> Result<Self, StoreError> {
        let target = Arc::new(Target::parse(url, config)?);
        let io = Io::start().map_err(|e| target.error("start a thread for", Fault::Refused(e.to_string())))?;
        let opening = {
            let target = Arc::clone(&target);
            io.spawn(async move {
                let told = |fault| target.error("open", fault);
                let mut conn = Conn::open(&target, None).await.map_err(told)?;
                schema::prepare(&mut conn, &target).await.map_err(told)?;
                Ok(conn)
            })
        };
        let conn = Io::joined(opening).await?;
        let signal = Arc::new(Signal::default());
        let signaller = io.spawn(Arc::clone(&signal).run(Arc::clone(&target)));
        let (jobs, queue) = mpsc::unbounded_channel();
        let writer =
            Writer { target: Arc::clone(&target), conn: Some(conn), signal: Arc::clone(&signal), conflicted: false };
        let writer = io.spawn(writer.run(queue));
        let pool = Arc::new(Pool::new(Arc::clone(&target)));
        Ok(Self { target, pool, signal, jobs: Some(jobs), writer: Some(writer), signaller: Some(signaller), io })
    }

    /// The database and its servers, for people: `database "taffrail" on db.example:5432`.
    pub fn place(&self) -> &str {
        &self.target.place
    }

    /// The schema that holds everything.
    pub fn schema(&self) -> &str {
        &self.target.schema
    }

    /// Asks something, now, and gives a future that waits for the answer and reads it.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        doing: &'static str,
        question: Question,
        read: impl FnOnce(&[Row]) -> Result<T, Fault> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let (pool, target) = (Arc::clone(&self.pool), Arc::clone(&self.target));
        let task = self.io.spawn(async move {
            let (sql, params) = question;
            pool.query(doing, sql, &params).await
        });
        Box::pin(async move {
            let rows = Io::joined(task).await?;
            read(&rows).map_err(|fault| target.error(doing, fault))
        })
    }

    /// The same for answers that have to be decompressed.
    fn ask_for_blocks<T: Send + 'static>(
        &self,
        question: Question,
        read: impl FnOnce(&[Row]) -> Result<T, Fault> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let (pool, target) = (Arc::clone(&self.pool), Arc::clone(&self.target));
        let blocking = self.io.blocking();
        let task = self.io.spawn(async move {
            let (sql, params) = question;
            pool.query("read", sql, &params).await
        });
        Box::pin(async move {
            let rows = Io::joined(task).await?;
            let told = move |fault| target.error("read", fault);
            if query::raw_bytes(&rows) <= INLINE_BYTES {
                return read(&rows).map_err(told);
            }
            Io::joined(blocking.spawn_blocking(move || read(&rows).map_err(told))).await
        })
    }
}

/// The first row, if there is one, as something.
fn first<T>(rows: &[Row], read: impl FnOnce(&Row) -> Result<T, Fault>) -> Result<Option<T>, Fault> {
    rows.first().map(read).transpose()
}

impl Store for PostgresStore {
    fn append(&self, group: Vec<Append>) -> BoxFuture<'static, Result<Vec<Appended>, StoreError>> {
        let (answer, wait) = oneshot::channel();
        let prepared = group.into_iter().map(Prepared::new).collect::<Result<Vec<_>, _>>();
        let handed_over = prepared.map_err(|fault| self.target.error("write to", fault)).and_then(|group| {
            let jobs = self.jobs.as_ref().ok_or(StoreError::Closed)?;
            jobs.send(Job { group, answer }).map_err(|_| StoreError::Closed)
        });
        Box::pin(async move {
            handed_over?;
            wait.await.unwrap_or(Err(StoreError::Closed))
        })
    }

    fn read(&self, query: ReadBlocks) -> BoxFuture<'static, Result<Vec<Block>, StoreError>> {
        match query::read(&query) {
            Some(question) => self.ask_for_blocks(question, move |rows| query::blocks(rows, &query)),
            None => Box::pin(ready(Ok(Vec::new()))),
        }
    }

    fn window(&self, query: ReadWindow) -> Option<BoxFuture<'static, Result<Option<Window>, StoreError>>> {
        Some(self.ask_for_blocks(query::window(&query), move |rows| query::windowed(rows, query)))
    }

    fn extent(&self, thread: ThreadId) -> BoxFuture<'static, Result<Extent, StoreError>> {
        self.ask("read", query::extents(&[thread]), |rows| Ok(first(rows, query::extent)?.unwrap_or_default()))
    }

    fn extents(&self, threads: Vec<ThreadId>) -> BoxFuture<'static, Result<Vec<Extent>, StoreError>> {
        self.ask("read", query::extents(&threads), |rows| rows.iter().map(query::extent).collect())
    }

    fn run(&self, run: RunId) -> BoxFuture<'static, Result<Option<RunFold>, StoreError>> {
        self.ask("read", query::run(&run), |rows| first(rows, query::fold))
    }

    fn runs(&self, query: ListRuns) -> BoxFuture<'static, Result<Vec<RunFold>, StoreError>> {
        self.ask("read", query::runs(query), |rows| rows.iter().map(query::fold).collect())
    }

    fn claim(&self, key: String) -> BoxFuture<'static, Result<Option<String>, StoreError>> {
        self.ask("read", query::claim(key), |rows| first(rows, query::text))
    }

    fn threads(&self) -> BoxFuture<'static, Result<Vec<ThreadUsage>, StoreError>> {
        self.ask("read", query::threads(), |rows| rows.iter().map(query::usage).collect())
    }

    fn trim(&self, thread: ThreadId, through: Seq) -> BoxFuture<'static, Result<Trimmed, StoreError>> {
        let (pool, target) = (Arc::clone(&self.pool), Arc::clone(&self.target));
        let task = self.io.spawn(async move {
            let mut so_far = Trimmed::default();
            loop {
                let (sql, params) = query::trim(&thread, through);
                let rows = pool.query("write to", sql, &params).await?;
                let (step, more) = query::trimmed(&rows).map_err(|fault| target.error("write to", fault))?;
                so_far.records += step.records;
                so_far.bytes += step.bytes;
                if !more {
                    return Ok(so_far);
                }
            }
        });
        Box::pin(Io::joined(task))
    }

    fn forget(&self, run: RunId) -> BoxFuture<'static, Result<(), StoreError>> {
        self.ask("write to", query::forget(&run), |_| Ok(()))
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.signal.subscribe()
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.pool.close();
        self.jobs = None;
        let (writer, signaller, signal) = (self.writer.take(), self.signaller.take(), Arc::clone(&self.signal));
        let last = self.io.spawn(async move {
            // What was appended last is told, too.
            if let Some(writer) = writer {
                let _ = writer.await;
            }
            signal.close();
            if let Some(signaller) = signaller {
                let _ = signaller.await;
            }
        });
        self.io.end_after(last);
    }
}
