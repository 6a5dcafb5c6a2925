//! Tasks that are runs (SEP-2663, extension `io.modelcontextprotocol/tasks`).
//!
//! A task is a view of a run: its id is the run's, and nothing is stored for it. So it is durable before its creation is
//! answered, survives a restart, and can be polled from any process on the same store.
//!
//! ```no_run
//! use std::sync::Arc;
//! use rmcp::{ErrorData, RoleServer, model::*, service::RequestContext};
//! use taffrail_transport::mcp::{backend::{Backend, StartRun}, tasks::{self, Tasks}};
//!
//! async fn call_tool(
//!     backend: Arc<dyn Backend>,
//!     cx: RequestContext<RoleServer>,
//! ) -> Result<CallToolResponse, ErrorData> {
//!     let run = backend.start(StartRun { playbook: "release".into(), ..StartRun::default() }).await;
//!     let run = run.map_err(|error| ErrorData::internal_error(error.to_string(), None))?.run;
//!     let tasks = Tasks::new(backend, |snapshot| {
//!         CallToolResult::success(vec![ContentBlock::text(snapshot["status"].to_string())])
//!     });
//!     if tasks::declared(&cx) {
//!         return tasks.created(&run, &cx).await.map(CallToolResponse::from);
//!     }
//!     // … wait for the run, and answer with its result …
//! #   Err(ErrorData::internal_error("", None))
//! }
//! ```

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolResult, CreateTaskResult, DetailedTask, ErrorCode, GetTaskResult, InputResponses, Task, TaskPayload,
        TaskStatus,
    },
    service::RequestContext,
};
use serde_json::{Map, Value, json};
use taffrail_progress::{
    Reply, one_line,
    rmcp::{read_reply, takes_forms},
};

use super::{
    answer::failed,
    backend::{Backend, BackendError, BackendErrorKind, LogQuery},
    call::is_modern,
    question::Pending,
    told,
};

/// How often a client is asked to look. Runs last; who wants every line follows the log.
pub const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// How long a cancel waits for the end of the processes before it is acknowledged; the end comes all the same.
const CANCEL_ANSWER: Duration = Duration::from_secs(1);

/// Whether this request may be answered with a task: it declares the extension, in a revision that has it.
pub fn declared(context: &RequestContext<RoleServer>) -> bool {
    is_modern(context) && context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks())
}

/// The runs of a [`Backend`] as tasks.
///
/// A backend shows a caller only what is the caller's, so a task of somebody else is one that does not exist.
///
/// Clones share what they know of questions that a person did not want to answer.
#[derive(Clone)]
pub struct Tasks {
    backend: Arc<dyn Backend>,
    result: Arc<dyn Fn(Value) -> CallToolResult + Send + Sync>,
    declined: Arc<Mutex<VecDeque<String>>>,
}

/// Approvals remembered as declined. One that is pushed out is asked about again.
const DECLINED_KEPT: usize = 1024;

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").finish_non_exhaustive()
    }
}

impl Tasks {
    /// Tasks whose result, once the run is over, is what `result` makes of its snapshot.
    pub fn new(backend: Arc<dyn Backend>, result: impl Fn(Value) -> CallToolResult + Send + Sync + 'static) -> Self {
        Self { backend, result: Arc::new(result), declined: Arc::default() }
    }

    /// The answer to the call that started `run`, or goes on with it.
    ///
    /// # Errors
    ///
    /// -32602 when there is no such run, -32603 when the store cannot be read.
    pub async fn created(
        &self,
        run: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<CreateTaskResult, ErrorData> {
        // What a caller is told now has no room for a result or a question: both come with the first look.
        let GetTaskResult { task: DetailedTask { task, .. }, .. } = self.get(run, context).await?;
        Ok(CreateTaskResult::new(task))
    }

    /// `tasks/get`.
    ///
    /// A run that waits for a person is `input_required` where the request declares elicitation, else, and once the person
    /// has declined to be asked, `working`, and the status message says what it waits for. One whose server ended is
    /// `failed`: the run itself can be resumed.
    ///
    /// # Errors
    ///
    /// As [`Tasks::created`].
    pub async fn get(&self, id: &str, context: &RequestContext<RoleServer>) -> Result<GetTaskResult, ErrorData> {
        let snapshot = self.snapshot(id).await?;
        let mut task = self.task(id, &snapshot).await?;
        let payload = match status(&snapshot) {
            "done" | "halt" => TaskPayload::Completed { result: self.result(snapshot)? },
            "cancelled" => TaskPayload::Cancelled,
            "interrupted" => TaskPayload::Failed { error: interrupted(&task, snapshot) },
            _ => match self.asks(&snapshot, context, &mut task).await {
                Some(pending) => {
                    let request = pending.request().map(|request| (pending.approval, request));
                    TaskPayload::InputRequired { input_requests: request.into_iter().collect() }
                }
                None => TaskPayload::Working,
            },
        };
        Ok(GetTaskResult::new(DetailedTask::new(task, payload)))
    }

    /// `tasks/update`: the answers of a person. One to something that the run does not wait for, or not any more, is passed
    /// over; declining or closing a question decides nothing, and it is not asked again until the run is resumed.
    ///
    /// # Errors
    ///
    /// -32602 when there is no such run, or an answer does not fit: nothing was decided then.
    pub async fn update(&self, id: &str, responses: InputResponses) -> Result<(), ErrorData> {
        let snapshot = self.snapshot(id).await?;
        let Some(pending) = Pending::of(&snapshot) else { return Ok(()) };
        let Some(response) = responses.get(&pending.approval) else { return Ok(()) };
        let refuse = |what: &str| {
            let text = format!("inputResponses.{}: {what}; the task still waits for an answer", pending.approval);
            ErrorData::invalid_params(text, None)
        };
        let content = match read_reply(response).map_err(refuse)? {
            Reply::Accepted(content) => content,
            Reply::Declined | Reply::Dismissed => {
                self.decline(pending.approval);
                return Ok(());
            }
        };
        let decided = pending.decide(content, Map::new()).map_err(|what| refuse(&what))?;
        match self.backend.decide(decided).await {
            Ok(_) => Ok(()),
            // Somebody was first. What became of the task is seen with the next look.
            Err(BackendError { kind: BackendErrorKind::Conflict, .. }) => Ok(()),
            Err(BackendError { kind: BackendErrorKind::Invalid, message }) => Err(refuse(&message)),
            Err(error) => Err(failed(error)),
        }
    }

    /// `tasks/cancel`: ends the run, its whole process group with it. Harmless for one that is over.
    ///
    /// # Errors
    ///
    /// As [`Tasks::created`].
    pub async fn cancel(&self, id: &str) -> Result<(), ErrorData> {
        self.snapshot(id).await?;
        let (backend, run) = (Arc::clone(&self.backend), id.to_owned());
        // A task of its own: a cancel that was begun comes to its end, whoever still waits for it.
        let cancel = tokio::spawn(async move { backend.cancel(&run, None).await });
        match tokio::time::timeout(CANCEL_ANSWER, cancel).await {
            Ok(Ok(Err(error))) => Err(failed(error)),
            _ => Ok(()),
        }
    }

    /// What the person is asked, if the run waits for one and they can be: not where they declined before, nor where an
    /// answer alone is not enough.
    async fn asks(&self, snapshot: &Value, context: &RequestContext<RoleServer>, task: &mut Task) -> Option<Pending> {
        let pending = Pending::of(snapshot).filter(|pending| takes_forms(context) && !self.is_declined(pending))?;
        // It has moved on since, or lives elsewhere, where alone it can be decided.
        let Ok(secrets) = self.backend.secrets(&task.task_id).await else { return None };
        if secrets.is_empty() {
            return Some(pending);
        }
        let given: String = secrets.iter().map(|name| format!(" -i {name}=…")).collect();
        task.status_message = Some(one_line(&format!(
            "waits: decide it with `taffrail approve {}{given}`, as its secrets are not stored. {}",
            task.task_id, pending.question.message
        )));
        None
    }

    fn declined(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.declined.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_declined(&self, pending: &Pending) -> bool {
        self.declined().contains(&pending.approval)
    }

    /// A client asks its person whenever it sees the question, so one that was declined is not shown again.
    fn decline(&self, approval: String) {
        let mut declined = self.declined();
        declined.push_back(approval);
        if declined.len() > DECLINED_KEPT {
            declined.pop_front();
        }
    }

    /// Shows the question again.
    pub(super) fn ask_again(&self, pending: &Pending) {
        self.declined().retain(|approval| *approval != pending.approval);
    }

    async fn snapshot(&self, id: &str) -> Result<Value, ErrorData> {
        self.backend.snapshot(id).await.map_err(failed)
    }

    /// Everything but the payload.
    async fn task(&self, id: &str, snapshot: &Value) -> Result<Task, ErrorData> {
        let created = snapshot.get("started_at").and_then(Value::as_str).unwrap_or_default();
        let updated = match self.last(id, &[]).await? {
            Some(record) => field(&record, "ts"),
            None => None,
        };
        let output = match status(snapshot) {
            "running" => self.last(id, &["log", "message"]).await?.and_then(|record| told::text_of(&record)),
            _ => None,
        };
        let task = Task::new(id, TaskStatus::Working, created, updated.as_deref().unwrap_or(created));
        let interval = u64::try_from(POLL_INTERVAL.as_millis()).unwrap_or(u64::MAX);
        Ok(task.with_status_message(told::of_snapshot(snapshot, output.as_deref())).with_poll_interval_ms(interval))
    }

    /// The last record of these types.
    async fn last(&self, id: &str, types: &[&str]) -> Result<Option<String>, ErrorData> {
        let types = types.iter().map(|kind| (*kind).to_owned()).collect();
        let query =
            LogQuery { run: id.to_owned(), limit: 1, tail: Some(1), max_bytes: 1, types, ..LogQuery::default() };
        let page = self.backend.logs(query).await.map_err(failed)?;
        Ok(page.records.last().map(|record| record.json.to_string()))
    }

    fn result(&self, snapshot: Value) -> Result<Map<String, Value>, ErrorData> {
        match serde_json::to_value((self.result)(snapshot)) {
            Ok(Value::Object(result)) => Ok(result),
            Ok(_) => Ok(Map::new()),
            Err(error) => Err(ErrorData::internal_error(error.to_string(), None)),
        }
    }
}

fn status(snapshot: &Value) -> &str {
    snapshot.get("status").and_then(Value::as_str).unwrap_or_default()
}

fn field(record: &str, key: &str) -> Option<String> {
    let record: Value = serde_json::from_str(record).ok()?;
    record.get(key)?.as_str().map(str::to_owned)
}

/// A JSON-RPC error: what the request that made the task would have failed with.
fn interrupted(task: &Task, snapshot: Value) -> Map<String, Value> {
    let message = task.status_message.clone().unwrap_or_default();
    Map::from_iter([
        ("code".to_owned(), json!(ErrorCode::INTERNAL_ERROR.0)),
        ("message".to_owned(), message.into()),
        ("data".to_owned(), snapshot),
    ])
}
