//! What the headers of a parked call must say, and how it is answered.

use axum::{
    http::{HeaderMap, HeaderName, HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use rmcp::model::ProtocolVersion;

use super::name::{METHOD, NAME};
use crate::mcp::Parked;

const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// Whether the headers are those of the call, so that nobody else would refuse it for them.
pub(super) fn agrees(headers: &HeaderMap, parked: &Parked) -> bool {
    let header = |name: &HeaderName| headers.get(name).map(HeaderValue::as_bytes);
    let says = |name: &HeaderName, value: &str| header(name) == Some(value.as_bytes());
    match &parked.revision {
        Some(revision) => says(&REVISION, revision.as_str()) && says(&METHOD, "tools/call") && says(&NAME, parked.tool),
        None => header(&REVISION).is_none_or(|given| {
            let known = ProtocolVersion::KNOWN_VERSIONS.iter().find(|known| known.as_str().as_bytes() == given);
            known.is_some_and(ProtocolVersion::has_initialize)
        }),
    }
}

/// An answer, in the form that the SDK's have.
pub(super) fn respond(message: Vec<u8>) -> Response {
    let event = [b"data: ".as_slice(), &message, b"\n\n"].concat();
    ([(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store, no-transform")], event)
        .into_response()
}
