//! All routes, put together.

use axum::{
    Router,
    http::{Method, Uri},
    response::{IntoResponse as _, Response},
};

use super::{api, app::App, code::Code, health, ingest, login, mcp, page, params::shown, problem::Problem, sse};

/// The router.
pub(crate) fn router(app: App) -> Router {
    Router::new()
        .merge(api::routes())
        .merge(sse::routes())
        .merge(ingest::routes())
        .merge(mcp::routes(&app))
        .merge(health::routes())
        .merge(login::routes())
        .merge(page::routes())
        .fallback(nothing)
        .method_not_allowed_fallback(other_method)
        .with_state(app)
}

async fn nothing(uri: Uri) -> Response {
    let detail = format!("there is nothing at {}: /openapi.json lists what there is", shown(uri.path()));
    Problem::new(Code::NoRoute, detail).into_response()
}

/// Which methods there are stands in `Allow`.
async fn other_method(method: Method, uri: Uri) -> Response {
    let detail = format!("{} does not take {method}: the header Allow says what it takes", shown(uri.path()));
    Problem::new(Code::MethodNotAllowed, detail).into_response()
}
