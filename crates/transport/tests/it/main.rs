//! The MCP surface as a client sees it: raw JSON lines over pipes.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests")]

mod client;
mod events;
mod fake;
mod logs;
mod peer;
mod process;
mod protocol;
mod sessions;
mod shutdown;
mod stalled;
mod tools;
