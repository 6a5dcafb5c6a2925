//! What the headers of a parked call must say, and what is kept of it meanwhile.

use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, request::Parts};
use rmcp::model::ProtocolVersion;

use super::name::{METHOD, NAME};
use crate::mcp::Parked;

const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// Whether the headers are those of the call, so that it will not be refused for them: that must not wait.
pub(super) fn agrees(headers: &HeaderMap, parked: &Parked) -> bool {
    let header = |name: &HeaderName| headers.get(name).map(HeaderValue::as_bytes);
    let says = |name: &HeaderName, value: &str| header(name) == Some(value.as_bytes());
    match &parked.revision {
        Some(revision) => {
            says(&REVISION, revision.as_str()) && says(&METHOD, "tools/call") && says(&NAME, parked.tool)
        }
        None => header(&REVISION).is_none_or(|given| {
            let known = ProtocolVersion::KNOWN_VERSIONS.iter().find(|known| known.as_str().as_bytes() == given);
            known.is_some_and(ProtocolVersion::has_initialize)
        }),
    }
}

/// Copies what is left of a request out of the buffer that it was read into, which the connection can then use again.
pub(super) fn let_go(parts: &mut Parts) {
    for value in parts.headers.values_mut() {
        let sensitive = value.is_sensitive();
        // What was a value is one.
        if let Ok(mut copy) = HeaderValue::from_bytes(value.as_bytes()) {
            copy.set_sensitive(sensitive);
            *value = copy;
        }
    }
    if let Ok(copy) = Uri::try_from(parts.uri.to_string()) {
        parts.uri = copy;
    }
}
