//! The one service behind every surface: start, wait for, read, decide, resume and cancel runs.
//!
//! A run lives here, not in the request that started it: [`Service::start`] returns when the run's first record is
//! durable, and everything else is a view of its log. Any number of processes may have a service on the same data
//! directory: each hosts the runs it started, and all of them see all runs.
//!
//! What is not here: HTTP, MCP, terminals, SQL. A surface turns its own shapes into the requests of this crate and
//! decides how long to wait and what to show.

mod approve;
mod cancel;
mod clock;
mod config;
mod error;
mod host;
mod hosted;
mod ids;
mod live;
mod logs;
mod next;
mod playbooks;
mod recover;
mod resume;
mod service;
mod start;
mod tend;
mod wait;

pub use approve::Approve;
pub use cancel::Cancel;
pub use config::{Config, Layout};
pub use error::RunsError;
pub use logs::LogQuery;
pub use playbooks::PlaybookRef;
pub use recover::Recovered;
pub use resume::{Resume, Resumed};
pub use service::Service;
pub use start::{Start, Started, Work};
pub use wait::Until;
