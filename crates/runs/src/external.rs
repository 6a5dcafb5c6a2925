//! Runs that live elsewhere: started here, fed by their producer, ended by it, or by us when it is gone.

use std::sync::Arc;

use serde_json::{Map, Value};
use taffrail_mcp_core::{Event, Reason, RunFinished, RunFold, RunId, RunStart, RunStatus, ThreadId};
use taffrail_relay::RelayError;

use crate::{
    RunsError, Service, clock, ids,
    start::{Key, Started},
};

/// What the `run-start` of an external run says as its `entry`: what states it has, only its producer knows.
const ENTRY: &str = "external";

/// Most characters of a name.
const MAX_NAME: usize = 200;

impl Service {
    /// Writes the `run-start` of a run that nobody hosts.
    pub(crate) async fn start_external(
        &self,
        name: String,
        inputs: &Map<String, Value>,
        thread: Option<ThreadId>,
        run: Option<RunId>,
        key: Option<&Key>,
    ) -> Result<Started, RunsError> {
        if name.is_empty() || name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
            return Err(RunsError::BadName { limit: MAX_NAME });
        }
        if !inputs.is_empty() {
            return Err(RunsError::ExternalInputs);
        }
        // An id that was just made is nobody else's. One that was given is taken as by a host, for as long as it takes to
        // see that there is no such run and to write that there is.
        let (run, _lock) = match run {
            None => (ids::run()?, None),
            Some(run) => {
                let lock = self.lock(&run).await?;
                if let Some(fold) = self.inner.relay.run(&run).await? {
                    return self.made_before(fold, key).await;
                }
                // Whoever has the lock makes the run, or was killed while it did.
                let Some(lock) = lock else { return Err(RunsError::BeingMade { run }) };
                (run, Some(lock))
            }
        };
        let thread = thread.unwrap_or_else(|| run.clone().into());
        let claim = key.map(|key| key.claim(&run));
        match (self.inner.relay.commit(&thread, &run, &[start(name, false)], claim).await, key) {
            (Err(RelayError::Claimed { value }), Some(key)) => self.earlier(&value, key).await,
            (committed, _) => Ok(Started::of(committed?, false)),
        }
    }

    /// There is a run of the id that was given: that of an earlier try, or another one.
    async fn made_before(&self, fold: RunFold, key: Option<&Key>) -> Result<Started, RunsError> {
        if let Some(key) = key
            && let Some(value) = self.inner.relay.store().claim(key.claim_key()).await?
        {
            return self.earlier(&value, key).await;
        }
        let help = "give the new run another id";
        Err(RunsError::WrongState { run: fold.run, status: fold.status, help })
    }

    /// A fold of an external run that says `interrupted` when nothing has come from its producer for too long.
    pub(crate) async fn settled_external(&self, fold: RunFold) -> Result<RunFold, RunsError> {
        let silent = clock::since(fold.updated_at);
        if fold.status.ended() || silent <= self.inner.config.external_silence {
            return Ok(fold);
        }
        let (status, error) = match fold.cancel.is_some() {
            true => (RunStatus::Cancelled, Reason::CANCELLED),
            false => (RunStatus::Interrupted, Reason::PRODUCER_GONE),
        };
        let detail = format!("nothing came from its producer for {} s", silent.as_secs());
        let end = ended(&fold, status, error, detail);
        self.conclude(fold, end).await
    }

    /// Goes on with a run whose producer was taken for gone and has come back.
    pub(crate) async fn producer_is_back(&self, fold: Arc<RunFold>) -> Result<RunFold, RunsError> {
        let start = [start(fold.playbook.clone(), true)];
        let still = |fold: Option<&RunFold>| fold.is_some_and(was_given_up);
        let gone_on = self.inner.relay.commit_if(&fold.thread, &fold.run, &start, None, still).await?;
        match gone_on {
            Some(fold) => Ok(fold),
            // Somebody else has gone on with it, or ended it.
            None => self.read(&fold.run).await,
        }
    }
}

/// Whether a run was ended because nothing came from its producer, which nobody but the producer can know better.
pub(crate) fn was_given_up(fold: &RunFold) -> bool {
    fold.external && fold.status == RunStatus::Interrupted && fold.error == Some(Reason::PRODUCER_GONE)
}

fn start(machine: String, resumed: bool) -> Event {
    RunStart { machine, depth: 0, entry: ENTRY.to_owned(), resumed, external: true }.into()
}

/// The end of a run that nobody else writes. It ran until its last record, as far as anybody can tell.
pub(crate) fn ended(fold: &RunFold, status: RunStatus, error: Reason, detail: impl Into<String>) -> Event {
    let end = RunFinished {
        machine: fold.playbook.clone(),
        depth: 0,
        status,
        error: Some(error),
        at: fold.state.clone(),
        usage: fold.usage_at(fold.updated_at.min(clock::now())),
        detail: Some(detail.into()),
    };
    end.into()
}
