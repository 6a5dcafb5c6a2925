//! `run`, `resume`, `run_status` and `run_cancel`: what acts on one run and answers with its snapshot.

use std::time::Duration;

use rmcp::model::{CallToolResponse, CallToolResult};
use serde_json::{Map, Value};
use taffrail_progress::{Elicitor as _, MrtrContext as _, ProgressSource as _, Reply};

use super::{
    args::{CancelArgs, ResumeArgs, RunArgs, StatusArgs, WaitSeconds},
    backend::{BackendError, BackendErrorKind, ResumeRun, RunHandle, StartRun, WaitUntil},
    call::{Call, Failure},
    question::{self, Pending},
    snapshot, tasks,
    watch::Watched,
};

pub(super) async fn run(call: &Call, args: RunArgs) -> Result<CallToolResponse, Failure> {
    let limit = args.wait_s.unwrap_or(WaitSeconds::DEFAULT).limit()?;
    let inputs = args.inputs.unwrap_or_default();
    let start = StartRun {
        playbook: args.playbook,
        inputs: inputs.clone(),
        thread: args.thread,
        idempotency_key: args.idempotency_key,
    };
    let begun = call.cx.once(async { call.backend.start(start).await.map(in_memory) }).await?;
    outcome(call, begun, inputs, limit).await
}

pub(super) async fn resume(call: &Call, args: ResumeArgs) -> Result<CallToolResponse, Failure> {
    let limit = args.wait_s.unwrap_or(WaitSeconds::DEFAULT).limit()?;
    if args.run.is_none() && args.checkpoint.is_none() {
        return Err(Failure::arguments("give `run` or `checkpoint`"));
    }
    let inputs = args.inputs.unwrap_or_default();
    let resume = ResumeRun { run: args.run, checkpoint: args.checkpoint, inputs: inputs.clone() };
    let begun = call.cx.once(async { go_on(call, resume).await.map(in_memory) }).await?;
    outcome(call, begun, inputs, limit).await
}

/// A run and where its news begin, as a call remembers it while its person is asked.
type Begun = (String, u64);

fn in_memory(handle: RunHandle) -> Begun {
    let RunHandle { run, after } = handle;
    (run, after)
}

/// Lets a run go on; or leaves it as it is where it waits for something that was not given and its person can be asked.
async fn go_on(call: &Call, resume: ResumeRun) -> Result<RunHandle, Failure> {
    let ResumeRun { run, checkpoint, inputs } = &resume;
    let of_checkpoint = || call.backend.run_of_checkpoint(checkpoint.as_deref()?);
    if call.cx.can_elicit()
        && let Some(run) = run.clone().or_else(of_checkpoint)
        && let Ok(snapshot) = call.backend.snapshot(&run).await
        && let Some(pending) = Pending::of(&snapshot).filter(|pending| !pending.is_given_in(inputs))
        // Another checkpoint is a mistake, which the resume tells.
        && checkpoint.as_ref().is_none_or(|given| snapshot.get("checkpoint").and_then(Value::as_str) == Some(given))
        // A run that lives elsewhere is decided there.
        && call.backend.secrets(&run).await.is_ok()
    {
        call.tasks.ask_again(&pending);
        return Ok(RunHandle { run, after: snapshot::head(&snapshot) });
    }
    Ok(call.backend.resume(resume).await?)
}

pub(super) async fn run_status(call: &Call, args: StatusArgs) -> Result<CallToolResponse, Failure> {
    let limit = args.wait_s.unwrap_or(WaitSeconds::NONE).limit()?;
    let until = args.after.map_or(WaitUntil::Settled, WaitUntil::StateAfter);
    let seen = match args.after {
        Some(after) => after,
        // Only what is new from here on is news to a caller who names no cursor.
        None if !limit.is_zero() => snapshot::head(&call.backend.snapshot(&args.run).await?),
        None => 0,
    };
    let mut watched = Watched::new(call, args.run, seen).await;
    let snapshot = call.watch(&mut watched, until, limit).await?;
    Ok(snapshot::result(snapshot, call.shared_fs).into())
}

pub(super) async fn run_cancel(call: &Call, args: CancelArgs) -> Result<CallToolResult, Failure> {
    let _beats = call.cx.long_progress(None);
    let snapshot = call.backend.cancel(&args.run, args.reason).await?;
    Ok(snapshot::result(snapshot, call.shared_fs))
}

/// What a call answers that made a run go: a task where the client speaks tasks, else what became of it within `limit`.
///
/// What the run waits for is put to the caller's person, where that is possible, for as long as they answer.
async fn outcome(
    call: &Call,
    (run, after): Begun,
    inputs: Map<String, Value>,
    limit: Duration,
) -> Result<CallToolResponse, Failure> {
    // A client that brings an answer had no task when it was asked.
    if tasks::declared(&call.context) && !call.brings_answers {
        return Ok(call.tasks.created(&run, &call.context).await?.into());
    }
    let mut watched = Watched::new(call, run, after).await;
    loop {
        let snapshot = call.watch(&mut watched, WaitUntil::Settled, limit).await?;
        if !call.cx.can_elicit() {
            return Ok(snapshot::result(snapshot, call.shared_fs).into());
        }
        // What is asked is what it waited for when it was asked: by the time of the answer it may wait for something else.
        let asked = call.cx.once(async { Ok::<_, Failure>(question::asked_in(&snapshot)) }).await?;
        let Some(pending) = Pending::of(&asked) else { return Ok(snapshot::result(snapshot, call.shared_fs).into()) };
        let moved_on = || call.backend.wait(&watched.run, WaitUntil::StateAfter(pending.seen));
        let reply = tokio::select! {
            // An answer that is there comes first.
            biased;
            reply = call.cx.elicit(pending.question.clone()) => reply,
            // Somebody else has decided, or ended the run; the question is withdrawn.
            moved = moved_on() => {
                moved?;
                continue;
            }
            () = call.abandoned() => Reply::Dismissed,
        };
        let Reply::Accepted(content) = reply else {
            return Ok(snapshot::result(snapshot, call.shared_fs).into());
        };
        let still = |what: String| {
            Failure::arguments(format!("{what}; nothing was decided, and run {} still waits for it", watched.run))
        };
        let decide = pending.decide(content, inputs.clone()).map_err(still)?;
        let decided = call.cx.once(async {
            match call.backend.decide(decide).await {
                Ok(_) => Ok(true),
                // Somebody was first; what came of it is what the caller gets.
                Err(BackendError { kind: BackendErrorKind::Conflict, .. }) => Ok(false),
                Err(BackendError { kind: BackendErrorKind::Invalid, message }) => Err(still(message)),
                Err(error) => Err(error.into()),
            }
        });
        if !decided.await? {
            // Who was first goes on with it in a moment.
            call.wait(&watched.run, WaitUntil::StateAfter(pending.seen), limit).await?;
        }
    }
}
