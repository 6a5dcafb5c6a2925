//! The embedded store of Taffrail's relay: one SQLite file, no service to start.
//!
//! [`SqliteStore`] keeps blocks of log lines, the index of runs and the claims of one machine in a SQLite database in
//! WAL mode. Any number of processes may use the same file at once, and any of them may be killed at any instant. It
//! implements [`taffrail_relay::Store`], whose doc is the contract; here is only how.
//!
//! It is not for network file systems (WAL needs shared memory), not an event database to query with SQL (the lines
//! are compressed blocks), and it never shrinks its file: room that a trim frees is used for new blocks.
//!
//! ```
//! use taffrail_relay::{Append, Appended, Block, ReadBlocks, Store};
//! use taffrail_mcp_core::{RunId, Seq, ThreadId, Timestamp};
//! use taffrail_store_sqlite::{Config, SqliteStore};
//!
//! # let dir = tempfile::tempdir()?;
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let store = SqliteStore::open(dir.path().join("taffrail.db"), Config::default())?;
//! let (run, thread) = (RunId::new("run-1")?, ThreadId::new("run-1")?);
//! let block = Block { run, first: Seq(1), count: 1, ts: Timestamp::default(), bytes: "{\"seq\":1}\n".into() };
//! let append =
//!     Append { thread: thread.clone(), expected: Seq::START, blocks: vec![block], runs: vec![], claim: None };
//! assert_eq!(store.append(vec![append]).await?, [Appended::Stored]);
//!
//! let all = ReadBlocks {
//!     thread, after: Seq::START, until: Seq(u64::MAX), run: None, max_bytes: 1 << 20, backwards: false,
//! };
//! assert_eq!(store.read(all).await?.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod store;

mod config;
mod db;
mod fault;
mod schema;
mod turnstile;

mod apply;
mod codec;
mod prepare;
mod writer;

mod checkpoint;
mod poll;
mod pool;
mod query;

pub use config::{Config, Durability};
pub use schema::FORMAT_VERSION;
pub use store::SqliteStore;
