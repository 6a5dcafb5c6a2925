//! Pages of other origins that may ask (`--allowed-origin`): what their browsers want to read of our answers.
//!
//! They send the operator's token. Cookies are not for them: ours are `SameSite=Strict`, and no answer here allows a page
//! to use them.

use axum::{
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse as _, Response},
};

/// Methods that our routes have.
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST");
/// Headers of requests that our routes read, those of MCP among them.
const HEADERS: HeaderValue = HeaderValue::from_static(
    "accept, authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, taffrail-producer",
);
/// Headers of answers that a script may see, besides those that it always may.
const SEEN: HeaderValue = HeaderValue::from_static("location, retry-after, www-authenticate");
/// How long a browser need not ask again, in seconds: a day.
const LASTS: HeaderValue = HeaderValue::from_static("86400");

/// Whether a browser only asks if a page may send the request that it really wants to send.
pub(super) fn only_asks(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to that. What is asked then passes the gate like every request.
pub(super) fn may_ask() -> Response {
    let headers: [(HeaderName, HeaderValue); 3] = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS),
        (header::ACCESS_CONTROL_MAX_AGE, LASTS),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// Lets the page of an origin read an answer.
pub(super) fn let_read<B>(response: &mut Response<B>, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, SEEN);
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}
