//! What requests other than tool calls have in common: how they fail, and how long their answers may be kept.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt as _;
use rmcp::{
    ErrorData, RoleServer,
    model::{CacheScope, PaginatedRequestParams},
    service::RequestContext,
};

use super::{
    backend::{BackendError, BackendErrorKind},
    call::is_modern,
    window,
};

/// What the program itself defines changes only with another version of it.
pub(super) const OF_THE_PROGRAM: Duration = Duration::from_secs(300);

/// Most bytes of a caller's own text that an error repeats.
const SHOWN_BYTES: usize = 200;

/// Answers a request of `method`, also when `work` panics: rmcp never would.
pub(super) async fn answered<T>(
    method: &'static str,
    work: impl Future<Output = Result<T, ErrorData>>,
) -> Result<T, ErrorData> {
    // Nothing of ours is left half done: what these requests change, they change in one step at their end.
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_panic| {
        tracing::error!(method, "a request panicked");
        Err(ErrorData::internal_error(format!("internal error in {method}; runs are not harmed"), None))
    })
}

/// The answer when the backend could not do what was asked. Its message is for the caller. Unknown ids and bad arguments are
/// -32602: these requests have no result to put an error into.
pub(super) fn failed(error: BackendError) -> ErrorData {
    let BackendError { kind, message } = error;
    match kind {
        BackendErrorKind::NotFound | BackendErrorKind::Invalid => ErrorData::invalid_params(message, None),
        BackendErrorKind::Conflict | BackendErrorKind::Denied => ErrorData::invalid_request(message, None),
        BackendErrorKind::Unavailable | BackendErrorKind::Internal => ErrorData::internal_error(message, None),
    }
}

/// -32602 with a reason.
pub(super) fn invalid(what: impl Into<String>) -> ErrorData {
    ErrorData::invalid_params(what.into(), None)
}

/// So much of what a caller wrote as an error repeats.
pub(super) fn shown(text: &str) -> &str {
    window::head(text, SHOWN_BYTES)
}

/// The cursor of a request for a list.
pub(super) fn cursor(request: Option<PaginatedRequestParams>) -> Option<String> {
    request.and_then(|request| request.cursor)
}

/// Refuses a cursor where all fits on one page, so that none was given out.
pub(super) fn no_pages(method: &str, request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match cursor(request) {
        None => Ok(()),
        Some(cursor) => {
            Err(invalid(format!("{method} has one page and no cursor {:?}; ask without one", shown(&cursor))))
        }
    }
}

/// The cache hints of an answer: the milliseconds for which it is fresh, and for whom. Revisions before 2026-07-28 have
/// none.
///
/// Always private: over HTTP nothing here is for those without a token, so no cache in between may give it away.
pub(super) fn fresh(context: &RequestContext<RoleServer>, time: Duration) -> (Option<u64>, Option<CacheScope>) {
    match is_modern(context) {
        true => (u64::try_from(time.as_millis()).ok(), Some(CacheScope::Private)),
        false => (None, None),
    }
}
