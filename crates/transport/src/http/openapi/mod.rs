//! `/openapi.json`: what this surface offers, as OpenAPI 3.1, made from the code.
//!
//! [`operations`] says what each route takes and answers, with the paths, limits and codes that the handlers use;
//! [`schemas`] has the shapes, made from the types that are sent and read.

mod build;
mod operations;
mod schemas;

use std::sync::LazyLock;

use axum::{
    Router,
    http::header,
    response::{IntoResponse as _, Response},
    routing::get,
};
use bytes::Bytes;
use serde_json::{Value, json};
use utoipa::openapi::{InfoBuilder, LicenseBuilder, OpenApiBuilder};

use super::{app::App, paths};

/// The route.
pub(super) fn routes() -> Router<App> {
    Router::new().route(paths::OPENAPI, get(serve))
}

async fn serve() -> Response {
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| openapi().to_string().into());
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (headers, TEXT.clone()).into_response()
}

/// The OpenAPI document. For the published contract; a server has it at `/openapi.json`.
///
/// ```
/// let document = taffrail_transport::http::openapi();
/// assert_eq!(document["openapi"], "3.1.0");
/// assert!(document["paths"]["/api/v1/runs"]["get"].is_object());
/// ```
#[must_use]
pub fn openapi() -> Value {
    let license = LicenseBuilder::new().name("MIT OR Apache-2.0").identifier(Some("MIT OR Apache-2.0")).build();
    let info = InfoBuilder::new()
        .title("Taffrail")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "Runs, and the one numbered log that each of them writes. A cursor is a position in that log and works in \
             every route. Mistakes are answered with problem details (RFC 9457); their `code` is stable.",
        ))
        .license(Some(license))
        .build();
    let built = OpenApiBuilder::new().info(info).paths(operations::paths()).build();
    // Plain data, which always has a JSON form.
    let mut document = serde_json::to_value(built).unwrap_or_default();
    if let Some(document) = document.as_object_mut() {
        document.insert("security".to_owned(), json!([{ "token": [] }, { "cookie": [] }]));
        document.insert("components".to_owned(), json!({
            "schemas": schemas::all(),
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "The operator token." },
                "cookie": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "taffrail-…",
                    "description": "What a browser gets at `/login`; its name ends in digits that differ from token to token.",
                },
            },
        }));
    }
    document
}
