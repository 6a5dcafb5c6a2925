//! Server-sent events: threads, runs and streamed turns.

use axum::{
    Router,
    response::{IntoResponse as _, Response},
};
use taffrail_runs::Started;

use super::{app::App, code::Code, problem::Problem};

/// The routes of streams.
pub(super) fn routes() -> Router<App> {
    Router::new()
}

/// Answers a streamed turn: the records of the run that was just started, then `end`.
pub(super) async fn turn(_app: App, started: Started) -> Response {
    Problem::new(Code::Unavailable, format!("run {} cannot be streamed", started.run)).into_response()
}
