//! What is counted, and how `/metrics` tells it.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::http::Method;
use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

use super::{code::Code, measure::CommitMeter};

/// Upper bounds of request times, in seconds. Streams and waits end in the last ones.
const REQUEST_BOUNDS_S: [f64; 14] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

/// Which requests.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    route: &'static str,
    method: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    route: &'static str,
    method: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Refused {
    code: &'static str,
}

/// The server's counters.
pub(crate) struct Metrics {
    registry: Registry,
    answered: Family<Answered, Counter>,
    seconds: Family<Route, Histogram, fn() -> Histogram>,
    refused: Family<Refused, Counter>,
    /// Connections that are open.
    pub(crate) connections: Gauge,
    streams: Gauge,
    lag_most: Gauge,
    lag_all: Gauge,
    store_healthy: Gauge,
    spool_bytes: Gauge,
    /// How far behind each open stream is.
    behind: Mutex<HashMap<u64, Arc<AtomicU64>>>,
    next: AtomicU64,
}

impl Metrics {
    pub(crate) fn new(commits: &CommitMeter) -> Self {
        let mut registry = Registry::with_prefix("taffrail");
        let CommitMeter { events, blocks, bytes, conflicts, failures, seconds } = commits.clone();
        registry.register("events_committed", "Events that this process stored", events);
        registry.register("blocks_committed", "Blocks that this process stored", blocks);
        registry.register_with_unit("committed", "Lines that this process stored", Unit::Bytes, bytes);
        registry.register("commit_conflicts", "Appends that another writer was faster than", conflicts);
        registry.register("commit_failures", "Commits that the store could not do", failures);
        registry.register_with_unit("commit_duration", "Time of a commit", Unit::Seconds, seconds);
        let answered = Family::default();
        registry.register("http_requests", "Requests, when their answer has ended", answered.clone());
        let seconds = Family::new_with_constructor((|| Histogram::new(REQUEST_BOUNDS_S)) as fn() -> Histogram);
        let help = "Time from a request's head to the end of its answer";
        registry.register_with_unit("http_request_duration", help, Unit::Seconds, seconds.clone());
        let refused = Family::default();
        registry.register("http_refused", "Requests that the gate refused, by the code of the answer", refused.clone());
        let mut gauge = |name, help| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        };
        let connections = gauge("http_connections", "Connections that are open");
        let streams = gauge("followers", "Streams that are open");
        let lag_most = gauge("follower_lag_most_records", "Records that the slowest open stream is behind");
        let lag_all = gauge("follower_lag_all_records", "Records that all open streams are behind, together");
        let store_healthy = gauge("store_healthy", "1 while what is accepted is being stored, else 0");
        let spool_bytes = gauge("spool_bytes", "Size of all spool files of the data directory");
        let behind = Mutex::default();
        let next = AtomicU64::new(0);
        Self {
            registry,
            answered,
            seconds,
            refused,
            connections,
            streams,
            lag_most,
            lag_all,
            store_healthy,
            spool_bytes,
            behind,
            next,
        }
    }

    /// Counts an answer that has ended.
    pub(super) fn answered(&self, route: &'static str, method: &Method, status: u16, elapsed: Duration) {
        let method = method_label(method);
        self.answered.get_or_create(&Answered { route, method, status }).inc();
        self.seconds.get_or_create(&Route { route, method }).observe(elapsed.as_secs_f64());
    }

    /// Counts a request that the gate refused.
    pub(super) fn refused(&self, code: Code) {
        self.refused.get_or_create(&Refused { code: code.as_str() }).inc();
    }

    /// A stream has opened; the number is how many records it is behind.
    pub(super) fn stream_opened(&self) -> (u64, Arc<AtomicU64>) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let behind = Arc::new(AtomicU64::new(0));
        self.behind().insert(id, Arc::clone(&behind));
        (id, behind)
    }

    /// A stream has closed.
    pub(super) fn stream_closed(&self, id: u64) {
        self.behind().remove(&id);
    }

    fn behind(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Arc<AtomicU64>>> {
        self.behind.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything, in the text format of OpenMetrics.
    pub(super) fn text(&self, store_healthy: bool, spool_bytes: u64) -> String {
        let (mut count, mut most, mut all) = (0i64, 0u64, 0u64);
        for behind in self.behind().values() {
            let behind = behind.load(Ordering::Relaxed);
            count += 1;
            most = most.max(behind);
            all = all.saturating_add(behind);
        }
        let gauge = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        self.streams.set(count);
        self.lag_most.set(gauge(most));
        self.lag_all.set(gauge(all));
        self.store_healthy.set(store_healthy.into());
        self.spool_bytes.set(gauge(spool_bytes));
        let mut out = String::with_capacity(16 * 1024);
        // Writing to a string cannot fail.
        let _ = text::encode(&mut out, &self.registry);
        out
    }
}

/// Methods that clients make up are one label.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::PATCH => "PATCH",
        _ => "other",
    }
}
