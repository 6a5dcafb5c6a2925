//! `/`: a page that lists runs and follows one. It holds no data itself, and works without any other server.

use axum::{
    Router,
    http::{HeaderName, header},
    response::{IntoResponse as _, Response},
    routing::get,
};

use super::{app::App, paths};

const HTML: &str = include_str!("index.html");
const SCRIPT: &str = include_str!("app.js");
const STYLE: &str = include_str!("app.css");

/// Nothing but what comes from here, and nobody may put the page into a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The routes.
pub(super) fn routes() -> Router<App> {
    Router::new()
        .route(paths::PAGE, get(async || part("text/html; charset=utf-8", HTML)))
        .route(paths::PAGE_SCRIPT, get(async || part("text/javascript; charset=utf-8", SCRIPT)))
        .route(paths::PAGE_STYLE, get(async || part("text/css; charset=utf-8", STYLE)))
}

fn part(form: &'static str, text: &'static str) -> Response {
    let headers: [(HeaderName, &str); 5] = [
        (header::CONTENT_TYPE, form),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        // A newer server has a newer page.
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
}
