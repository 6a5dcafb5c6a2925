//! The MCP surface as a client sees it, raw JSON lines over pipes; and the client of the HTTP surface.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests")]

mod asked;
mod client;
mod events;
mod fake;
mod http;
mod ingest;
mod logs;
mod peer;
mod process;
mod progress;
mod prompts;
mod protocol;
mod remote;
mod resources;
mod sessions;
mod shutdown;
mod sse;
mod stalled;
mod subscriptions;
mod tasks;
mod tools;
mod web;
