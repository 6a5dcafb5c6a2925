//! What is counted, for `/metrics`.

use prometheus_client::metrics::gauge::Gauge;

/// The server's counters.
pub(crate) struct Metrics {
    /// Streams that are open.
    pub(crate) streams: Gauge,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        Self { streams: Gauge::default() }
    }
}
