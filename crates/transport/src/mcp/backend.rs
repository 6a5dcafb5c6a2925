//! The seam between the MCP tools and whatever keeps the runs.
//!
//! The tools decide how a result looks, how long a call may wait and what a client is told; everything
//! about runs themselves is asked of a [`Backend`]. Plain data only: snapshot documents are JSON objects
//! in the shape of the wire contract, records are their exact bytes.

use std::{fmt, sync::Arc};

use futures_util::{future::BoxFuture, stream::BoxStream};
use serde_json::{Map, Value};
use taffrail_mcp_core::Decision;

/// A future that a [`Backend`] answers with.
pub type Reply<'a, T> = BoxFuture<'a, Result<T, BackendError>>;

/// What the MCP tools need from the service that keeps runs.
///
/// # What callers may assume
///
/// - Every method may be called at any time, concurrently, for runs of this or any other process.
/// - An unknown run is [`BackendErrorKind::NotFound`]; nothing panics on bad input.
/// - Snapshot documents are JSON objects with the fields of the wire contract: `run`, `thread`,
///   `playbook`, `status`, `state`, `step`, `head`, `started_at`, `elapsed_ms`, `usage`, and where they
///   apply `error`, `at`, `approval`, `checkpoint`, `spool`, `next`. `head` is the thread's last seq. `next`
///   may be left out or empty: the tools then say it. Unknown fields are passed on.
/// - What a snapshot tells is already in the log: a [`Backend::follow`] started before it yields every
///   record up to its `head` without waiting for anything else to happen.
///
/// # What implementors must guarantee
///
/// - A run never depends on a future or stream given out here. Dropping [`Backend::wait`] or
///   [`Backend::follow`] ends that wait and nothing else. The callers never drop `start`, `resume` or
///   `cancel` before they are ready, except when the whole process ends.
/// - No method other than `wait`, `follow` and `cancel` takes longer than a store access.
pub trait Backend: Send + Sync + 'static {
    /// Starts a run and returns as soon as its first record is in the log. The same idempotency key
    /// returns the run that it started the first time.
    fn start(&self, request: StartRun) -> Reply<'_, RunHandle>;

    /// Lets a suspended run go on. A used checkpoint is [`BackendErrorKind::Conflict`]; a gate that only a
    /// person may decide is [`BackendErrorKind::Denied`].
    fn resume(&self, request: ResumeRun) -> Reply<'_, RunHandle>;

    /// Stores what a person has decided about what a suspended run waits for, and lets the run go on. A decision that was
    /// made before, or about something else, is [`BackendErrorKind::Conflict`]; an answer that does not fit its schema
    /// [`BackendErrorKind::Invalid`], and nothing is stored then.
    fn decide(&self, request: Decide) -> Reply<'_, RunHandle>;

    /// The run that a checkpoint is of, where its id tells; it need not exist.
    fn run_of_checkpoint(&self, checkpoint: &str) -> Option<String>;

    /// Names of the secrets that a run which rests has to be given again to go on: they are never stored.
    /// [`BackendErrorKind::Conflict`] where it does not rest, or could not go on from here.
    fn secrets<'a>(&'a self, run: &'a str) -> Reply<'a, Vec<String>>;

    /// The snapshot document of a run, now.
    fn snapshot<'a>(&'a self, run: &'a str) -> Reply<'a, Value>;

    /// Resolves when `until` is true of the run; at once when it is already. Has no time limit of its own.
    fn wait<'a>(&'a self, run: &'a str, until: WaitUntil) -> Reply<'a, ()>;

    /// One window of a run's log.
    fn logs(&self, query: LogQuery) -> Reply<'_, LogPage>;

    /// Ends a run and returns its snapshot once its whole process group is dead. On a finished run: its
    /// snapshot, unchanged.
    fn cancel<'a>(&'a self, run: &'a str, reason: Option<String>) -> Reply<'a, Value>;

    /// Runs, newest first.
    fn list_runs(&self, query: ListRuns) -> Reply<'_, RunList>;

    /// All playbooks, or with `name` just that one, each an object with `name`, `description`,
    /// `inputs` (each with `name`, `type`, `required`) and, for one asked for by name, whatever else its contract holds. An unknown name is
    /// [`BackendErrorKind::NotFound`].
    fn list_playbooks(&self, name: Option<String>) -> Reply<'_, Vec<Value>>;

    /// Checks a playbook without running it. A broken playbook is a report with errors, not an error.
    fn check_playbook(&self, playbook: PlaybookRef) -> Reply<'_, PlaybookReport>;

    /// The run's records with a seq greater than `after`, in order, then new ones as they come; ends
    /// after `run-finished`. A range that can no longer be had is one item of type `gap`. Where the thread
    /// goes on with records of other runs, [`Followed::Reached`] says so: the flush before a response
    /// waits for the snapshot's `head`, and would else wait its full half second.
    ///
    /// A reader is a position: pulled only when the client has taken what came before, it must hold no
    /// more than one read's worth of records.
    fn follow(&self, run: &str, after: u64) -> BoxStream<'static, Result<Followed, BackendError>>;
}

/// A request to start a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StartRun {
    /// Name of a playbook, or a path where the server shares the caller's disk.
    pub playbook: String,
    /// Values for the playbook's inputs.
    pub inputs: Map<String, Value>,
    /// The thread to log to; by default the run's own.
    pub thread: Option<String>,
    /// Makes a repeated call return the run that the first one started.
    pub idempotency_key: Option<String>,
}

/// A request to let a suspended run go on. At least one of `run` and `checkpoint` is there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResumeRun {
    /// The run, at its latest checkpoint.
    pub run: Option<String>,
    /// One checkpoint; works once.
    pub checkpoint: Option<String>,
    /// The answer, or the decision, that the run waits for.
    pub inputs: Map<String, Value>,
}

/// What a person has decided.
#[derive(Debug, Clone, PartialEq)]
pub struct Decide {
    /// The run.
    pub run: String,
    /// The approval that was shown.
    pub approval: String,
    /// Its hash: what was shown is what will happen.
    pub hash: String,
    /// The thread's head at that time.
    pub seen: u64,
    /// What was decided; answering a question approves it.
    pub decision: Decision,
    /// The answer to a question.
    pub content: Option<Map<String, Value>>,
    /// What the caller gave as inputs: secrets among them are needed again, as they are never stored.
    pub inputs: Map<String, Value>,
}

/// The run that a call started or went on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunHandle {
    /// Its id.
    pub run: String,
    /// Records after this seq are this call's doing; 0 for a new run and for a repeated start.
    pub after: u64,
}

/// What a wait is for. Each but [`WaitUntil::GoesOnAfter`] is true at once for a finished run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitUntil {
    /// The run is not `running`: it is finished, or suspended.
    Settled,
    /// The run entered another state, was suspended, went on or ended in a record after this seq.
    StateAfter(u64),
    /// The same, but the end of the run is no more than its last change: an interrupted run may go on one day.
    GoesOnAfter(u64),
    /// The run has a record after this seq.
    RecordAfter(u64),
}

/// A window of a log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogQuery {
    /// Whose log.
    pub run: String,
    /// Only records after this seq; 0 is the beginning.
    pub after: u64,
    /// At most this many records; 0 asks for the numbers alone.
    pub limit: u32,
    /// Stop when the records returned hold about this many bytes of JSON. The first one is returned
    /// whatever its size.
    pub max_bytes: usize,
    /// Only the last so many of the records that match; `limit` still holds.
    pub tail: Option<u32>,
    /// Regular expression over the `text` of `log` and `message`, the JSON of others. One that does not
    /// compile is [`BackendErrorKind::Invalid`].
    pub grep: Option<String>,
    /// Only records of these types; empty means all.
    pub types: Vec<String>,
    /// Only records of this state.
    pub state: Option<String>,
    /// Only `stdout` or `stderr`.
    pub stream: Option<String>,
}

/// An answer to a [`LogQuery`]; the same numbers as an HTTP page has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogPage {
    /// The records, in order; a range that is gone is one item of type `gap`.
    pub records: Vec<Record>,
    /// Where to go on: the last seq looked at.
    pub next: u64,
    /// The thread's last seq.
    pub head: u64,
    /// The first seq still kept.
    pub first: u64,
    /// This page reaches the end of a finished run.
    pub done: bool,
    /// Records looked at in this page that match.
    pub matched: u64,
    /// Records looked at in this page.
    pub scanned: u64,
    /// The run's spool file, where there is one. Shown only to callers that share this file system.
    pub spool: Option<String>,
}

/// One record as the log holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its seq; for a `gap`, the last seq that is gone.
    pub seq: u64,
    /// The record: one JSON object on one line, without the line's end.
    pub json: Arc<str>,
}

/// What following a run yields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Followed {
    /// The run's next record.
    Record(Record),
    /// Up to this seq there is nothing more of this run.
    Reached(u64),
}

/// Which runs to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListRuns {
    /// Only runs of this status.
    pub status: Option<String>,
    /// Only runs of this thread.
    pub thread: Option<String>,
    /// At most this many.
    pub limit: u32,
    /// Only runs started before this one.
    pub before: Option<String>,
}

/// A list of runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunList {
    /// Snapshot documents, newest first; they may leave out what a table does not show.
    pub runs: Vec<Value>,
    /// There are more: pass this as `before`.
    pub before: Option<String>,
}

/// A playbook to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaybookRef {
    /// By name, in the playbooks folder.
    Name(String),
    /// By path, where the server shares the caller's disk.
    Path(String),
    /// The YAML itself.
    Source(String),
}

/// What a check of a playbook found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlaybookReport {
    /// Its name, where one could be read.
    pub playbook: Option<String>,
    /// Findings in order of position; without an error among them it can run.
    pub findings: Vec<Finding>,
}

/// One thing found in a playbook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// It keeps the playbook from running.
    pub error: bool,
    /// Line, from 1; 0 when it has no place.
    pub line: u32,
    /// Column, from 1; 0 when it has no place.
    pub column: u32,
    /// What is wrong and what to write instead.
    pub message: String,
}

/// Why a [`Backend`] could not do what was asked.
///
/// Its message is shown to the caller as it is: it says what happened, to what, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BackendError {
    /// What sort of failure.
    pub kind: BackendErrorKind,
    /// One or two sentences for the caller.
    pub message: String,
}

impl BackendError {
    /// An error of `kind` that says `message`.
    pub fn new(kind: BackendErrorKind, message: impl fmt::Display) -> Self {
        Self { kind, message: message.to_string() }
    }
}

/// Sorts of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BackendErrorKind {
    /// No such run, checkpoint or playbook.
    NotFound,
    /// The request itself cannot be right.
    Invalid,
    /// Someone else was first, or the run has moved on.
    Conflict,
    /// Only a person may do this.
    Denied,
    /// The store cannot be reached now; trying again may help.
    Unavailable,
    /// Our own mistake.
    Internal,
}
