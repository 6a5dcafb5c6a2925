//! All routes, put together.

use axum::Router;

use super::{app::App, ingest, sse};

/// The router.
pub(crate) fn router(app: App) -> Router {
    Router::new().merge(sse::routes()).merge(ingest::routes()).with_state(app)
}
