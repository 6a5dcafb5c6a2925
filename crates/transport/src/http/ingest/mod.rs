//! Ingest: events of runs that happen elsewhere.

use axum::Router;

use super::app::App;

/// The routes of ingest.
pub(super) fn routes() -> Router<App> {
    Router::new()
}
