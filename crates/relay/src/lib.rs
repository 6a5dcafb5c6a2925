//! A durable, seq-numbered event log with live followers.
//!
//! A log is a *thread*; *runs* write to it. Publishers hand events over from any thread; one writer numbers them,
//! packs them into [`Block`]s of final bytes and commits in groups; readers pull those same bytes. A reader is a
//! position, not a queue: it costs the writer nothing, and no reader sees an event before it is stored.
//!
//! What is not here: HTTP, MCP, SQL, playbooks. A place to keep logs is a [`Store`]; [`MemoryStore`] is the shortest.
//!
//! ```
//! use std::sync::Arc;
//! use taffrail_mcp_core::{EventSink, Note, RunId, Start, ThreadId};
//! use taffrail_relay::{Config, Delivery, MemoryStore, Relay};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let relay = Relay::start(Arc::new(MemoryStore::new()), Config::default())?;
//! let (thread, run) = (ThreadId::new("demo")?, RunId::new("run-1")?);
//! let publisher = relay.publisher(&thread, &run).await?;
//! publisher.emit(Note::info("hello").into());
//! publisher.flush().await?;
//!
//! let mut follower = relay.follow(&thread, None, Start::Beginning).await?;
//! let Delivery::Blocks(blocks) = follower.next().await? else { unreachable!() };
//! assert!(blocks[0].bytes.starts_with(b"{\"seq\":1,\"thread\":\"demo\""));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod admission;
mod clock;
mod config;
mod error;
mod filter;
mod follower;
mod gathering;
mod hot;
mod leases;
mod memory;
mod page;
mod publisher;
mod readers;
mod relay;
mod retention;
mod ring;
mod sequencer;
mod store;
mod threads;
mod writer;

pub use config::Config;
pub use error::{RelayError, StoreError};
pub use filter::{Filter, Pattern};
pub use follower::{Delivery, Follower};
pub use leases::Leases;
pub use memory::MemoryStore;
pub use page::{Page, PageQuery};
pub use publisher::{Arrival, Mark, Numbered, Publisher, Receipt};
pub use relay::Relay;
pub use retention::{Cut, Retention, Span, Survey, Swept, sweep};
pub use store::{
    Append, Appended, Block, Claim, Extent, ListRuns, ReadBlocks, ReadWindow, Store, ThreadUsage, Trimmed, Window,
};
