//! The REST routes: runs started, listed, read, decided, resumed and cancelled.

mod act;
mod crowd;
mod events;
pub(crate) mod limits;
mod runs;
mod start;
pub(crate) mod wire;

use std::future::Future;

use axum::{
    Router,
    extract::{FromRequestParts, Path},
    http::{header, request::Parts},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use taffrail_mcp_core::{Id, IdKind, RunId, Snapshot};
use taffrail_runs::RunsError;

pub(crate) use crowd::Crowd;

use super::{app::App, code::Code, params, paths, problem::Problem};

/// The routes.
pub(super) fn routes() -> Router<App> {
    Router::new()
        .route(paths::THREAD_RUNS, post(start::start))
        .route(paths::RUNS, get(runs::list))
        .route(paths::RUN, get(runs::one))
        .route(paths::RUN_EVENTS, get(events::page))
        .route(paths::APPROVAL, post(act::approve))
        .route(paths::RESUME, post(act::resume))
        .route(paths::CANCEL, post(act::cancel))
}

/// An id that stands in the path.
pub(crate) struct PathId<K>(pub(crate) Id<K>);

impl<K: IdKind> FromRequestParts<App> for PathId<K> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let given = Path::<std::collections::HashMap<String, String>>::from_request_parts(parts, app).await;
        let Path(given) =
            given.map_err(|error| Problem::new(Code::BadId, format!("the path cannot be read: {error}")))?;
        let text = given.get(K::NAME).map(String::as_str).unwrap_or_default();
        params::id(K::NAME, text).map(Self)
    }
}

/// Carries out what changes something, to its end also when the caller is gone meanwhile.
async fn carried_out<T: Send + 'static>(
    work: impl Future<Output = Result<T, RunsError>> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::spawn(work).await {
        Ok(done) => done.map_err(Problem::from),
        Err(error) => {
            tracing::error!(%error, "a request ended in a panic");
            Err(Problem::internal())
        }
    }
}

/// A run's snapshot as a caller may see it.
async fn snapshot(app: &App, run: &RunId) -> Result<Snapshot, Problem> {
    Ok(shown(app, app.service().snapshot(run).await?))
}

/// The same of one that is there already.
fn shown(app: &App, mut snapshot: Snapshot) -> Snapshot {
    if !app.config().shared_fs {
        snapshot.spool = None;
    }
    snapshot
}

/// An answer in JSON.
pub(crate) fn json(body: &impl serde::Serialize) -> Response {
    encoded(serde_json::to_vec(body))
}

/// An answer whose JSON was made, or not.
fn encoded(body: serde_json::Result<Vec<u8>>) -> Response {
    match body {
        Ok(bytes) => json_bytes(bytes),
        Err(error) => {
            tracing::error!(%error, "an answer could not become JSON");
            Problem::internal().into_response()
        }
    }
}

/// An answer that is JSON already.
fn json_bytes(bytes: Vec<u8>) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (headers, bytes).into_response()
}
