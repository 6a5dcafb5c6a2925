//! Deciding approvals and answering questions.

use std::sync::Arc;

use serde_json::{Map, Value};
use taffrail_engine::Resolution;
use taffrail_mcp_core::{ApprovalResolved, Decision, Event, RunFold, RunId, RunStatus, Seq};
use taffrail_relay::{Claim, RelayError};

use crate::{RunsError, Service, door::Door};

/// A decision by a person.
#[derive(Debug, Clone, PartialEq)]
pub struct Approve {
    /// The run.
    pub run: RunId,
    /// The approval; what the run waits for when not given.
    pub approval: Option<String>,
    /// What is decided.
    pub decision: Decision,
    /// Hash of what was looked at; not checked when not given.
    pub hash: Option<String>,
    /// Position of the log that the decider has seen; the head when not given.
    pub seen_seq: Option<Seq>,
    /// The answer to an `ask`, when it is not in `inputs`.
    pub content: Option<Value>,
    /// Secret inputs again, so that all that a resume needs can be checked before the decision is stored; and, for an
    /// `ask`, the fields of the answer.
    pub inputs: Map<String, Value>,
    /// Who decides.
    pub actor: String,
}

impl Service {
    /// Stores a decision. The run stays suspended until somebody resumes it.
    ///
    /// # Errors
    ///
    /// A conflict when the run does not wait for this, or somebody decided first; an error that names the places when
    /// an answer does not fit its schema. Nothing is stored then.
    pub async fn approve(&self, request: Approve) -> Result<RunFold, RunsError> {
        let Approve { run, approval, decision, hash, seen_seq, content, inputs, actor } = request;
        let stored = match self.stored(&run, None).await {
            Err(RunsError::WrongState { run, status, .. }) => {
                return Err(RunsError::WrongState { run, status, help: "it waits for no decision" });
            }
            stored => stored?,
        };
        let Some(pending) = stored.fold.approval.clone().filter(|_| stored.fold.status == RunStatus::Suspended) else {
            let status = stored.fold.status;
            return Err(RunsError::WrongState { run, status, help: "it waits for no decision; resume it" });
        };
        if let Some(given) = approval.filter(|given| *given != pending.approval) {
            return Err(RunsError::NotWaitingFor { run, given });
        }
        if let Some(decision) = pending.decision {
            return Err(decided(pending.approval, decision));
        }
        if hash.is_some_and(|hash| hash != pending.hash) {
            return Err(RunsError::HashMoved { hash: pending.hash });
        }
        let head = self.inner.relay.extent(&stored.fold.thread).await?.head;
        let seen = seen_seq.unwrap_or(head);
        // The suspension is the last thing that the run itself wrote; what the approval is about comes before it.
        if seen < stored.fold.changed || seen > head {
            return Err(RunsError::NotSeen { seen: seen.0, first: stored.fold.changed.0 });
        }
        let (secrets, given) = stored.secrets_of(inputs);
        let asks = pending.schema.is_some() && decision == Decision::Approve;
        let (content, secrets) = match content {
            None if asks => (Some(Value::Object(given)), secrets),
            // What is no secret is refused below, by its name.
            content => (content, secrets.into_iter().chain(given).collect()),
        };
        let resolution = Resolution { approval: pending.approval.clone(), hash: pending.hash, decision, content };
        let door = Arc::new(Door::new(self.inner.relay.publisher(&stored.fold.thread, &run).await?));
        // Made ready and thrown away: it checks the answer, the hash and the secrets.
        drop(self.ready(&stored, Some(resolution.clone()), secrets, &door, &self.cancels())?);
        let event = Event::from(resolved(&resolution, &actor, seen));
        let claim = Claim { key: format!("approval:{}", pending.approval), value: word(decision).to_owned() };
        match self.inner.relay.commit(&stored.fold.thread, &run, &[event], Some(claim)).await {
            Err(RelayError::Claimed { value }) => {
                Err(RunsError::Decided { approval: pending.approval, decision: value })
            }
            committed => Ok(committed?),
        }
    }
}

fn decided(approval: String, decision: Decision) -> RunsError {
    RunsError::Decided { approval, decision: word(decision).to_owned() }
}

const fn word(decision: Decision) -> &'static str {
    match decision {
        Decision::Approve => "approve",
        Decision::Reject => "reject",
    }
}

/// The event of a decision.
pub(crate) fn resolved(resolution: &Resolution, actor: &str, seen: Seq) -> ApprovalResolved {
    let Resolution { approval, hash, decision, content } = resolution.clone();
    ApprovalResolved { approval, decision, hash, actor: actor.to_owned(), seen_seq: seen.0, content }
}
