//! The load tool: publishers and subscribers that cost the machine little, the same for us and for peers.
//!
//! Everything is non-blocking sockets, one `epoll` a thread, one read buffer a thread, and parsers that look at a byte
//! at most twice. It runs inside the bench, on a thread for the subscribers and one for the publishers, beside the
//! server's own process; nothing is pinned, the kernel places all of them. What the tool itself used of the
//! processor is told with the figures, so that a bench whose bottleneck is the tool can be seen for what it is.

mod call;
mod chunked;
mod crowd;
mod exchange;
mod fan_out;
mod http;
mod message;
mod publishers;
mod socket;
mod sse;

pub(crate) use call::Connection;
pub(crate) use crowd::{Check, Crowd, Plan};
pub(crate) use exchange::{Exchanged, Protocol, Stream, exchange};
pub(crate) use fan_out::{FanOut, already_there, fan_out};
pub(crate) use http::Head;
pub(crate) use message::{MESSAGE_BYTES, Template, now_ns};
pub(crate) use publishers::{Load, Published, closed_loop, paced};
pub(crate) use socket::raise_open_files;

use std::{net::SocketAddr, time::Duration};

use rustix::time::{ClockId, clock_gettime};

/// Where messages go in and where they come out again.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) addr: SocketAddr,
    /// Path that messages are posted to.
    pub(crate) publish: String,
    /// Path of the event stream.
    pub(crate) subscribe: String,
    /// Whether a posted message ends in a newline, as one of several.
    pub(crate) lines: bool,
    /// How subscribers see that nothing is missing.
    pub(crate) check: Check,
}

/// Processor time of this thread so far.
fn thread_cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}
