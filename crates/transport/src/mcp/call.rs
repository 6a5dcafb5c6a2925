//! One tool call: what it was asked under, and how it can fail.

use std::{fmt, sync::Arc, time::Duration};

use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResult, ContentBlock, ErrorCode},
    service::RequestContext,
};
use serde_json::Value;
use taffrail_progress::{ProgressSource as _, ToolContext};
use tokio_util::sync::CancellationToken;

use super::{
    backend::{Backend, BackendError, BackendErrorKind, WaitUntil},
    level::Level,
    snapshot,
    tasks::Tasks,
    watch::Watched,
};
use crate::forward::{Destination, Forwarder};

/// The `_meta` key by which a request of 2026-07-28 asks for log notifications.
pub(super) const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";

/// A failure that the caller is told about in a tool result, with what to do about it.
#[derive(Debug)]
pub(super) struct Failure(String);

impl Failure {
    pub(super) fn arguments(what: impl fmt::Display) -> Self {
        Self(format!(
            "Bad arguments: {what}. Correct the arguments and call again; the tool's input schema lists them."
        ))
    }

    pub(super) fn into_result(self) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text(self.0)])
    }
}

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Self {
        let BackendError { kind, message } = error;
        let what = match kind {
            BackendErrorKind::NotFound => "Not found",
            BackendErrorKind::Invalid => "Bad arguments",
            BackendErrorKind::Conflict => "Conflict",
            BackendErrorKind::Denied => "Not allowed",
            BackendErrorKind::Unavailable => "Unavailable",
            BackendErrorKind::Internal => "Internal error",
        };
        Self(format!("{what}: {message}"))
    }
}

impl From<ErrorData> for Failure {
    fn from(error: ErrorData) -> Self {
        Self(error.message.into_owned())
    }
}

/// Whether a request is stateless, of 2026-07-28 or later.
pub(super) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| !version.has_initialize())
}

/// The level from which on a call's events are to be sent, if at all: in the request itself since
/// 2026-07-28, set for the session before.
///
/// # Errors
///
/// -32602 for a level that does not exist. rmcp reads one as absent.
pub(super) fn requested_level(
    context: &RequestContext<RoleServer>,
    session: Option<Level>,
) -> Result<Option<Level>, ErrorData> {
    if !is_modern(context) {
        return Ok(session);
    }
    match context.meta.get(LOG_LEVEL_KEY) {
        None => Ok(None),
        Some(value) => match Level::from_value(value) {
            Some(level) => Ok(Some(level)),
            None => Err(bad_level(value)),
        },
    }
}

/// The answer to a log level that does not exist.
pub(super) fn bad_level(value: &Value) -> ErrorData {
    let levels = Level::ALL.map(Level::as_str).join(", ");
    ErrorData::new(ErrorCode::INVALID_PARAMS, format!("unknown log level {value}; one of {levels}"), None)
}

/// What every tool works with.
pub(super) struct Call {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) tasks: Tasks,
    pub(super) context: RequestContext<RoleServer>,
    /// Asks, and reports progress.
    pub(super) cx: ToolContext,
    /// It is made again, with what a person has answered.
    pub(super) brings_answers: bool,
    /// Send events of this level and above while waiting.
    pub(super) level: Option<Level>,
    pub(super) destination: Destination,
    pub(super) logger: Arc<str>,
    /// The caller shares this file system: paths mean something to it.
    pub(super) shared_fs: bool,
    /// The connection has ended.
    pub(super) hung_up: CancellationToken,
}

impl Call {
    /// Resolves when nobody waits for this call's result any more. Ends waits, and nothing else.
    pub(super) async fn abandoned(&self) {
        tokio::select! {
            () = self.context.ct.cancelled() => {}
            () = self.hung_up.cancelled() => {}
        }
    }

    /// Whether [`Call::abandoned`] is ready.
    pub(super) fn is_abandoned(&self) -> bool {
        self.context.ct.is_cancelled() || self.hung_up.is_cancelled()
    }

    /// Waits for `until`, at most `limit`, or until the call is abandoned.
    pub(super) async fn wait(&self, run: &str, until: WaitUntil, limit: Duration) -> Result<(), Failure> {
        if limit.is_zero() {
            return Ok(());
        }
        tokio::select! {
            // What is true already wins over what has run out already.
            biased;
            done = self.backend.wait(run, until) => done.map_err(Failure::from),
            () = tokio::time::sleep(limit) => Ok(()),
            () = self.abandoned() => Ok(()),
        }
    }

    /// Waits like [`Call::wait`], and keeps a caller's idle clock from firing where it asked for progress. For waits that
    /// have nothing to report.
    pub(super) async fn wait_alive(&self, run: &str, until: WaitUntil, limit: Duration) -> Result<(), Failure> {
        let _beats = self.cx.long_progress(None);
        self.wait(run, until, limit).await
    }

    /// Waits like [`Call::wait`] and returns the run's snapshot. Meanwhile its records are sent to a caller who asked for
    /// them, and those the snapshot knows of before it returns; and its progress.
    pub(super) async fn watch(
        &self,
        watched: &mut Watched,
        until: WaitUntil,
        limit: Duration,
    ) -> Result<Value, Failure> {
        let run = watched.run.clone();
        let forwarder = self.level.filter(|_| !limit.is_zero()).map(|level| {
            Forwarder::start(
                self.backend.follow(&run, watched.seen),
                self.destination.clone(),
                level,
                Arc::clone(&self.logger),
                &self.context.ct,
            )
        });
        tokio::select! {
            waited = self.wait(&run, until, limit) => waited?,
            () = watched.reports(&*self.backend, None) => {}
        }
        let snapshot = self.backend.snapshot(&run).await?;
        watched.ends(&*self.backend, &snapshot).await;
        let head = snapshot::head(&snapshot);
        if let Some(forwarder) = forwarder {
            forwarder.finish(head).await;
            watched.seen = head;
        }
        Ok(snapshot)
    }
}
