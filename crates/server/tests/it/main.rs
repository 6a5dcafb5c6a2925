//! Acceptance tests of the `taffrail` command: the program itself, each test on a data directory of its own.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a failing helper fails its test")]

mod asked;
mod deployed;
mod elsewhere;
mod proc;
mod push_there;
mod records;
mod redact;
mod world;

mod alone;
mod browser;
mod cluster;
mod doctor;
mod exec_cases;
mod exec_ends;
mod gc;
mod inputs;
mod logs;
mod look;
mod mcp_asked;
mod mcp_client;
mod mcp_ends;
mod mcp_events;
mod mcp_gates;
mod mcp_logs;
mod mcp_progress;
mod mcp_resources;
mod mcp_sessions;
mod mcp_shared;
mod mcp_tools;
mod page;
mod push_away;
mod push_exec;
mod remote_look;
mod remote_tls;
mod resume;
mod run;
mod schema;
mod serve_ends;
mod serve_starts;
mod shapes;
