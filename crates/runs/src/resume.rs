//! Going on with a run that rests.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value};
use taffrail_engine::{Job, Resolution, ResumeData, Run, process};
use taffrail_mcp_core::{
    Approver, CheckpointClaimed, Decision, Event, PendingApproval, Record, RunFold, RunId, RunStatus, Seq, Start,
    ThreadId,
};
use taffrail_relay::{Claim, Filter, PageQuery, RelayError};
use tokio::time::Instant;

use crate::{RunsError, Service, door::Door, hosts::Lock, ids, start::id_source};

/// How long the last host of a run may take to let go of it: far more than it needs.
const LET_GO: Duration = Duration::from_secs(5);
/// How often it is looked whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A request to go on.
#[derive(Debug, Clone, PartialEq)]
pub struct Resume {
    /// The run, by itself or by one of its checkpoints; the run wins when both are given and must fit.
    pub run: Option<String>,
    /// A checkpoint; usable once.
    pub checkpoint: Option<String>,
    /// The answer to an `ask`, the decision of an `approve` that an agent may decide, and secret inputs again.
    pub inputs: Map<String, Value>,
    /// Who asks.
    pub actor: String,
    /// Whether a person does.
    pub human: bool,
}

/// A run that goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resumed {
    /// The run.
    pub run: RunId,
    /// Its records after this position are those of going on, the `run-start` first.
    pub after: Seq,
}

/// What the log holds for a resume.
pub(crate) struct Stored {
    pub(crate) fold: RunFold,
    pub(crate) checkpoint: String,
    pub(crate) data: ResumeData,
}

impl Stored {
    /// Tells secret inputs, which are never stored, from the rest of what was given.
    pub(crate) fn secrets_of(&self, given: Map<String, Value>) -> (Map<String, Value>, Map<String, Value>) {
        let secrets = self.data.origin.as_ref().map(|origin| origin.secrets.as_slice()).unwrap_or_default();
        given.into_iter().partition(|(name, _)| secrets.iter().any(|known| known == name))
    }
}

impl Service {
    /// Goes on with a run at its last checkpoint, and returns when that is durable.
    ///
    /// A suspended run needs its decision or answer: made before ([`Service::approve`]) or given here. An interrupted run
    /// starts its last state again.
    ///
    /// # Errors
    ///
    /// When the run cannot go on, with what to do; nothing has changed then.
    pub async fn resume(&self, request: Resume) -> Result<Resumed, RunsError> {
        let run = self.run_of(&request)?;
        let stored = self.stored(&run, request.checkpoint.as_deref()).await?;
        let pending = stored.fold.approval.clone().filter(|_| stored.fold.status == RunStatus::Suspended);
        let (resolution, secrets) = match &pending {
            Some(pending) => decide(&run, pending, &stored, &request)?,
            None => (None, request.inputs.clone()),
        };
        let lock = self.lock_at_rest(&stored).await?;
        let thread = stored.fold.thread.clone();
        let door = Arc::new(Door::new(self.inner.relay.publisher(&thread, &run).await?));
        let cancels = self.cancels();
        let mut ready = self.ready(&stored, resolution.clone(), secrets, &door, &cancels)?;
        let mut events = Vec::new();
        if let (Some(resolution), Some(PendingApproval { decision: None, .. })) = (resolution, &pending) {
            events.push(crate::approve::resolved(&resolution, &request.actor, stored.fold.last).into());
        }
        events.push(CheckpointClaimed { checkpoint: stored.checkpoint.clone(), actor: request.actor }.into());
        // All up to the next checkpoint: a kill at any time leaves a run that can be resumed.
        let opening = ready.opening();
        events.extend_from_slice(opening);
        let opening = opening.len() as u64;
        let claim = Claim { key: format!("checkpoint:{}", stored.checkpoint), value: String::new() };
        let fold = match self.inner.relay.commit(&thread, &run, &events, Some(claim)).await {
            Err(RelayError::Claimed { .. }) => {
                return Err(RunsError::CheckpointUsed { checkpoint: stored.checkpoint });
            }
            committed => committed?,
        };
        self.host(ready, door, cancels, lock, fold.resumed_at).await?;
        Ok(Resumed { run, after: Seq(fold.last.0.saturating_sub(opening)) })
    }

    /// Those of `inputs` that are secrets of a run that rests, which it needs again to go on: they are never stored.
    ///
    /// # Errors
    ///
    /// As [`Service::resume`], when the run does not rest.
    pub async fn secrets_among(
        &self,
        run: &RunId,
        inputs: Map<String, Value>,
    ) -> Result<Map<String, Value>, RunsError> {
        Ok(self.stored(run, None).await?.secrets_of(inputs).0)
    }

    /// Names of the secrets that a run which rests needs again to go on.
    ///
    /// # Errors
    ///
    /// As [`Service::resume`], when the run does not rest.
    pub async fn secrets_of(&self, run: &RunId) -> Result<Vec<String>, RunsError> {
        Ok(self.stored(run, None).await?.data.origin.map(|origin| origin.secrets).unwrap_or_default())
    }

    /// The run that a checkpoint is of, told by its id alone: whether there is such a run, and whether this is its
    /// checkpoint now, is another question.
    pub fn run_of_checkpoint(checkpoint: &str) -> Option<RunId> {
        ids::run_of(checkpoint)
    }

    /// Locks a run that rests.
    ///
    /// A host lets go of it a moment after the record that says so; or it is one that goes on with it just now, in
    /// which case the checkpoint is used up.
    async fn lock_at_rest(&self, stored: &Stored) -> Result<Lock, RunsError> {
        let run = &stored.fold.run;
        let deadline = Instant::now() + LET_GO;
        loop {
            if let Some(lock) = self.lock(run).await? {
                return Ok(lock);
            }
            let checkpoint = self.inner.relay.run(run).await?.and_then(|fold| fold.checkpoint);
            if checkpoint.is_none_or(|(current, _)| current != stored.checkpoint) {
                return Err(RunsError::CheckpointUsed { checkpoint: stored.checkpoint.clone() });
            }
            if Instant::now() > deadline {
                let help = "the process that ran it still holds it; try again";
                return Err(RunsError::WrongState { run: run.clone(), status: stored.fold.status, help });
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn run_of(&self, request: &Resume) -> Result<RunId, RunsError> {
        match (&request.run, &request.checkpoint) {
            (Some(run), _) => Ok(RunId::new(run)?),
            (None, Some(checkpoint)) => {
                ids::run_of(checkpoint).ok_or_else(|| RunsError::NoRun { run: checkpoint.clone() })
            }
            (None, None) => Err(RunsError::NoRun { run: String::new() }),
        }
    }

    /// Reads what a resume needs from the log.
    pub(crate) async fn stored(&self, run: &RunId, checkpoint: Option<&str>) -> Result<Stored, RunsError> {
        let fold = self.fold(run).await?;
        if fold.external {
            let help = "only its producer can decide for it, or go on with it";
            return Err(RunsError::External { run: run.clone(), help });
        }
        if !matches!(fold.status, RunStatus::Suspended | RunStatus::Interrupted) {
            let help = match fold.status {
                RunStatus::Running => "wait for it, or cancel it",
                _ => "it is over; start a new run",
            };
            return match checkpoint {
                Some(checkpoint) => Err(RunsError::CheckpointUsed { checkpoint: checkpoint.to_owned() }),
                None => Err(RunsError::WrongState { run: run.clone(), status: fold.status, help }),
            };
        }
        let Some((current, at)) = fold.checkpoint.clone() else {
            return Err(RunsError::NoCheckpoint { run: run.clone() });
        };
        if let Some(given) = checkpoint
            && given != current
        {
            return Err(RunsError::CheckpointUsed { checkpoint: given.to_owned() });
        }
        let missing = || RunsError::NoCheckpoint { run: run.clone() };
        let first = self.checkpoint_after(&fold.thread, run, Start::After(Seq(fold.first.0.saturating_sub(1))));
        let first = first.await?.ok_or_else(missing)?;
        let latest = self.checkpoint_after(&fold.thread, run, Start::After(Seq(at.0.saturating_sub(1))));
        let latest = latest.await?.ok_or_else(missing)?;
        let data = ResumeData::read(&first, &latest)?;
        Ok(Stored { fold, checkpoint: current, data })
    }

    async fn checkpoint_after(&self, thread: &ThreadId, run: &RunId, start: Start) -> Result<Option<Value>, RunsError> {
        let filter = Filter { run: Some(run.clone()), types: vec!["checkpoint".into()], ..Filter::default() };
        let page =
            self.inner.relay.page(thread, &PageQuery { start, filter, limit: 1, ..PageQuery::default() }).await?;
        let record = page.lines.first().and_then(|line| Record::parse(line).ok());
        Ok(record.and_then(|record| match record.event {
            Event::Checkpoint(checkpoint) => Some(checkpoint.resume),
            _ => None,
        }))
    }

    /// Checks everything that can be checked before anything is stored.
    pub(crate) fn ready(
        &self,
        stored: &Stored,
        resolution: Option<Resolution>,
        secrets: Map<String, Value>,
        door: &Arc<Door>,
        cancels: &(process::Cancel, process::Cancel),
    ) -> Result<Run, RunsError> {
        let run = &stored.fold.run;
        let job = Job {
            run: run.clone(),
            thread: stored.fold.thread.clone(),
            inputs: secrets,
            cwd: self.inner.config.cwd.clone(),
            env: Vec::new(),
            usage: stored.fold.usage,
            sink: door.clone(),
            cancel: cancels.0.clone(),
            shutdown: cancels.1.clone(),
            ids: id_source(run),
        };
        Ok(self.inner.engine.prepare_resume(stored.data.clone(), resolution, job)?)
    }
}

/// The decision or answer that a suspended run goes on with, and what of the inputs is secrets given again.
fn decide(
    run: &RunId,
    pending: &PendingApproval,
    stored: &Stored,
    request: &Resume,
) -> Result<(Option<Resolution>, Map<String, Value>), RunsError> {
    let (secrets, mut given) = stored.secrets_of(request.inputs.clone());
    let resolution = |decision, content| Resolution {
        approval: pending.approval.clone(),
        hash: pending.hash.clone(),
        decision,
        content,
    };
    if let Some(decision) = pending.decision {
        return Ok((Some(resolution(decision, pending.content.clone())), secrets));
    }
    if pending.schema.is_some() {
        // An empty object may be an answer, but hardly ever is: without inputs, nothing was answered.
        return match given.is_empty() {
            false => Ok((Some(resolution(Decision::Approve, Some(Value::Object(given)))), secrets)),
            true => Err(RunsError::Undecided {
                run: run.clone(),
                what: "an answer",
                state: pending.state.clone(),
                how: "inputs that fit its schema",
            }),
        };
    }
    if pending.by == Approver::Human && !request.human {
        return Err(RunsError::HumanOnly { run: run.clone(), state: pending.state.clone() });
    }
    let decision = given.remove("decision").and_then(|decision| serde_json::from_value(decision).ok());
    match decision {
        Some(decision) => Ok((Some(resolution(decision, None)), secrets)),
        None => Err(RunsError::Undecided {
            run: run.clone(),
            what: "a decision",
            state: pending.state.clone(),
            how: "inputs {\"decision\": \"approve\"} or {\"decision\": \"reject\"}",
        }),
    }
}
