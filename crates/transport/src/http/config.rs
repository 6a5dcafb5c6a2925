//! How the server behaves.

use std::{path::PathBuf, time::Duration};

use axum::http::{Uri, uri::Authority};

use super::{OperatorToken, measure::CommitMeter};

/// Limits of the HTTP surface, each with its reason. The one home of their defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpLimits {
    /// Largest request body, in bytes; more is a 413. Default 4 MiB: a batch of thousands of usual events.
    pub body_bytes: usize,
    /// Largest request head, in bytes; more is a 431. Default 32 KiB: tokens, cookies and cursors need a tenth of it.
    pub head_bytes: usize,
    /// How long a client may take to send a request's head, and how long an HTTP/1.1 connection may be idle between two
    /// requests. Default 30 s: a client that sends a byte now and then holds a connection no longer.
    pub head_time: Duration,
    /// How long a request may take to arrive and to be answered; streams, once they have begun, have no end. Default
    /// 60 s: twice the longest wait that a caller can ask for.
    pub request_time: Duration,
    /// Connections at once; more are told so with a 503. Default 16,384, some 20 KiB each.
    pub connections: usize,
    /// Streams (server-sent events) at once; more are a 503. Default 12,288: three quarters of the connections, so
    /// that streams never keep requests out.
    pub streams: usize,
    /// Requests a second of one client (an address, or an IPv6 network); more are a 429. 0: no limit. Default 1000: far
    /// above what programs need that are in order, far below what keeps a processor busy.
    pub requests_per_second: u32,
    /// Requests that one client may send at once before that rate binds it. Default 5000: a thousand subscribers that
    /// come back after a restart.
    pub burst: u32,
    /// How long requests have to end after the server was told to. Default 10 s.
    pub grace: Duration,
    /// Free bytes of the data directory's disk below which the server is not ready. Default 64 MiB: as much as
    /// the store needs to say in good order that the disk is full.
    pub disk_floor_bytes: u64,
    /// How long the store may take to answer before the server is not ready. Default 2 s.
    pub ready_time: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            body_bytes: 4 * 1024 * 1024,
            head_bytes: 32 * 1024,
            head_time: Duration::from_secs(30),
            request_time: Duration::from_secs(60),
            connections: 16_384,
            streams: 12_288,
            requests_per_second: 1000,
            burst: 5000,
            grace: Duration::from_secs(10),
            disk_floor_bytes: 64 * 1024 * 1024,
            ready_time: Duration::from_secs(2),
        }
    }
}

/// How the server behaves.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// The token that opens every route. None: anybody who reaches the server may do everything.
    pub token: Option<OperatorToken>,
    /// Names that this server answers to, besides localhost and its own address; without a port, for every port.
    pub allowed_hosts: Vec<Authority>,
    /// Origins whose pages may ask, besides the server's own.
    pub allowed_origins: Vec<Uri>,
    /// Where a proxy offers this server: its name and origin are taken, and cookies are `Secure` when it is https.
    pub public_url: Option<Uri>,
    /// The proxy that connects tells in `X-Forwarded-For` for whom. Default no: otherwise everybody could say so.
    pub forwarded_for: bool,
    /// Callers share this file system, so that paths are told and taken. Default no.
    pub shared_fs: bool,
    /// The `logger` of event notifications over MCP. Default `taffrail.event`.
    pub event_logger: String,
    /// Silence after which a stream sends a comment. Default 15 s: proxies give up after 30 s at the earliest.
    pub keep_alive: Duration,
    /// What streams tell clients to wait before they connect again. Default 2 s.
    pub retry: Duration,
    /// The folder whose disk must not be full; not looked at when not given.
    pub data_dir: Option<PathBuf>,
    /// What the store's commits were counted in, when it is a [`MeasuredStore`](super::MeasuredStore).
    pub commits: CommitMeter,
    /// Limits.
    pub limits: HttpLimits,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            token: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            public_url: None,
            forwarded_for: false,
            shared_fs: false,
            event_logger: "taffrail.event".to_owned(),
            keep_alive: Duration::from_secs(15),
            retry: Duration::from_secs(2),
            data_dir: None,
            commits: CommitMeter::default(),
            limits: HttpLimits::default(),
        }
    }
}
