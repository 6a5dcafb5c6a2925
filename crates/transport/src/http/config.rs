//! How the server behaves.

use std::time::Duration;

/// Limits of the HTTP surface, each with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpLimits {
    /// Largest request body, in bytes. Default 4 MiB: a hundred full log lines, or a batch of thousands of usual ones.
    pub body_bytes: usize,
    /// Streams (server-sent events) that may be open at once. Default 12,000.
    pub streams: usize,
    /// How long a request may take to arrive and to be answered; streams, once they have begun, have no end. Default
    /// 60 s: twice the longest wait that a caller can ask for.
    pub request_time: Duration,
    /// How long requests have to end after the server was told to. Default 10 s.
    pub grace: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            body_bytes: 4 * 1024 * 1024,
            streams: 12_000,
            request_time: Duration::from_secs(60),
            grace: Duration::from_secs(10),
        }
    }
}

/// How the server behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpConfig {
    /// Limits.
    pub limits: HttpLimits,
    /// Silence after which a stream sends a comment. Default 15 s: proxies give up after 30 s at the earliest.
    pub keep_alive: Duration,
    /// What streams tell clients to wait before they connect again. Default 2 s.
    pub retry: Duration,
    /// Callers share this file system, so that paths are told and taken. Default no.
    pub shared_fs: bool,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            limits: HttpLimits::default(),
            keep_alive: Duration::from_secs(15),
            retry: Duration::from_secs(2),
            shared_fs: false,
        }
    }
}
