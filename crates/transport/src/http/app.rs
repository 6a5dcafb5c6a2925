//! What every handler has.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use taffrail_runs::Service;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::{
    HttpConfig,
    api::Crowd,
    code::Code,
    gate::{Hosts, Keys, Rates},
    metrics::Metrics,
    problem::Problem,
    sse::{FrameCache, Looks},
};

/// The server's state. A clone is the same state.
#[derive(Clone)]
pub(crate) struct App {
    inner: Arc<Inner>,
}

struct Inner {
    service: Service,
    metrics: Metrics,
    closing: CancellationToken,
    cut: CancellationToken,
    streams: Arc<Semaphore>,
    frames: FrameCache,
    looks: Looks,
    crowd: Crowd,
    hosts: Hosts,
    keys: Keys,
    rates: Rates,
    config: HttpConfig,
}

impl App {
    pub(crate) fn new(service: Service, config: HttpConfig) -> Self {
        let inner = Inner {
            service,
            metrics: Metrics::new(&config.commits),
            closing: CancellationToken::new(),
            cut: CancellationToken::new(),
            streams: Arc::new(Semaphore::new(config.limits.streams.min(Semaphore::MAX_PERMITS))),
            frames: FrameCache::default(),
            looks: Looks::default(),
            crowd: Crowd::default(),
            hosts: Hosts::new(&config),
            keys: Keys::new(&config),
            rates: Rates::new(&config.limits),
            config,
        };
        Self { inner: Arc::new(inner) }
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

    /// Blocks as streams send them.
    pub(crate) fn frames(&self) -> &FrameCache {
        &self.inner.frames
    }

    /// Who looks after the runs that streams follow.
    pub(crate) fn looks(&self) -> &Looks {
        &self.inner.looks
    }

    /// The pages that are being made.
    pub(crate) fn crowd(&self) -> &Crowd {
        &self.inner.crowd
    }

    /// Fires when what has not ended by itself is cut off.
    pub(crate) fn cut(&self) -> CancellationToken {
        self.inner.cut.clone()
    }

    /// Who may be meant, and whose pages may ask.
    pub(crate) fn hosts(&self) -> &Hosts {
        &self.inner.hosts
    }

    /// What opens the door.
    pub(crate) fn keys(&self) -> &Keys {
        &self.inner.keys
    }

    /// How often clients may ask.
    pub(crate) fn rates(&self) -> &Rates {
        &self.inner.rates
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
        let (id, behind) = self.inner.metrics.stream_opened();
        Ok(OpenStream { app: self.clone(), id, behind, _permit: permit })
    }
}

/// A place among the open streams; given back when dropped.
pub(crate) struct OpenStream {
    app: App,
    id: u64,
    behind: Arc<AtomicU64>,
    _permit: OwnedSemaphorePermit,
}

impl OpenStream {
    /// Says how many records the stream is behind the log, for `/metrics`. Costs one store to memory.
    pub(crate) fn behind(&self, records: u64) {
        self.behind.store(records, Ordering::Relaxed);
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.app.metrics().stream_closed(self.id);
    }
}
