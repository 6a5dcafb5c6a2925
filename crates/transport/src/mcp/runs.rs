//! `run`, `resume`, `run_status` and `run_cancel`: what acts on one run and answers with its snapshot.

use std::time::Duration;

use rmcp::model::{CallToolResponse, CallToolResult};

use super::{
    args::{CancelArgs, ResumeArgs, RunArgs, StatusArgs, WaitSeconds},
    backend::{ResumeRun, RunHandle, StartRun, WaitUntil},
    call::{Call, Failure},
    snapshot, tasks,
};

pub(super) async fn run(call: &Call, args: RunArgs) -> Result<CallToolResponse, Failure> {
    let limit = args.wait_s.unwrap_or(WaitSeconds::DEFAULT).limit()?;
    let handle = call
        .backend
        .start(StartRun {
            playbook: args.playbook,
            inputs: args.inputs.unwrap_or_default(),
            thread: args.thread,
            idempotency_key: args.idempotency_key,
        })
        .await?;
    outcome(call, handle, limit).await
}

pub(super) async fn resume(call: &Call, args: ResumeArgs) -> Result<CallToolResponse, Failure> {
    let limit = args.wait_s.unwrap_or(WaitSeconds::DEFAULT).limit()?;
    if args.run.is_none() && args.checkpoint.is_none() {
        return Err(Failure::arguments("give `run` or `checkpoint`"));
    }
    let handle = call
        .backend
        .resume(ResumeRun { run: args.run, checkpoint: args.checkpoint, inputs: args.inputs.unwrap_or_default() })
        .await?;
    outcome(call, handle, limit).await
}

/// What a call answers that made a run go: a task where the client speaks tasks, else what became of it within `limit`.
async fn outcome(call: &Call, handle: RunHandle, limit: Duration) -> Result<CallToolResponse, Failure> {
    if tasks::declared(&call.context) {
        return Ok(call.tasks.created(&handle.run).await?.into());
    }
    let snapshot = call.watch(&handle.run, handle.after, WaitUntil::Settled, limit).await?;
    Ok(snapshot::result(snapshot, call.shared_fs).into())
}

pub(super) async fn run_status(call: &Call, args: StatusArgs) -> Result<CallToolResult, Failure> {
    let limit = args.wait_s.unwrap_or(WaitSeconds::NONE).limit()?;
    let until = args.after.map_or(WaitUntil::Settled, WaitUntil::StateAfter);
    let seen = match args.after {
        Some(after) => after,
        // Only what is new from here on is news to a caller who names no cursor.
        None if call.level.is_some() && !limit.is_zero() => snapshot::head(&call.backend.snapshot(&args.run).await?),
        None => 0,
    };
    let snapshot = call.watch(&args.run, seen, until, limit).await?;
    Ok(snapshot::result(snapshot, call.shared_fs))
}

pub(super) async fn run_cancel(call: &Call, args: CancelArgs) -> Result<CallToolResult, Failure> {
    let snapshot = call.backend.cancel(&args.run, args.reason).await?;
    Ok(snapshot::result(snapshot, call.shared_fs))
}
