//! How often, and how patiently.

use std::time::Duration;

/// The manners of a progress stream towards its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The least time between two notifications; what comes in between is held back, and the latest wins. Default
    /// 500 ms: two a second is what a person can follow. The last notification, before the response, does not wait.
    pub min_interval: Duration,
    /// The time without a notification after which one is sent although nothing moved, so that the client's idle
    /// clock does not fire. `None`: never. Default 15 s: the shortest idle limits of hosts are 30 s.
    pub heartbeat: Option<Duration>,
    /// How long the response waits for a client that does not take the last notification. Default 500 ms.
    pub flush_limit: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            min_interval: Duration::from_millis(500),
            heartbeat: Some(Duration::from_secs(15)),
            flush_limit: Duration::from_millis(500),
        }
    }
}

impl Config {
    /// Sets [`Config::min_interval`].
    #[must_use]
    pub fn min_interval(mut self, interval: Duration) -> Self {
        self.min_interval = interval;
        self
    }

    /// Sets [`Config::heartbeat`].
    #[must_use]
    pub fn heartbeat(mut self, after: Option<Duration>) -> Self {
        self.heartbeat = after;
        self
    }

    /// Sets [`Config::flush_limit`].
    #[must_use]
    pub fn flush_limit(mut self, limit: Duration) -> Self {
        self.flush_limit = limit;
        self
    }
}
