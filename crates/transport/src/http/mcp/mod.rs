//! `POST /mcp`: MCP's Streamable HTTP, without sessions, in every revision.
//!
//! What the SDK answers in its own words before it has a message (the body is not JSON, the headers are not those of a
//! client) is answered here instead, in ours.

mod early;

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::post,
};
use bytes::Bytes;
use http_body_util::Full;
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
};
use serde::de::IgnoredAny;
use serde_json::json;

use super::{
    app::App,
    body::{self, not_acceptable, takes},
    paths,
    problem::Problem,
};
use crate::mcp::{McpConfig, McpServer};
use crate::service::ServiceBackend;

/// Who the log says asked.
const ACTOR: &str = "mcp:http";
/// What a client has to take: which of the two comes is the server's choice.
const FORMS: [&str; 2] = ["application/json", "text/event-stream"];

/// The SDK's server, with a [`McpServer`] for each request.
type Sdk = StreamableHttpService<McpServer, NeverSessionManager>;

/// The route.
pub(super) fn routes(app: &App) -> Router<App> {
    let sdk = Arc::new(sdk(app));
    let serve = move |State(app): State<App>, request: Request| {
        let sdk = Arc::clone(&sdk);
        async move { serve(&app, sdk, request).await }
    };
    Router::new().route(paths::MCP, post(serve))
}

fn sdk(app: &App) -> Sdk {
    let config = app.config();
    let backend = Arc::new(ServiceBackend::new(app.service().clone(), config.shared_fs, ACTOR));
    let mcp =
        McpConfig { event_logger: config.event_logger.clone(), shared_fs: config.shared_fs, ..McpConfig::default() };
    let server = McpServer::new(backend, &mcp);
    let closing = app.closing();
    let transport = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_sse_keep_alive(Some(config.keep_alive))
        // The gate has looked at both.
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(config.limits.body_bytes)
        .with_cancellation_token(app.cut());
    let make = move || Ok(server.for_request(closing.clone()));
    Sdk::new(make, Arc::new(NeverSessionManager::default()), transport)
}

async fn serve(app: &App, sdk: Arc<Sdk>, request: Request) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    if let Some(form) = FORMS.into_iter().find(|form| !takes(&parts.headers, form)) {
        let problem = not_acceptable("application/json or text/event-stream, as the server chooses");
        return Err(problem.with("missing", form));
    }
    if !body::is_json(&parts.headers) {
        return Err(body::wrong_content_type(&parts.headers));
    }
    // The SDK knows no wildcards.
    parts.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    let body = body::read(body, &parts.headers, app.config().limits.body_bytes).await?;
    if let Some(refused) = not_a_message(&body) {
        return Ok(refused);
    }
    let request = Request::from_parts(parts, Full::new(body));
    let answering = async move { sdk.handle(request).await.map(Body::new) };
    let response = early::respond(answering, app.config().keep_alive).await;
    match response.status() {
        // Of what the SDK refuses with this, only one thing is left.
        StatusCode::UNSUPPORTED_MEDIA_TYPE => Ok(refusal(-32600, "this is no message of MCP: see its specification")),
        _ => Ok(response),
    }
}

/// The answer to a body that cannot be a message.
fn not_a_message(body: &Bytes) -> Option<Response> {
    if let Err(error) = serde_json::from_slice::<IgnoredAny>(body) {
        return Some(refusal(-32700, &format!("the body is not JSON: {error}")));
    }
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    (first == Some(&b'[')).then(|| refusal(-32600, "batches are not taken: send one message a request"))
}

/// A JSON-RPC error for a message whose id cannot be known.
fn refusal(code: i32, message: &str) -> Response {
    let body = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code, "message": message } });
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (StatusCode::BAD_REQUEST, headers, body.to_string()).into_response()
}
