//! `POST /api/v1/threads/{thread}/runs`.

use axum::{
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header},
    response::Response,
};
use taffrail_mcp_core::ThreadKind;
use taffrail_runs::{Start, Work};

use super::{
    PathId, carried_out, encoded, snapshot,
    wire::{self, Phase, StartBody},
};
use crate::http::{
    app::App,
    body::{Json, not_acceptable, takes},
    code::Code,
    params::Params,
    paths,
    problem::Problem,
    sse,
};

/// Starts a run.
pub(super) async fn start(
    State(app): State<App>,
    PathId(thread): PathId<ThreadKind>,
    uri: Uri,
    headers: HeaderMap,
    Json(body): Json<StartBody>,
) -> Result<Response, Problem> {
    Params::of(&uri)?.finish()?;
    let StartBody { playbook, inputs, idempotency_key, phase, external, name, run } = body;
    let form = if phase.is_some() { "text/event-stream" } else { "application/json" };
    if !takes(&headers, form) {
        return Err(not_acceptable(form));
    }
    let work = work(playbook, external, name, phase, app.config().shared_fs)?;
    // Before the run starts: one that is turned away has started nothing.
    let place = phase.map(|_| app.open_stream()).transpose()?;
    if run.is_some() && !external {
        return Err(Problem::new(Code::BadBody, "`run` is for external runs: the ids of others are made here"));
    }
    let request = Start { inputs, thread: Some(thread), idempotency_key, run, ..Start::new(work) };
    let service = app.service().clone();
    let started = carried_out(async move { service.start(request).await }).await?;
    if let Some(place) = place {
        return sse::turn(app, started, place).await;
    }
    let status_url = paths::of_run(&started.run);
    let snapshot = snapshot(&app, &started.run).await?;
    let mut response = encoded(wire::accepted(&snapshot, &status_url));
    *response.status_mut() = StatusCode::ACCEPTED;
    if let Ok(location) = HeaderValue::from_str(&status_url) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// What a body asks to be run.
fn work(
    playbook: Option<String>,
    external: bool,
    name: Option<String>,
    phase: Option<Phase>,
    paths: bool,
) -> Result<Work, Problem> {
    let bad = |detail: &'static str| Err(Problem::new(Code::BadBody, detail));
    match (playbook, external, name) {
        (Some(name), false, None) => Ok(Work::Playbook { name, paths }),
        (None, true, Some(_)) if phase.is_some() => {
            bad("an external run has no turn to stream: leave `phase` out, and follow the run's stream")
        }
        (None, true, Some(name)) => Ok(Work::External { name }),
        (None, true, None) => bad("an external run needs a `name`, which the list of runs shows"),
        (Some(_), true, _) => {
            bad("`playbook` is for runs that happen here, and `external` for those that do not: give one")
        }
        (_, false, Some(_)) => bad("`name` is for external runs: give `\"external\": true` with it"),
        (None, false, None) => bad("what to run is missing: give `playbook`, or `\"external\": true` and `name`"),
    }
}
