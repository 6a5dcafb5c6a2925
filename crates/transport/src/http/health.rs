//! `/healthz`, `/readyz`, `/metrics` and the keys of run tokens.

use std::path::Path;

use axum::{
    Router,
    extract::State,
    http::header,
    response::{IntoResponse as _, Response},
    routing::get,
};
use serde_json::{Value, json};
use taffrail_mcp_core::ThreadId;

use super::{app::App, code::Code, paths, problem::Problem};

/// The routes.
pub(super) fn routes() -> Router<App> {
    Router::new()
        .route(paths::HEALTH, get(health))
        .route(paths::READY, get(ready))
        .route(paths::METRICS, get(metrics))
        .route(paths::JWKS, get(keys))
}

/// The process answers.
async fn health() -> Response {
    plain(&json!({ "status": "ok" }))
}

/// The process can do its work: whoever spreads requests over several may send some here.
async fn ready(State(app): State<App>) -> Response {
    let checks = [
        ("store", store(&app).await),
        ("writer", writer(&app)),
        ("disk", disk(&app).await),
        ("open", if app.closing().is_cancelled() { Err("the server is shutting down".to_owned()) } else { Ok(()) }),
    ];
    let told = checks.iter().map(|(name, check)| {
        let value = check.as_ref().map_or_else(|what| Value::from(what.as_str()), |()| Value::from("ok"));
        ((*name).to_owned(), value)
    });
    let told = Value::Object(told.collect());
    let failed: Vec<_> = checks.iter().filter_map(|(_, check)| check.as_ref().err()).map(String::as_str).collect();
    if failed.is_empty() {
        return plain(&json!({ "status": "ok", "checks": told }));
    }
    Problem::new(Code::Unavailable, failed.join("; ")).with("checks", told).into_response()
}

/// The store answers a small question in time.
async fn store(app: &App) -> Result<(), String> {
    let limit = app.config().limits.ready_time;
    // Any thread will do; that there is none of this name is an answer, too.
    let thread = ThreadId::new("readyz").map_err(|error| error.to_string())?;
    let asked = app.service().relay().store().extent(thread);
    match tokio::time::timeout(limit, asked).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(format!("the store cannot be read: {error}")),
        Err(_) => Err(format!("the store does not answer within {limit:?}")),
    }
}

/// What was accepted is being stored.
fn writer(app: &App) -> Result<(), String> {
    match &*app.service().relay().health().borrow() {
        None => Ok(()),
        Some(error) => Err(format!("the store cannot be written: {error}")),
    }
}

/// The disk of the data directory is not full.
async fn disk(app: &App) -> Result<(), String> {
    let Some(dir) = app.config().data_dir.clone() else { return Ok(()) };
    let floor = app.config().limits.disk_floor_bytes;
    // A network file system may take its time.
    let free = tokio::task::spawn_blocking(move || free_bytes(&dir)).await.map_err(|error| error.to_string())?;
    match free {
        Ok(free) if free >= floor => Ok(()),
        Ok(free) => {
            Err(format!("the disk of the data directory has {free} bytes left, fewer than {floor}: free some space"))
        }
        Err(error) => Err(format!("the disk of the data directory cannot be looked at: {error}")),
    }
}

fn free_bytes(dir: &Path) -> std::io::Result<u64> {
    let stat = rustix::fs::statvfs(dir)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// What is counted, as Prometheus reads it.
async fn metrics(State(app): State<App>) -> Response {
    let spool = app.service().config().layout.spool();
    let spool_bytes = tokio::task::spawn_blocking(move || folder_bytes(&spool)).await.unwrap_or(0);
    let healthy = app.service().relay().health().borrow().is_none();
    let text = app.metrics().text(healthy, spool_bytes);
    let form = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, form), (header::CACHE_CONTROL, "no-store")], text).into_response()
}

/// Size of the files in a folder; what cannot be looked at counts nothing.
fn folder_bytes(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).filter(std::fs::Metadata::is_file).map(|file| file.len()).sum()
}

/// Public keys of run tokens. There are none: this server makes no run tokens.
async fn keys() -> Response {
    plain(&json!({ "keys": [] }))
}

fn plain(value: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (headers, value.to_string()).into_response()
}
