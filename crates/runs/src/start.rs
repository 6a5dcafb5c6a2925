//! Starting a run.

use std::{path::PathBuf, sync::Arc};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use taffrail_engine::{
    Job, for_command,
    playbook::{Playbook, resolve_inputs},
};
use taffrail_mcp_core::{RunFold, RunId, RunStatus, Seq, ThreadId, Usage};
use taffrail_relay::{Claim, RelayError};

use crate::{
    RunsError, Service,
    door::Door,
    hosts::{Held, HostsError, Lock},
    ids,
};

/// What a run does.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// A playbook, by name or, when `paths`, by path too.
    Playbook {
        /// Its name or path.
        name: String,
        /// Whether a path may be given: only where the caller shares our file system.
        paths: bool,
    },
    /// One command, without a shell.
    Command {
        /// What the run is called.
        name: String,
        /// Program and arguments.
        argv: Vec<String>,
        /// Bytes of output to keep; `None` for the default of playbooks.
        output_cap: Option<u64>,
    },
    /// Something that runs elsewhere and sends its events here ([`Service::ingest`]). Its `run-start` is written here, with
    /// `external: true` and `external` as its `entry`, whatever states it has; its producer sends everything else,
    /// `run-finished` last. No process of ours hosts it, and it has no spool file.
    External {
        /// What the run is called: 1 to 200 characters.
        name: String,
    },
}

/// A request to start a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// What to run.
    pub work: Work,
    /// Inputs of a playbook.
    pub inputs: Map<String, Value>,
    /// The thread to log to; the run's own by default.
    pub thread: Option<ThreadId>,
    /// Makes a repeated request return the run that the first one started. 1 to 256 characters.
    pub idempotency_key: Option<String>,
    /// The new run's id, when the caller has made one.
    pub run: Option<RunId>,
    /// Working directory; the service's by default.
    pub cwd: Option<PathBuf>,
    /// More environment for its processes. Never stored.
    pub env: Vec<(String, String)>,
}

impl Start {
    /// Just this work.
    pub fn new(work: Work) -> Self {
        Self { work, inputs: Map::new(), thread: None, idempotency_key: None, run: None, cwd: None, env: Vec::new() }
    }
}

/// What became of a request to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// The run.
    pub run: RunId,
    /// Its log.
    pub thread: ThreadId,
    /// Its records are those after this position, the `run-start` first.
    pub after: Seq,
    /// It was started earlier, with the same idempotency key.
    pub existing: bool,
}

impl Started {
    pub(crate) fn of(fold: RunFold, existing: bool) -> Self {
        let RunFold { run, thread, first, .. } = fold;
        Self { run, thread, after: Seq(first.0.saturating_sub(1)), existing }
    }
}

impl Service {
    /// Starts a run and returns when its first records, up to its first checkpoint, are durable. The run goes on whether or not anybody waits.
    ///
    /// The future should be driven to its end: dropped after the first records are stored, it leaves a run that the next
    /// look finds `interrupted`.
    ///
    /// # Errors
    ///
    /// When the playbook or its inputs are wrong, the key was used for something else, or the store cannot be written.
    pub async fn start(&self, request: Start) -> Result<Started, RunsError> {
        let Start { work, inputs, thread, idempotency_key, run, cwd, env } = request;
        let key = idempotency_key.map(|key| check_key(key, &work, &inputs)).transpose()?;
        if let Some(key) = &key
            && let Some(value) = self.inner.relay.store().claim(key.claim_key()).await?
        {
            return self.earlier(&value, key).await;
        }
        let playbook = match work {
            Work::Playbook { name, paths } => self.find_playbook(name, paths).await?,
            Work::Command { name, argv, output_cap } => command(&name, &argv, output_cap)?,
            Work::External { name } => return self.start_external(name, &inputs, thread, run, key.as_ref()).await,
        };
        resolve_inputs(&playbook, &inputs)
            .map_err(|errors| RunsError::Inputs { playbook: playbook.name.clone(), errors })?;
        let run = run.map_or_else(ids::run, Ok)?;
        let thread = thread.unwrap_or_else(|| run.clone().into());
        let taken = |status| RunsError::WrongState { run: run.clone(), status, help: "give the new run another id" };
        let lock = self.lock(&run).await?.ok_or_else(|| taken(RunStatus::Running))?;
        // Under the lock, so that of two starts with one id the second sees the first.
        if let Some(fold) = self.inner.relay.run(&run).await? {
            return Err(taken(fold.status));
        }
        let door = Arc::new(Door::new(self.inner.relay.publisher(&thread, &run).await?));
        let cancels = self.cancels();
        let job = Job {
            run: run.clone(),
            thread: thread.clone(),
            inputs,
            cwd: cwd.unwrap_or_else(|| self.inner.config.cwd.clone()),
            env,
            usage: Usage::default(),
            sink: door.clone(),
            cancel: cancels.0.clone(),
            shutdown: cancels.1.clone(),
            ids: id_source(&run),
        };
        let engine = self.inner.engine.clone();
        let ready = tokio::task::spawn_blocking(move || engine.prepare(&playbook, job)).await;
        let mut ready = ready.map_err(|_| RunsError::Closing)?;
        let claim = key.as_ref().map(|key| key.claim(&run));
        let fold = match (self.inner.relay.commit(&thread, &run, ready.opening(), claim).await, &key) {
            (Err(RelayError::Claimed { value }), Some(key)) => return self.earlier(&value, key).await,
            (committed, _) => committed?,
        };
        self.host(ready, door, cancels, lock, fold.resumed_at).await?;
        Ok(Started::of(fold, false))
    }

    /// Locks a run in order to host it; `None` when it is hosted.
    pub(crate) async fn lock(&self, run: &RunId) -> Result<Option<Lock>, RunsError> {
        loop {
            match self.inner.living.lock(run).await.map_err(|error| self.cannot_lock(error))? {
                Held::Free(lock) => return Ok(Some(lock)),
                Held::ByHost => return Ok(None),
                // Who looks has it for the time of two accesses to the store.
                Held::ByLookers => tokio::time::sleep(self.inner.living.look_time()).await,
            }
        }
    }

    pub(crate) fn cannot_lock(&self, error: HostsError) -> RunsError {
        match error {
            HostsError::Store(error) => error.into(),
            HostsError::Io(path, source) => {
                RunsError::Folder { action: "lock a run in", path, source: Arc::new(source) }
            }
        }
    }

    /// The run that an idempotency key started before.
    pub(crate) async fn earlier(&self, value: &str, key: &Key) -> Result<Started, RunsError> {
        let (run, digest) = value.split_once(' ').unwrap_or((value, ""));
        if digest != key.digest {
            return Err(RunsError::KeyReused { key: key.text.clone(), run: run.to_owned() });
        }
        let fold = self.fold(&RunId::new(run)?).await?;
        Ok(Started::of(fold, true))
    }
}

/// The playbook that runs one command.
fn command(name: &str, argv: &[String], output_cap: Option<u64>) -> Result<Arc<Playbook>, RunsError> {
    let mut playbook = for_command(name, argv)?;
    if let Some(cap) = output_cap {
        playbook.budget.output_bytes = cap;
    }
    Ok(Arc::new(playbook))
}

/// Ids of a run's checkpoints and approvals.
pub(crate) fn id_source(run: &RunId) -> Arc<dyn taffrail_engine::IdSource> {
    let run = run.clone();
    Arc::new(move || ids::part_of(&run))
}

/// An idempotency key, with what it was used for.
#[derive(Debug)]
pub(crate) struct Key {
    text: String,
    digest: String,
}

impl Key {
    pub(crate) fn claim_key(&self) -> String {
        format!("start:{}", self.text)
    }

    pub(crate) fn claim(&self, run: &RunId) -> Claim {
        Claim { key: self.claim_key(), value: format!("{run} {}", self.digest) }
    }
}

const MAX_KEY: usize = 256;

fn check_key(text: String, work: &Work, inputs: &Map<String, Value>) -> Result<Key, RunsError> {
    if text.is_empty() || text.len() > MAX_KEY {
        return Err(RunsError::KeyLength { length: text.len() });
    }
    let mut hash = Sha256::new();
    match work {
        Work::Playbook { name, .. } => hash.update(format!("playbook {name}")),
        Work::Command { name, argv, .. } => hash.update(format!("command {name} {argv:?}")),
        Work::External { name } => hash.update(format!("external {name}")),
    }
    // Keys of a map are sorted, so equal inputs have equal texts.
    hash.update(Value::Object(inputs.clone()).to_string());
    let digest = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    Ok(Key { text, digest })
}
