//! `GET /api/v1/runs` and `GET /api/v1/runs/{run}`.

use std::time::Duration;

use axum::{extract::State, http::Uri, response::Response};
use taffrail_mcp_core::{RunKind, RunStatus, Seq};
use taffrail_relay::{ListRuns, RelayError};
use taffrail_runs::Until;

use super::{
    PathId, json,
    limits::{LISTED, MOST_LISTED, MOST_WAIT_MS},
    shown, snapshot,
    wire::RunList,
};
use crate::http::{app::App, body::TakesJson, params::Params, problem::Problem};

/// Lists runs, newest first.
pub(super) async fn list(State(app): State<App>, uri: Uri, _: TakesJson) -> Result<Response, Problem> {
    let mut params = Params::of(&uri)?;
    let words = params.list("status")?;
    let thread = params.id("thread")?;
    let limit = params.number("limit", 1..=MOST_LISTED)?.unwrap_or(LISTED);
    let before = params.id("before")?;
    params.finish()?;
    let status = words.iter().map(|word| status(word)).collect::<Result<_, _>>()?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    // One more than asked for tells whether there are more.
    let query = ListRuns { status, thread, before, limit: limit.saturating_add(1) };
    let mut runs = app.service().runs(query).await?;
    let more = runs.len() > limit;
    runs.truncate(limit);
    let before = runs.last().filter(|_| more).map(|last| last.run.clone());
    let runs = runs.into_iter().map(|snapshot| shown(&app, snapshot)).collect();
    Ok(json(&RunList { runs, before }))
}

fn status(word: &str) -> Result<RunStatus, Problem> {
    serde_json::from_value(word.into()).map_err(|_| {
        let detail = format!(
            "status has {word:?}: give running, suspended, done, halt, cancelled or interrupted, or several with commas \
             between"
        );
        Problem::parameter("status", detail)
    })
}

/// A run's snapshot, at once or after a change.
pub(super) async fn one(
    State(app): State<App>,
    PathId(run): PathId<RunKind>,
    uri: Uri,
    _: TakesJson,
) -> Result<Response, Problem> {
    let mut params = Params::of(&uri)?;
    let after = params.position("after")?;
    let wait = Duration::from_millis(params.number("wait_ms", 0..=MOST_WAIT_MS)?.unwrap_or(0));
    params.finish()?;
    let first = snapshot(&app, &run).await?;
    let after: Seq = after.unwrap_or(first.head);
    if after > first.head {
        return Err(RelayError::CursorAhead { thread: first.thread, after, head: first.head }.into());
    }
    if wait.is_zero() || first.status.ended() {
        return Ok(json(&first));
    }
    let closing = app.closing();
    tokio::select! {
        changed = app.service().wait(&run, Until::ChangedAfter(after)) => { changed?; }
        () = tokio::time::sleep(wait) => {}
        () = closing.cancelled() => {}
    }
    Ok(json(&snapshot(&app, &run).await?))
}
