//! What is done to a run: deciding, resuming, cancelling.

use axum::{
    Extension,
    extract::{Path, State},
    http::Uri,
    response::Response,
};
use taffrail_mcp_core::RunKind;
use taffrail_runs::{Approve, Cancel, Resume};

use super::{
    PathId, carried_out, json, snapshot,
    wire::{ApproveBody, CancelBody, ResumeBody},
};
use crate::http::{
    app::App,
    body::{Json, TakesJson},
    gate::Principal,
    params::Params,
    problem::Problem,
};

/// Stores a decision. The run goes on when it is resumed.
pub(super) async fn approve(
    State(app): State<App>,
    PathId(run): PathId<RunKind>,
    Path((_, approval)): Path<(String, String)>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
    _: TakesJson,
    Json(body): Json<ApproveBody>,
) -> Result<Response, Problem> {
    Params::of(&uri)?.finish()?;
    let ApproveBody { decision, hash, seen_seq, content, inputs } = body;
    let request = Approve {
        run: run.clone(),
        approval: Some(approval),
        decision,
        hash: Some(hash),
        seen_seq: Some(seen_seq),
        content,
        inputs,
        actor: principal.actor().to_owned(),
    };
    let service = app.service().clone();
    carried_out(async move { service.approve(request).await }).await?;
    Ok(json(&snapshot(&app, &run).await?))
}

/// Goes on with a run that rests.
pub(super) async fn resume(
    State(app): State<App>,
    PathId(run): PathId<RunKind>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
    _: TakesJson,
    Json(body): Json<ResumeBody>,
) -> Result<Response, Problem> {
    Params::of(&uri)?.finish()?;
    let ResumeBody { checkpoint, inputs } = body;
    let actor = principal.actor().to_owned();
    let request = Resume { run: Some(run.to_string()), checkpoint, inputs, actor, human: false };
    let service = app.service().clone();
    carried_out(async move { service.resume(request).await }).await?;
    Ok(json(&snapshot(&app, &run).await?))
}

/// Ends a run; answers when its processes are gone.
pub(super) async fn cancel(
    State(app): State<App>,
    PathId(run): PathId<RunKind>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
    _: TakesJson,
    Json(body): Json<CancelBody>,
) -> Result<Response, Problem> {
    Params::of(&uri)?.finish()?;
    let CancelBody { reason, kill } = body;
    let request = Cancel { run: run.clone(), reason, actor: principal.actor().to_owned(), kill };
    let service = app.service().clone();
    carried_out(async move { service.cancel(request).await }).await?;
    Ok(json(&snapshot(&app, &run).await?))
}
