//! The calls of the wire contract.

use std::{num::NonZeroU64, time::Duration};

use bytes::Bytes;
use reqwest::{Method, RequestBuilder, header};
use serde_json::{Map, Value};
use taffrail_mcp_core::{
    CancelRequested, Decision, Gap, ProducerId, RunId, RunStatus, Seq, Snapshot, Start as From, ThreadId,
};

use super::{ClientConfig, ClientError, ServerUrl, call::Caller, wire};

/// A server, as those who use it see it. A clone is the same client, with the same connections.
#[derive(Debug, Clone)]
pub struct Client {
    pub(super) caller: Caller,
}

/// A request to start a run there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StartRun {
    /// What it does.
    pub work: StartWork,
    /// Makes a repeated request return the run that the first one started. 1 to 256 characters.
    pub idempotency_key: Option<String>,
    /// The new run's id, when the caller has made one.
    pub run: Option<RunId>,
}

/// What a run that is started does.
#[derive(Debug, Clone, PartialEq)]
pub enum StartWork {
    /// A playbook of the server's.
    Playbook {
        /// Its name.
        name: String,
        /// Its inputs.
        inputs: Map<String, Value>,
    },
    /// It happens here; its events are sent there.
    External {
        /// What the run is called.
        name: String,
    },
}

impl Default for StartWork {
    fn default() -> Self {
        Self::External { name: "external".to_owned() }
    }
}

/// Which runs to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListRuns {
    /// Only of these states; empty means all.
    pub status: Vec<RunStatus>,
    /// Only of this thread.
    pub thread: Option<ThreadId>,
    /// At most so many.
    pub limit: Option<usize>,
    /// Only those started before this one.
    pub before: Option<RunId>,
}

/// A window of a run's log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventQuery {
    /// Where it begins.
    pub start: From,
    /// At most so many matching records; the server's default is 200, its most 2000.
    pub limit: Option<usize>,
    /// At most so many bytes of them, but at least one record.
    pub max_bytes: Option<usize>,
    /// The last so many that match, instead of the first.
    pub tail: Option<usize>,
    /// Regular expression.
    pub grep: Option<String>,
    /// Event types; empty means all.
    pub types: Vec<String>,
    /// Only this state.
    pub state: Option<String>,
    /// Only `stdout` or `stderr`.
    pub stream: Option<String>,
    /// How long the server waits for a first match; at most 30 s.
    pub wait: Duration,
}

/// What came of an [`EventQuery`].
#[derive(Debug, Clone, PartialEq)]
pub struct EventPage {
    /// Records and gaps, in order.
    pub entries: Vec<Entry>,
    /// The cursor of the next page.
    pub next: Seq,
    /// Last position of the thread.
    pub head: Seq,
    /// First position that is kept.
    pub first: Seq,
    /// The page reaches the end of a finished run.
    pub done: bool,
}

/// One item of a page.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A record.
    Record {
        /// Its position.
        seq: Seq,
        /// Exactly as it is stored, with a newline.
        line: Bytes,
    },
    /// Records that can no longer be had.
    Gap(Gap),
}

/// A decision, or an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Decide {
    /// The run.
    pub run: RunId,
    /// What it waits for.
    pub approval: String,
    /// Yes or no.
    pub decision: Decision,
    /// The hash of what was looked at: the decision holds for nothing else.
    pub hash: String,
    /// The position up to which the decider has read.
    pub seen_seq: Seq,
    /// The answer to a question.
    pub content: Option<Value>,
    /// Secret inputs again, where going on needs them.
    pub inputs: Map<String, Value>,
}

/// Events of a run that happens here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestBatch {
    /// Who numbers them.
    pub producer: ProducerId,
    /// Number of the first.
    pub first: NonZeroU64,
    /// Newline-ended JSON objects; none says that the producer is alive.
    pub lines: Bytes,
}

/// What became of an [`IngestBatch`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestAnswer {
    /// Position of its first event, where the server still knows it.
    pub first: Option<Seq>,
    /// Position of its last event.
    pub last: Option<Seq>,
    /// Somebody asked the server for the run's end.
    pub cancel: Option<CancelRequested>,
}

const API: [&str; 2] = ["api", "v1"];

/// A path below the API.
pub(super) fn api<const N: usize>(path: [&str; N]) -> Vec<&str> {
    API.into_iter().chain(path).collect()
}

impl Client {
    /// A client of a server. Connects with the first request.
    ///
    /// # Errors
    ///
    /// [`ClientError::Setup`], when the system's certificates cannot be used for `https`.
    pub fn new(config: ClientConfig) -> Result<Self, ClientError> {
        Ok(Self { caller: Caller::new(config)? })
    }

    /// The server.
    pub fn server(&self) -> &ServerUrl {
        self.caller.server()
    }

    /// Starts a run in a thread's log. With an idempotency key a repeated call is harmless.
    ///
    /// # Errors
    ///
    /// [`ClientError::Refused`] when the playbook is not there or its inputs do not fit.
    pub async fn start(&self, thread: &ThreadId, start: &StartRun) -> Result<Snapshot, ClientError> {
        let StartRun { work, idempotency_key, run } = start;
        let (playbook, inputs, name) = match work {
            StartWork::Playbook { name, inputs } => (Some(name.as_str()), Some(inputs), None),
            StartWork::External { name } => (None, None, Some(name.as_str())),
        };
        let idempotency_key = idempotency_key.as_deref();
        let body =
            wire::StartBody { playbook, inputs, external: name.is_some(), name, run: run.as_ref(), idempotency_key };
        let request = self.caller.post(&api(["threads", thread.as_str(), "runs"]), &body);
        self.caller.json(request, Duration::ZERO).await
    }

    /// A run's snapshot.
    ///
    /// # Errors
    ///
    /// [`ClientError::Refused`] when there is no such run.
    pub async fn snapshot(&self, run: &RunId) -> Result<Snapshot, ClientError> {
        self.caller.json(self.of_run(run, [], &[]), Duration::ZERO).await
    }

    /// A run's snapshot as soon as its state changes after a position, at the latest after this time (30 s at most).
    ///
    /// # Errors
    ///
    /// As [`Client::snapshot`].
    pub async fn snapshot_after(&self, run: &RunId, after: Seq, wait: Duration) -> Result<Snapshot, ClientError> {
        let query = [("after", after.to_string()), ("wait_ms", wait.as_millis().to_string())];
        self.caller.json(self.of_run(run, [], &query), wait).await
    }

    /// Runs, newest first.
    ///
    /// # Errors
    ///
    /// Those of every call.
    pub async fn runs(&self, list: &ListRuns) -> Result<Vec<Snapshot>, ClientError> {
        let ListRuns { status, thread, limit, before } = list;
        let status: Vec<_> = status.iter().map(|status| status.as_str()).collect();
        let mut query = Vec::new();
        query.extend((!status.is_empty()).then(|| ("status", status.join(","))));
        query.extend(thread.as_ref().map(|thread| ("thread", thread.to_string())));
        query.extend(limit.map(|limit| ("limit", limit.to_string())));
        query.extend(before.as_ref().map(|before| ("before", before.to_string())));
        let request = self.caller.request(Method::GET, &api(["runs"]), &query);
        let wire::RunsBody { runs } = self.caller.json(request, Duration::ZERO).await?;
        Ok(runs)
    }

    /// A window of a run's log.
    ///
    /// # Errors
    ///
    /// [`ClientError::Refused`] when there is no such run, the pattern is none, or the cursor is past the end.
    pub async fn events(&self, run: &RunId, query: &EventQuery) -> Result<EventPage, ClientError> {
        let EventQuery { start, limit, max_bytes, tail, grep, types, state, stream, wait } = query;
        let mut pairs = Vec::new();
        pairs.extend(cursor(*start).map(|after| ("after", after)));
        pairs.extend(limit.map(|limit| ("limit", limit.to_string())));
        pairs.extend(max_bytes.map(|bytes| ("max_bytes", bytes.to_string())));
        pairs.extend(tail.map(|tail| ("tail", tail.to_string())));
        pairs.extend(grep.clone().map(|grep| ("grep", grep)));
        pairs.extend((!types.is_empty()).then(|| ("types", types.join(","))));
        pairs.extend(state.clone().map(|state| ("state", state)));
        pairs.extend(stream.clone().map(|stream| ("stream", stream)));
        pairs.extend((!wait.is_zero()).then(|| ("wait_ms", wait.as_millis().to_string())));
        let request = self.of_run(run, ["events"], &pairs).header(header::ACCEPT, "application/json");
        let body = self.caller.body(request, *wait).await?;
        wire::page(&body).map_err(|what| self.caller.malformed(what))
    }

    /// Decides what a run waits for.
    ///
    /// # Errors
    ///
    /// [`ClientError::Refused`] when somebody decided before, or what would happen is not what was looked at.
    pub async fn approve(&self, decide: &Decide) -> Result<Snapshot, ClientError> {
        let Decide { run, approval, decision, hash, seen_seq, content, inputs } = decide;
        let content = content.as_ref();
        let body = wire::ApproveBody { decision: *decision, hash, seen_seq: *seen_seq, content, inputs };
        let request = self.caller.post(&api(["runs", run.as_str(), "approvals", approval]), &body);
        self.caller.json(request, Duration::ZERO).await
    }

    /// Goes on with a run that waits or was interrupted; it goes on there.
    ///
    /// # Errors
    ///
    /// [`ClientError::Refused`] when it cannot go on, or not with this.
    pub async fn resume(
        &self,
        run: &RunId,
        checkpoint: Option<&str>,
        inputs: &Map<String, Value>,
    ) -> Result<Snapshot, ClientError> {
        let request =
            self.caller.post(&api(["runs", run.as_str(), "resume"]), &wire::ResumeBody { checkpoint, inputs });
        self.caller.json(request, Duration::ZERO).await
    }

    /// Ends a run, and returns when its processes are gone.
    ///
    /// # Errors
    ///
    /// [`ClientError::Refused`] when there is no such run.
    pub async fn cancel(&self, run: &RunId, reason: Option<&str>, kill: bool) -> Result<Snapshot, ClientError> {
        let request = self.caller.post(&api(["runs", run.as_str(), "cancel"]), &wire::CancelBody { reason, kill });
        self.caller.json(request, Duration::ZERO).await
    }

    /// Sends events of a run that happens here. Sending again is harmless: the server knows them by their numbers.
    ///
    /// # Errors
    ///
    /// [`ClientError::Refused`]: with the code `hole` when events are missing before these (`expected` is the number
    /// that comes next), with `run-over` when the run takes no more.
    pub async fn ingest(&self, run: &RunId, batch: &IngestBatch) -> Result<IngestAnswer, ClientError> {
        let IngestBatch { producer, first, lines } = batch;
        let request = self.caller.request(Method::POST, &api(["runs", run.as_str(), "events"]), &[]);
        let request = request
            .header("Taffrail-Producer", format!("{producer}:{first}"))
            .header(header::CONTENT_TYPE, "application/x-ndjson")
            .body(lines.clone());
        let wire::IngestedBody { first, last, cancel } = self.caller.json(request, Duration::ZERO).await?;
        Ok(IngestAnswer { first, last, cancel })
    }

    fn of_run<const N: usize>(&self, run: &RunId, path: [&str; N], query: &[(&str, String)]) -> RequestBuilder {
        let path: Vec<_> = api(["runs", run.as_str()]).into_iter().chain(path).collect();
        self.caller.request(Method::GET, &path, query)
    }
}

/// A cursor as a parameter; none for the beginning.
pub(super) fn cursor(start: From) -> Option<String> {
    match start {
        From::Beginning => None,
        From::After(seq) => Some(seq.to_string()),
        From::Live => Some("live".to_owned()),
    }
}
