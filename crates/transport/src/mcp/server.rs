//! The MCP server: what it is made of, and how a tool call is answered.

mod handler;
mod park;

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResponse, Tool},
    service::RequestContext,
};
use serde_json::{Map, Value};
use taffrail_progress::{Config, MrtrContext as _, StateKey, ToolContext, rmcp::Mrtr};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    args,
    backend::Backend,
    call::{Call, Failure},
    empty_reads::EmptyReads,
    level::Level,
    logs, runs, snapshot,
    subscriptions::Subscriptions,
    tables,
    tasks::Tasks,
    tools,
};
use crate::{forward::Destination, stdio::StdioTransport};

pub(crate) use self::park::Parked;

/// What an operator may set about the MCP surface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpConfig {
    /// The `logger` of event notifications. Default `taffrail.event`.
    pub event_logger: String,
    /// Callers share this file system, so that paths are told and taken. Default false; set it on stdio.
    pub shared_fs: bool,
    /// How often and how patiently callers are told of progress. Default: two a second, a beat every 15 s.
    pub progress: Config,
}

impl Default for McpConfig {
    fn default() -> Self {
        Self { event_logger: "taffrail.event".to_owned(), shared_fs: false, progress: Config::default() }
    }
}

/// The MCP server for one connection. What is shared between connections is in the [`Backend`].
///
/// Can be served over any rmcp transport. A call that is cancelled, or whose connection ends, stops
/// waiting; no run ever ends because of that.
pub struct McpServer {
    backend: Arc<dyn Backend>,
    shared_fs: bool,
    progress: Config,
    logger: Arc<str>,
    tools: Arc<[Tool]>,
    empty_reads: Arc<Mutex<EmptyReads>>,
    /// Set by `logging/setLevel`, in revisions that have sessions.
    level: Mutex<Option<Level>>,
    /// Where events go, when not through rmcp.
    destination: Option<Destination>,
    hung_up: CancellationToken,
    /// What the session is subscribed to, where there is one.
    subscriptions: Option<Subscriptions>,
    mrtr: Mrtr,
    tasks: Tasks,
}

impl McpServer {
    /// A server that answers from `backend`.
    pub fn new(backend: Arc<dyn Backend>, config: &McpConfig) -> Self {
        let McpConfig { event_logger, shared_fs, progress } = config;
        let shares = *shared_fs;
        let tasks = Tasks::new(Arc::clone(&backend), move |document| snapshot::result(document, shares));
        Self {
            tasks,
            backend,
            shared_fs: *shared_fs,
            progress: *progress,
            logger: event_logger.as_str().into(),
            tools: tools::all().into(),
            empty_reads: Arc::default(),
            level: Mutex::default(),
            destination: None,
            hung_up: CancellationToken::new(),
            subscriptions: Some(Subscriptions::default()),
            mrtr: Mrtr::new(key_of_this_process()),
        }
    }

    /// Seals what a client brings back when it was asked something with `key`, instead of one of this process: so that
    /// any server that has it can go on, also after a restart.
    #[must_use]
    pub fn sealed_with(mut self, key: StateKey) -> Self {
        self.mrtr = Mrtr::new(key);
        self
    }

    /// Lets events go straight into `transport`'s output, waits end with its input, and clients of all revisions be asked.
    #[must_use]
    pub fn over(mut self, transport: &StdioTransport) -> Self {
        self.destination = Some(Destination::Outbox(transport.outbox()));
        self.hung_up = transport.closed();
        self.mrtr = self.mrtr.sessions();
        self
    }

    /// The same server for a request that has no session. Its waits end when `ending` fires.
    #[must_use]
    pub fn for_request(&self, ending: CancellationToken) -> Self {
        Self {
            backend: Arc::clone(&self.backend),
            shared_fs: self.shared_fs,
            progress: self.progress,
            logger: Arc::clone(&self.logger),
            tools: Arc::clone(&self.tools),
            empty_reads: Arc::clone(&self.empty_reads),
            level: Mutex::default(),
            destination: None,
            hung_up: ending,
            subscriptions: None,
            mrtr: self.mrtr.clone(),
            tasks: self.tasks.clone(),
        }
    }

    fn session_level(&self) -> Option<Level> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a `tools/call`.
    async fn answer(
        &self,
        cx: ToolContext,
        context: RequestContext<RoleServer>,
        level: Option<Level>,
        brings_answers: bool,
        arguments: Option<Map<String, Value>>,
    ) -> Result<CallToolResponse, ErrorData> {
        let peer = || Destination::Peer(context.peer.clone());
        let call = Call {
            backend: Arc::clone(&self.backend),
            tasks: self.tasks.clone(),
            level,
            destination: self.destination.clone().unwrap_or_else(peer),
            logger: Arc::clone(&self.logger),
            shared_fs: self.shared_fs,
            hung_up: self.hung_up.clone(),
            context,
            cx,
            brings_answers,
        };
        let name = call.cx.handler_name();
        match self.dispatch(&call, name, arguments).await {
            Some(answer) => Ok(answer.unwrap_or_else(|failure| failure.into_result().into())),
            None => Err(self.unknown_tool(name)),
        }
    }

    /// Runs a tool. `None`: there is none of that name.
    async fn dispatch(
        &self,
        call: &Call,
        name: &str,
        arguments: Option<Map<String, Value>>,
    ) -> Option<Result<CallToolResponse, Failure>> {
        /// Reads the arguments, then does the work.
        macro_rules! with {
            ($args:expr, |$read:ident| $work:expr) => {
                match $args {
                    Ok($read) => $work.await.map(CallToolResponse::from),
                    Err(failure) => Err(failure),
                }
            };
        }
        let args = arguments;
        Some(match name {
            "run" => with!(args::read(args), |args| runs::run(call, args)),
            "resume" => with!(args::read(args), |args| runs::resume(call, args)),
            "run_status" => with!(args::read(args), |args| runs::run_status(call, args)),
            "run_logs" => with!(args::read(args), |args| logs::run_logs(call, &self.empty_reads, self.shared_fs, args)),
            "run_cancel" => with!(args::read(args), |args| runs::run_cancel(call, args)),
            "list_runs" => with!(args::read(args), |args| tables::list_runs(call, args)),
            "list_playbooks" => with!(args::read(args), |args| tables::list_playbooks(call, args)),
            "check_playbook" => with!(args::read(args), |args| tables::check_playbook(call, args)),
            _ => return None,
        })
    }

    fn unknown_tool(&self, name: &str) -> ErrorData {
        let names: Vec<_> = self.tools.iter().map(|tool| &*tool.name).collect();
        let text = format!("unknown tool `{name}`; there are {}", names.join(", "));
        ErrorData::invalid_params(text, None)
    }
}

fn key_of_this_process() -> StateKey {
    let mut key = [0; 32];
    let (one, other) = key.split_at_mut(16);
    one.copy_from_slice(Uuid::new_v4().as_bytes());
    other.copy_from_slice(Uuid::new_v4().as_bytes());
    StateKey::from_bytes(key)
}
