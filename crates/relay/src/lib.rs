//! A durable, seq-numbered event log with live followers.

mod error;
mod store;

pub use error::{RelayError, StoreError};
pub use store::{Append, Appended, Block, Claim, Extent, ListRuns, ReadBlocks, Store, ThreadUsage, Trimmed};
