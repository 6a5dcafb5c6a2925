//! Tasks as runs: small playbooks in a service with its store in memory.

use std::{
    collections::HashMap,
    fs,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result};
use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock, CreateTaskResult, GetTaskResult, InputResponses, JsonObject, TaskPayload},
};
use serde_json::Value;
use taffrail_relay::{MemoryStore, Relay};
use taffrail_runs::{Config, Layout, Service, Start, Work};
use taffrail_transport::{
    ServiceBackend,
    mcp::{
        backend::{Backend, BackendError, LogQuery, StartRun, WaitUntil},
        tasks::Tasks,
    },
};
use tempfile::TempDir;

use crate::server::Context;

const PLAYBOOKS: [(&str, &str); 4] = [
    ("slow-compute", include_str!("../playbooks/slow-compute.yaml")),
    ("failing-job", include_str!("../playbooks/failing-job.yaml")),
    ("confirm-delete", include_str!("../playbooks/confirm-delete.yaml")),
    ("greet", include_str!("../playbooks/greet.yaml")),
];

/// After this silence of its producer an external run is interrupted. The product waits a quarter of an hour.
const PRODUCER_SILENCE: Duration = Duration::from_secs(1);
/// Processes here do not mind being ended.
const GRACE: Duration = Duration::from_millis(500);

pub(crate) struct Jobs {
    service: Service,
    backend: Arc<dyn Backend>,
    /// Runs that are one task with another one.
    seconds: Mutex<HashMap<String, String>>,
    _folder: TempDir,
}

impl Jobs {
    pub(crate) fn open() -> Result<Self> {
        let folder = tempfile::tempdir().context("making a data directory")?;
        let playbooks = folder.path().join("playbooks");
        write_playbooks(&playbooks)?;
        let relay = Relay::start(Arc::new(MemoryStore::new()), Default::default())?;
        let config = Config::new(Layout::new(folder.path().join("data")), playbooks, folder.path().to_owned());
        let config = Config { external_silence: PRODUCER_SILENCE, grace: GRACE, ..config };
        let service = Service::open(relay, config)?;
        let backend = Arc::new(ServiceBackend::new(service.clone(), false, "conformance"));
        Ok(Self { service, backend, seconds: Mutex::default(), _folder: folder })
    }

    /// Ends the runs that still go on.
    pub(crate) async fn close(&self) {
        self.service.close().await;
    }

    /// Starts a run of a playbook.
    pub(crate) async fn start(&self, playbook: &str, inputs: JsonObject) -> Result<String, ErrorData> {
        let start = StartRun { playbook: playbook.to_owned(), inputs, ..StartRun::default() };
        Ok(self.backend.start(start).await.map_err(internal)?.run)
    }

    /// Starts a run that somebody else should work at, and nobody does.
    pub(crate) async fn start_abandoned(&self) -> Result<String, ErrorData> {
        let work = Work::External { name: "abandoned".to_owned() };
        let started = self.service.start(Start::new(work)).await.map_err(|error| internal(error.into()))?;
        Ok(started.run.to_string())
    }

    /// Makes two runs one task, under the id of the first.
    pub(crate) fn join(&self, first: &str, second: String) {
        self.seconds.lock().unwrap_or_else(PoisonError::into_inner).insert(first.to_owned(), second);
    }

    /// The answer to the call that started a run.
    pub(crate) async fn created(&self, run: &str, cx: &Context) -> Result<CreateTaskResult, ErrorData> {
        self.tasks(run).await?.created(run, cx).await
    }

    /// The result of a run, once it is over.
    pub(crate) async fn result(&self, run: &str) -> Result<CallToolResult, ErrorData> {
        self.backend.wait(run, WaitUntil::Settled).await.map_err(internal)?;
        let snapshot = self.backend.snapshot(run).await.map_err(internal)?;
        Ok(result(&snapshot, &self.last_line(run).await?))
    }

    /// `tasks/get`. A task of two runs has the questions of both, and is over when both are.
    pub(crate) async fn get(&self, id: &str, cx: &Context) -> Result<GetTaskResult, ErrorData> {
        let mut task = self.tasks(id).await?.get(id, cx).await?;
        if let Some(second) = self.second(id) {
            let other = self.tasks(&second).await?.get(&second, cx).await?.task.payload;
            let payload = both(task.task.payload, other);
            task.task = rmcp::model::DetailedTask::new(task.task.task, payload);
        }
        Ok(task)
    }

    /// `tasks/update`: each run passes over what is not for it.
    pub(crate) async fn update(&self, id: &str, responses: InputResponses) -> Result<(), ErrorData> {
        if let Some(second) = self.second(id) {
            self.tasks(&second).await?.update(&second, responses.clone()).await?;
        }
        self.tasks(id).await?.update(id, responses).await
    }

    /// `tasks/cancel`.
    pub(crate) async fn cancel(&self, id: &str) -> Result<(), ErrorData> {
        if let Some(second) = self.second(id) {
            self.tasks(&second).await?.cancel(&second).await?;
        }
        self.tasks(id).await?.cancel(id).await
    }

    fn second(&self, id: &str) -> Option<String> {
        self.seconds.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// The task store, for one run: a result is the last line that its run has said.
    async fn tasks(&self, run: &str) -> Result<Tasks, ErrorData> {
        let said = self.last_line(run).await?;
        Ok(Tasks::new(Arc::clone(&self.backend), move |snapshot| result(&snapshot, &said)))
    }

    async fn last_line(&self, run: &str) -> Result<String, ErrorData> {
        let types = vec!["log".to_owned()];
        let query =
            LogQuery { run: run.to_owned(), limit: 1, tail: Some(1), max_bytes: 1, types, ..LogQuery::default() };
        // An id that is none is told by the task store, in its own words.
        let Ok(page) = self.backend.logs(query).await else { return Ok(String::new()) };
        let record = page.records.last().and_then(|record| serde_json::from_str::<Value>(&record.json).ok());
        Ok(record.as_ref().and_then(|record| record["text"].as_str()).unwrap_or_default().to_owned())
    }
}

fn write_playbooks(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    for (name, text) in PLAYBOOKS {
        fs::write(folder.join(format!("{name}.yaml")), text).with_context(|| format!("writing {name}"))?;
    }
    Ok(())
}

/// A tool that ran and failed has a result that says so; that is no failure of its task.
fn result(snapshot: &Value, said: &str) -> CallToolResult {
    let content = vec![ContentBlock::text(if said.is_empty() { "nothing was said" } else { said })];
    match snapshot["status"] == "done" {
        true => CallToolResult::success(content),
        false => CallToolResult::error(content),
    }
}

/// What two runs are together: what is worse, or still goes on, counts.
fn both(first: TaskPayload, second: TaskPayload) -> TaskPayload {
    match (first, second) {
        (
            TaskPayload::InputRequired { input_requests: mut all },
            TaskPayload::InputRequired { input_requests: more },
        ) => {
            all.extend(more);
            TaskPayload::InputRequired { input_requests: all }
        }
        (asks @ TaskPayload::InputRequired { .. }, _) | (_, asks @ TaskPayload::InputRequired { .. }) => asks,
        (bad @ (TaskPayload::Failed { .. } | TaskPayload::Cancelled), _) => bad,
        (TaskPayload::Completed { .. }, second) => second,
        (first, _) => first,
    }
}

fn internal(error: BackendError) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
