//! The seam to where a spool's blocks come from.

use taffrail_mcp_core::{BoxFuture, Seq};
use taffrail_relay::Block;

/// What a [`BlockSource`] hands over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// Blocks of the run in ascending order; the first may begin at or before the position asked for.
    Blocks(Vec<Block>),
    /// Records up to `to` can no longer be had; what follows begins after it.
    Gap {
        /// The last of them.
        to: Seq,
    },
    /// The run's last record was delivered, or the log is closed: nothing will follow.
    End,
}

/// Reads the blocks of one run from a log, waiting for new ones.
///
/// # What callers may assume
///
/// After `start_at(after)`, `next` delivers every record of the run after `after` once and in order, or a gap in its
/// place, then waits for new ones. Holes between two blocks are positions of other runs in the same thread.
///
/// # What implementors must guarantee
///
/// The above, and: a `next` whose future is dropped loses nothing, the next call delivers it. Memory is bounded: one
/// delivery holds few MiB. An error is passing: the caller waits, calls `start_at` with its position and goes on, for
/// as long as it takes; a source that can never deliver again says [`Delivery::End`].
pub trait BlockSource: Send + 'static {
    /// Why a delivery failed.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Goes on after this position, forwards or backwards. Called before the first `next`.
    fn start_at(&mut self, after: Seq);

    /// Waits for the next delivery.
    fn next(&mut self) -> BoxFuture<'_, Result<Delivery, Self::Error>>;
}
