//! What every handler has.

use std::sync::Arc;

use taffrail_runs::Service;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::{HttpConfig, code::Code, metrics::Metrics, problem::Problem};

/// The server's state. A clone is the same state.
#[derive(Clone)]
pub(crate) struct App {
    inner: Arc<Inner>,
}

struct Inner {
    service: Service,
    config: HttpConfig,
    metrics: Metrics,
    closing: CancellationToken,
    streams: Arc<Semaphore>,
}

impl App {
    pub(crate) fn new(service: Service, config: HttpConfig) -> Self {
        let streams = Arc::new(Semaphore::new(config.limits.streams.min(Semaphore::MAX_PERMITS)));
        let closing = CancellationToken::new();
        Self { inner: Arc::new(Inner { service, config, metrics: Metrics::new(), closing, streams }) }
    }

    /// The runs.
    pub(crate) fn service(&self) -> &Service {
        &self.inner.service
    }

    /// How the server was configured.
    pub(crate) fn config(&self) -> &HttpConfig {
        &self.inner.config
    }

    /// What is counted.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// Fires when the server begins to shut down: streams and waits end then.
    pub(crate) fn closing(&self) -> CancellationToken {
        self.inner.closing.clone()
    }

    /// Takes a place among the open streams, to be held for as long as the stream is open.
    ///
    /// # Errors
    ///
    /// 503 with `Retry-After` when there are as many as there may be.
    pub(crate) fn open_stream(&self) -> Result<OpenStream, Problem> {
        let Ok(permit) = Arc::clone(&self.inner.streams).try_acquire_owned() else {
            let most = self.inner.config.limits.streams;
            let detail = format!("{most} streams are open, as many as this server serves: try again in a moment");
            return Err(Problem::new(Code::TooManyStreams, detail));
        };
        self.inner.metrics.streams.inc();
        Ok(OpenStream { app: self.clone(), _permit: permit })
    }
}

/// A place among the open streams; given back when dropped.
pub(crate) struct OpenStream {
    app: App,
    _permit: OwnedSemaphorePermit,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.app.metrics().streams.dec();
    }
}
