//! The endpoint: any rmcp server over Streamable HTTP, request by request.

use std::{
    convert::Infallible,
    fmt,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body_util::Full;
use rmcp::{
    ServerHandler,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
    },
};
use serde::de::IgnoredAny;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{early, name, parked};
use crate::http::{
    HttpConfig, HttpLimits,
    body::{self, not_acceptable, takes},
    problem::Problem,
};
use crate::mcp::Parked;

/// What a client has to take: which of the two comes is the server's choice.
const FORMS: [&str; 2] = ["application/json", "text/event-stream"];

/// How an endpoint behaves. Defaults are those of [`HttpConfig`] and [`HttpLimits`].
#[derive(Debug, Clone)]
pub struct McpEndpointConfig {
    /// Silence after which a waiting answer sends a comment.
    pub keep_alive: Duration,
    /// Largest message, in bytes; more is a 413.
    pub body_bytes: usize,
    /// When it fires, answers that are under way are cut off. To let waits end in good order before that, give the
    /// servers a token of your own.
    pub cut: CancellationToken,
}

impl Default for McpEndpointConfig {
    fn default() -> Self {
        Self {
            keep_alive: HttpConfig::default().keep_alive,
            body_bytes: HttpLimits::default().body_bytes,
            cut: CancellationToken::new(),
        }
    }
}

/// MCP's Streamable HTTP for a server of one's own: a [`tower::Service`] for the route that messages are posted to.
///
/// There are no sessions, in any revision: each request has a server made for it, and what they share they share by
/// `Arc`. On top of rmcp's own transport:
///
/// - an answer that takes its time begins after 0.3 s with a stream of events and comments in it, so that a call that
///   waits does not look dead;
/// - what is no message of MCP gets an error of JSON-RPC, and wrong headers one that says what to send;
/// - `tasks/get`, `tasks/update` and `tasks/cancel` without `Mcp-Name` are taken, as some clients leave it out; one that
///   does not name the task is refused.
///
/// It looks at neither `Host` nor `Origin`: a server without a gate before it wants [`only_local`](super::only_local).
///
/// ```
/// use axum::{Router, middleware, routing::post_service};
/// use rmcp::ServerHandler;
/// use taffrail_transport::http::{McpEndpoint, McpEndpointConfig, only_local};
///
/// #[derive(Clone)]
/// struct Server;
///
/// impl ServerHandler for Server {}
///
/// let endpoint = McpEndpoint::new(|| Server, McpEndpointConfig::default());
/// let router: Router = Router::new().route("/mcp", post_service(endpoint)).layer(middleware::from_fn(only_local));
/// ```
pub struct McpEndpoint<S: ServerHandler> {
    /// The SDK's transport, with a server for each request.
    sdk: Arc<StreamableHttpService<S, NeverSessionManager>>,
    keep_alive: Duration,
    body_bytes: usize,
    park: Option<Arc<Park>>,
}

/// Finds calls that only wait.
type Park = dyn Fn(&[u8]) -> Option<Parked> + Send + Sync;

impl<S: ServerHandler> Clone for McpEndpoint<S> {
    fn clone(&self) -> Self {
        let Self { sdk, keep_alive, body_bytes, park } = self;
        Self { sdk: Arc::clone(sdk), keep_alive: *keep_alive, body_bytes: *body_bytes, park: park.clone() }
    }
}

impl<S: ServerHandler> fmt::Debug for McpEndpoint<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpEndpoint").field("keep_alive", &self.keep_alive).finish_non_exhaustive()
    }
}

impl<S: ServerHandler> McpEndpoint<S> {
    /// Serves what `make` makes, one for each request.
    pub fn new(make: impl Fn() -> S + Send + Sync + 'static, config: McpEndpointConfig) -> Self {
        let McpEndpointConfig { keep_alive, body_bytes, cut } = config;
        let transport = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_sse_keep_alive(Some(keep_alive))
            // Whoever stands before us has looked at both.
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(body_bytes)
            .with_cancellation_token(cut);
        let sdk = StreamableHttpService::new(move || Ok(make()), Arc::new(NeverSessionManager::default()), transport);
        Self { sdk: Arc::new(sdk), keep_alive, body_bytes, park: None }
    }

    /// Answers calls that `park` finds without the SDK.
    pub(super) fn parking(mut self, park: impl Fn(&[u8]) -> Option<Parked> + Send + Sync + 'static) -> Self {
        self.park = Some(Arc::new(park));
        self
    }

    /// Answers a request. Dropping the response's body, or the future, ends the call.
    pub async fn answer(&self, request: Request) -> Response {
        self.serve(request).await.unwrap_or_else(|problem| problem.into_response())
    }

    async fn serve(&self, request: Request) -> Result<Response, Problem> {
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
        let body = body::read(body, &parts.headers, self.body_bytes).await?;
        if let Some(refused) = not_a_message(&body) {
            return Ok(refused);
        }
        name::fill(&mut parts.headers, &body);
        let sdk = Arc::clone(&self.sdk);
        let parked =
            self.park.as_ref().and_then(|park| park(&body)).filter(|parked| parked::agrees(&parts.headers, parked));
        let answering = async move {
            let Some(parked) = parked else {
                // In a box of its own: a call that is parked needs no room for it.
                return Box::pin(sdk.handle(Request::from_parts(parts, Full::new(body)))).await.map(Body::new);
            };
            // So that the connection can use the buffer again that the request was read into.
            drop((parts, body));
            parked::respond(parked.message().await)
        };
        let response = early::respond(answering, self.keep_alive).await;
        match response.status() {
            // Of what the SDK refuses with this, only one thing is left.
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                Ok(refusal(-32600, "this is no message of MCP: see its specification"))
            }
            _ => Ok(response),
        }
    }
}

impl<S: ServerHandler> tower::Service<Request> for McpEndpoint<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let endpoint = self.clone();
        Box::pin(async move { Ok(endpoint.answer(request).await) })
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
