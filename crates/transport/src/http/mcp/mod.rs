//! `POST /mcp`: MCP's Streamable HTTP, without sessions, in every revision.
//!
//! The endpoint serves any rmcp server; the route serves [`McpServer`] through it. What the SDK answers in its own words
//! before it has a message (the body is not JSON, the headers are not those of a client) is answered here instead, in ours.

mod early;
mod endpoint;
mod local;
mod name;
mod parked;

use std::sync::Arc;

use axum::{Router, extract::Request, routing::post};

use super::{app::App, paths};
use crate::mcp::{McpConfig, McpServer};
use crate::service::ServiceBackend;

pub use self::{
    endpoint::{McpEndpoint, McpEndpointConfig},
    local::only_local,
};

/// Who the log says asked.
const ACTOR: &str = "mcp:http";

/// The route. The gate has looked at `Host` and `Origin`.
pub(super) fn routes(app: &App) -> Router<App> {
    let endpoint = endpoint(app);
    let serve = move |request: Request| {
        let endpoint = endpoint.clone();
        async move { endpoint.answer(request).await }
    };
    Router::new().route(paths::MCP, post(serve))
}

fn endpoint(app: &App) -> McpEndpoint<McpServer> {
    let config = app.config();
    let backend = Arc::new(ServiceBackend::new(app.service().clone(), config.shared_fs, ACTOR));
    let mcp =
        McpConfig { event_logger: config.event_logger.clone(), shared_fs: config.shared_fs, ..McpConfig::default() };
    let mut server = McpServer::new(backend, &mcp);
    if let Some(key) = app.keys().state_key() {
        server = server.sealed_with(key);
    }
    let closing = app.closing();
    let config =
        McpEndpointConfig { keep_alive: config.keep_alive, body_bytes: config.limits.body_bytes, cut: app.cut() };
    let server = Arc::new(server);
    let (parking, ending) = (Arc::clone(&server), closing.clone());
    McpEndpoint::new(move || server.for_request(closing.clone()), config)
        .parking(move |body| parking.park(body, &ending))
}
