//! The way out to a sink, which may be broken without any harm to a run.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use taffrail_mcp_core::{EventBatch, EventSink};

/// A sink that is not spoken to again once it has panicked.
pub(crate) struct Outlet<'a> {
    sink: &'a dyn EventSink,
    broken: bool,
}

impl<'a> Outlet<'a> {
    /// The way to `sink`.
    pub(crate) fn new(sink: &'a dyn EventSink) -> Self {
        Self { sink, broken: false }
    }

    /// Sends what is in the batch, waiting for room; the batch is empty afterwards.
    pub(crate) async fn send(&mut self, batch: &mut EventBatch) {
        if !batch.is_empty() && !self.broken {
            // The call itself is inside too: an implementation may panic before it has made its future.
            let sent = AssertUnwindSafe(async { self.sink.send(batch).await }).catch_unwind().await;
            if sent.is_err() {
                self.broken = true;
                tracing::error!("an event sink panicked; output of this process is no longer sent to it");
            }
        }
        batch.clear();
    }
}
