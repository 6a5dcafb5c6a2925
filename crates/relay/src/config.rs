//! Limits of a relay, each with its reason.

use std::time::Duration;

/// How much a relay holds, and how it groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// A block is closed at this many bytes of lines. Default 256 KiB: beyond it compression and commits gain
    /// nothing more, and a page reads more than it needs.
    pub block_bytes: usize,
    /// Recent blocks kept in memory for each thread that somebody writes or follows. Default 1 MiB: a follower that
    /// is a few blocks behind does not touch the store.
    pub ring_bytes: usize,
    /// `send` waits while this many encoded bytes of a thread are accepted and not yet durable. Default 4 MiB: enough
    /// for one commit under way and the next being filled.
    pub room_bytes: usize,
    /// `emit` is refused when this many encoded bytes of a thread are not yet durable. Default 256 MiB. Lifecycle
    /// events come nowhere near it, unless the store has stood still for hours.
    pub emit_bytes: usize,
    /// One commit takes at most this much, over all threads. Default 8 MiB: a commit stays in the milliseconds.
    pub group_bytes: usize,
    /// A page looks at no more than this many bytes of lines, however few match. Default 32 MiB, some 50 ms.
    pub scan_bytes: usize,
    /// Longest pause between two attempts when the store fails. Default 2 s; the first pause is 50 ms.
    pub retry_max: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            block_bytes: 256 * 1024,
            ring_bytes: 1024 * 1024,
            room_bytes: 4 * 1024 * 1024,
            emit_bytes: 256 * 1024 * 1024,
            group_bytes: 8 * 1024 * 1024,
            scan_bytes: 32 * 1024 * 1024,
            retry_max: Duration::from_secs(2),
        }
    }
}
