//! MCP progress that cannot lie.
//!
//! A handler makes a typed emitter of its request and reports from any thread; the client gets a few numbers a second that
//! strictly increase and never claim to be complete too early, the last one before the response and none after it.
//!
//! - **Emitters** ([`DoubleProgress`], [`LongProgress`], [`CountingProgress`], [`PercentProgress`]) come from a
//!   [`ProgressSource`]. A report takes some nanoseconds, never waits and never fails the work: what breaks the rules of
//!   the protocol is a [`ProgressError`] to use or to ignore, for every client alike.
//! - **Branches** ([`Branch`], [`Branches`]): an emitter becomes many, concurrent, nested, joining late, retried, of
//!   unknown or growing total, and the wire still sees one stream.
//! - **Manners** ([`Config`]): two notifications a second at most, the latest wins, a heartbeat while nothing moves,
//!   messages of one line.
//!
//! With rmcp 3 (feature `rmcp`) one line around the server is all: `rmcp::WithProgress::new(server)`, and every handler's
//! request context is a [`ProgressSource`]. Elsewhere, implement [`ProgressSink`] and use `RequestProgress` (feature
//! `tokio`), or drive an [`Outlet`] from any loop.
//!
//! Handlers that ask a person in the middle of their work have a [`MrtrContext`]; with rmcp, `rmcp::Mrtr` makes them.
//!
//! It is not a progress bar, and keeps no history: values between two notifications are gone.
//!
//! ```
//! use taffrail_progress::{ProgressError, ProgressSource, Source};
//!
//! fn index(cx: &impl ProgressSource, files: &[&str]) {
//!     let p = cx.counting_progress(Some(files.len() as u64));
//!     for file in files {
//!         // … the work …
//!         let _ = p.emit_with(format_args!("indexed {file}"));
//!     }
//! }
//! index(&Source::silent(), &["a.rs", "b.rs"]);
//!
//! let p = Source::silent().percent_progress();
//! assert_eq!(p.emit(0.5), Ok(()));
//! assert_eq!(p.emit(0.5), Err(ProgressError::NotGreater { value: 0.5, last: 0.5 }));
//! assert_eq!(p.emit(1.5), Err(ProgressError::OutOfRange { value: 1.5 }));
//! ```

mod source;

mod branch;
mod emitter;

mod guard;
mod tree;

mod message;
mod stream;

mod config;
mod outlet;
mod sink;

#[cfg(feature = "tokio")]
mod drive;

mod context;
#[cfg(feature = "rmcp")]
mod mrtr;
#[cfg(feature = "rmcp")]
pub mod rmcp;

mod error;

pub use branch::{Branch, Branches};
pub use config::Config;
pub use context::MrtrContext;
#[cfg(feature = "tokio")]
pub use drive::RequestProgress;
pub use emitter::{CountingProgress, DoubleProgress, LongProgress, PercentProgress};
pub use error::ProgressError;
pub use message::{MESSAGE_CHARS, one_line};
#[cfg(feature = "rmcp")]
pub use mrtr::{KeyError, PromptContext, ResourceContext, SingleUse, SpentStates, StateKey, ToolContext};
pub use outlet::{Next, Outlet, channel};
pub use sink::{Notification, ProgressSink, ProgressToken, SinkError};
pub use source::{ProgressSource, Source};
pub use taffrail_mcp_core::{BoxFuture, Elicitor, Question, Reply};
