//! The one service behind every surface: start, wait for, read, decide, resume and cancel runs.
//!
//! A run lives here, not in the request that started it: [`Service::start`] returns when the run's first record is
//! durable, and everything else is a view of its log. Any number of processes may have a service on the same data
//! directory: each hosts the runs it started, and all of them see all runs.
//!
//! What is not here: HTTP, MCP, terminals, SQL. A surface turns its own shapes into the requests of this crate and
//! decides how long to wait and what to show.
//!
//! ```
//! use std::sync::Arc;
//! use taffrail_mcp_core::RunStatus;
//! use taffrail_relay::{MemoryStore, Relay};
//! use taffrail_runs::{Config, Layout, Service, Start, Until, Work};
//!
//! # let dir = tempfile::tempdir()?;
//! # let dir = dir.path();
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
//! let relay = Relay::start(Arc::new(MemoryStore::new()), Default::default())?;
//! let config = Config::new(Layout::new(dir.join("data")), dir.join("playbooks"), dir.to_owned());
//! let service = Service::open(relay, config)?;
//! let argv = vec!["echo".to_owned(), "hello".to_owned()];
//! let started = service.start(Start::new(Work::Command { name: "hello".into(), argv, output_cap: None })).await?;
//! let fold = service.wait(&started.run, Until::Ended).await?;
//! assert_eq!((fold.status, fold.usage.log_lines), (RunStatus::Done, 1));
//! service.close().await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod approve;
mod cancel;
mod clock;
mod config;
mod door;
mod error;
mod external;
mod gauges;
mod host;
mod hosted;
mod hosts;
mod ids;
mod ingest;
mod logs;
mod next;
mod playbooks;
mod recover;
mod resume;
mod retain;
mod service;
mod start;
mod tend;
mod wait;
mod waits;

pub use approve::Approve;
pub use cancel::Cancel;
pub use config::{Config, Layout};
pub use error::RunsError;
pub use gauges::Gauges;
pub use hosts::Hosts;
pub use ingest::Ingested;
pub use logs::LogQuery;
pub use playbooks::PlaybookRef;
pub use recover::Recovered;
pub use resume::{Resume, Resumed};
pub use retain::Removed;
pub use service::Service;
pub use start::{Start, Started, Work};
pub use wait::Until;
