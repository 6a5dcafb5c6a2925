//! `taffrail resume` and `approve`.

use anyhow::Result;
use serde_json::Value;
use taffrail_mcp_core::{Decision, RunId};
use taffrail_runs::{Approve, Resume, RunsError, Service};

use super::{
    inputs, look,
    watch::{Show, watch},
};
use crate::{cli, context, exit};

/// Goes on with a run and shows it.
pub(crate) async fn resume(common: &cli::Common, args: cli::Resume) -> Result<u8> {
    let cli::Resume { run, inputs, json, remote: _ } = args;
    let service = context::open_host(common)?;
    let (run, checkpoint) = match run.contains(':') {
        true => (None, Some(run)),
        false => (Some(run), None),
    };
    let schema = match &run {
        Some(run) => pending_schema(&service, run).await?,
        None => None,
    };
    let inputs = inputs::by_schema(schema.as_ref(), &inputs.inputs);
    go_on(&service, Resume { run, checkpoint, inputs, actor: context::actor(), human: true }, json).await
}

/// Decides what a run waits for, and goes on with it.
pub(crate) async fn approve(common: &cli::Common, args: cli::Approve) -> Result<u8> {
    let cli::Approve { run, reject, hash, decide_only, inputs, json, remote: _ } = args;
    let service = if decide_only { context::open(common)? } else { context::open_host(common)? };
    let schema = pending_schema(&service, &run).await?;
    let inputs = inputs::by_schema(schema.as_ref(), &inputs.inputs);
    let id = RunId::new(&run).map_err(|_| RunsError::NoRun { run: run.clone() })?;
    let decision = if reject { Decision::Reject } else { Decision::Approve };
    let actor = context::actor();
    let request = Approve {
        run: id.clone(),
        approval: None,
        decision,
        hash,
        seen_seq: None,
        content: None,
        inputs: inputs.clone(),
        actor: actor.clone(),
    };
    service.approve(request).await?;
    if decide_only {
        look::show(&service.snapshot(&id).await?, json)?;
        return Ok(exit::DONE);
    }
    go_on(&service, Resume { run: Some(run), checkpoint: None, inputs, actor, human: true }, json).await
}

async fn go_on(service: &Service, request: Resume, json: bool) -> Result<u8> {
    let resumed = service.resume(request).await?;
    let show = if json { Show::Json } else { Show::People };
    let fold = watch(service, &resumed.run, resumed.after, show).await?;
    service.close().await;
    Ok(exit::of_run(fold.status))
}

/// The schema of the answer that a run waits for.
async fn pending_schema(service: &Service, run: &str) -> Result<Option<Value>> {
    let run = RunId::new(run).map_err(|_| RunsError::NoRun { run: run.to_owned() })?;
    Ok(service.fold(&run).await?.approval.and_then(|approval| approval.schema))
}
