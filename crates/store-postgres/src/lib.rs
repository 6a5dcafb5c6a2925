//! The PostgreSQL store of Taffrail's relay, for several machines.
//!
//! [`PostgresStore`] keeps blocks of log lines, the index of runs, claims and leases in one schema of a PostgreSQL
//! database, 13 or newer. Any number of processes on any number of machines may use it at once, and any of them may be
//! killed at any instant; so may the server. It implements [`taffrail_relay::Store`] and [`taffrail_relay::Leases`],
//! whose docs are the contracts; here is only how.
//!
//! It is not an event database to query with SQL (the lines are compressed blocks), and it does not make the database,
//! roles or backups: `docs/postgres.md` is for those who do.
//!
//! ```no_run
//! use std::sync::Arc;
//! use taffrail_mcp_core::{EventSink, Note, RunId, ThreadId};
//! use taffrail_relay::Relay;
//! use taffrail_store_postgres::{Config, PostgresStore};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let url = "postgres://taffrail:secret@db.example/taffrail?sslmode=require";
//! let store = Arc::new(PostgresStore::open(url, Config::default()).await?);
//! let relay = Relay::start(store, taffrail_relay::Config::default())?;
//! let publisher = relay.publisher(&ThreadId::new("demo")?, &RunId::new("run-1")?).await?;
//! publisher.emit(Note::info("hello from one of many machines").into());
//! publisher.flush().await?;
//! # Ok(())
//! # }
//! ```

mod store;

mod leases;

mod config;
mod conn;
mod fault;
mod io;
mod params;
mod schema;
mod target;
mod tls;

mod batch;
mod codec;
mod prepare;
mod writer;

mod pool;
mod query;
mod signal;

pub use config::{Config, Durability};
pub use schema::FORMAT_VERSION;
pub use signal::{NOTIFY_EVERY, POLL_EVERY, RECONNECT_EVERY};
pub use store::PostgresStore;
