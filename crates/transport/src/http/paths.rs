//! The paths of all routes, as templates. The one home of their names.

use taffrail_mcp_core::RunId;

pub(crate) const THREAD_RUNS: &str = "/api/v1/threads/{thread}/runs";
pub(crate) const THREAD_STREAM: &str = "/api/v1/threads/{thread}/stream";
pub(crate) const RUNS: &str = "/api/v1/runs";
pub(crate) const RUN: &str = "/api/v1/runs/{run}";
pub(crate) const RUN_STREAM: &str = "/api/v1/runs/{run}/stream";
pub(crate) const RUN_EVENTS: &str = "/api/v1/runs/{run}/events";
pub(crate) const APPROVAL: &str = "/api/v1/runs/{run}/approvals/{approval}";
pub(crate) const RESUME: &str = "/api/v1/runs/{run}/resume";
pub(crate) const CANCEL: &str = "/api/v1/runs/{run}/cancel";
pub(crate) const MCP: &str = "/mcp";
pub(crate) const JWKS: &str = "/.well-known/jwks.json";
pub(crate) const HEALTH: &str = "/healthz";
pub(crate) const READY: &str = "/readyz";
pub(crate) const METRICS: &str = "/metrics";
pub(crate) const OPENAPI: &str = "/openapi.json";
pub(crate) const PAGE: &str = "/";
pub(crate) const PAGE_SCRIPT: &str = "/app.js";
pub(crate) const PAGE_STYLE: &str = "/app.css";
pub(crate) const LOGIN: &str = "/login";
pub(crate) const LOGOUT: &str = "/logout";

/// All of them.
pub(crate) const ALL: [&str; 20] = [
    THREAD_RUNS,
    THREAD_STREAM,
    RUNS,
    RUN,
    RUN_STREAM,
    RUN_EVENTS,
    APPROVAL,
    RESUME,
    CANCEL,
    MCP,
    JWKS,
    HEALTH,
    READY,
    METRICS,
    OPENAPI,
    PAGE,
    PAGE_SCRIPT,
    PAGE_STYLE,
    LOGIN,
    LOGOUT,
];

/// Paths that are answered without a token: none of them tells anything about runs.
pub(crate) const OPEN: [&str; 8] = [JWKS, HEALTH, READY, PAGE, PAGE_SCRIPT, PAGE_STYLE, LOGIN, LOGOUT];

/// Where a run is asked for.
pub(crate) fn of_run(run: &RunId) -> String {
    format!("{RUNS}/{run}")
}
