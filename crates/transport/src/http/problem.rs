//! Mistakes as they are answered: RFC 9457, `application/problem+json`.

use std::borrow::Cow;

use axum::{
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use taffrail_engine::ResumeError;
use taffrail_relay::RelayError;
use taffrail_runs::RunsError;

use super::code::Code;

/// When a caller whom a passing shortage turned away may come again, in seconds.
const RETRY_AFTER_S: u64 = 1;

/// A mistake. Becomes a response with the status of its code.
#[derive(Debug)]
pub(crate) struct Problem {
    code: Code,
    detail: Cow<'static, str>,
    /// Extension members.
    more: Vec<(&'static str, Value)>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    /// A problem. `detail` says what is wrong with what, and what to do.
    pub(crate) fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        let mut headers = Vec::new();
        match code {
            Code::Unauthorized => headers.push((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
            Code::TooManyConnections | Code::TooManyStreams | Code::Overloaded | Code::Unavailable | Code::Closing => {
                headers.push((header::RETRY_AFTER, RETRY_AFTER_S.into()));
            }
            _ => {}
        }
        Self { code, detail: detail.into(), more: Vec::new(), headers }
    }

    /// A parameter that is wrong, by name.
    pub(crate) fn parameter(name: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::BadParameter, detail).with("parameter", name)
    }

    /// A mistake of ours. What it was is in our own log.
    pub(crate) fn internal() -> Self {
        Self::new(Code::Internal, "something went wrong here, and it is not your fault; runs are not harmed: try again")
    }

    /// Adds an extension member.
    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.more.push((name, value.into()));
        self
    }

    /// Adds a header to the response.
    #[must_use]
    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// What kind of mistake it is.
    pub(crate) const fn code(&self) -> Code {
        self.code
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { code, detail, more, headers: _ } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", &format_args!("urn:taffrail:problem:{}", code.as_str()))?;
        map.serialize_entry("title", code.title())?;
        map.serialize_entry("status", &code.status().as_u16())?;
        map.serialize_entry("detail", detail)?;
        map.serialize_entry("code", code.as_str())?;
        for (name, value) in more {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        // Strings, numbers and values: none of them can fail to become JSON.
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (self.code.status(), body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.extend(self.headers);
        response
    }
}

/// An error with the causes below it, as one sentence.
fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

impl From<RunsError> for Problem {
    fn from(error: RunsError) -> Self {
        if let RunsError::Relay(error) = error {
            return error.into();
        }
        let detail = whole(&error);
        let code = match &error {
            RunsError::NoRun { .. } => Code::NoRun,
            RunsError::Id(_) => Code::BadId,
            RunsError::Playbook(_) if error.is_not_found() => Code::NoPlaybook,
            RunsError::Playbook(_) | RunsError::Command(_) => Code::BadPlaybook,
            RunsError::Inputs { .. } | RunsError::ExternalInputs => Code::BadInputs,
            RunsError::BadName { .. } => Code::BadName,
            RunsError::External { .. } => Code::ExternalRun,
            RunsError::NotExternal { .. } => Code::NotExternal,
            RunsError::KeyReused { .. } => Code::KeyReused,
            RunsError::KeyLength { .. } => Code::BadKey,
            RunsError::WrongState { .. } => Code::WrongState,
            RunsError::CheckpointUsed { .. } => Code::CheckpointUsed,
            RunsError::NotWaitingFor { .. } => Code::NotWaitingFor,
            RunsError::Decided { .. } => Code::AlreadyDecided,
            RunsError::HashMoved { .. } => Code::HashMoved,
            RunsError::NotSeen { .. } => Code::NotSeen,
            RunsError::HumanOnly { .. } => Code::HumanOnly,
            RunsError::Undecided { .. } => Code::Undecided,
            RunsError::Resume(error) => of_resume(error),
            RunsError::NoCheckpoint { .. } => Code::NoCheckpoint,
            RunsError::Closing => Code::Closing,
            _ if error.is_conflict() => Code::WrongState,
            _ if error.is_unavailable() => Code::Unavailable,
            _ => Code::Internal,
        };
        let problem = Self::new(code, detail);
        match error {
            RunsError::WrongState { status, .. } => problem.with("run_status", status.as_str()),
            RunsError::HashMoved { hash } => problem.with("hash", hash),
            RunsError::Decided { decision, .. } => problem.with("decision", decision),
            _ => problem,
        }
    }
}

fn of_resume(error: &ResumeError) -> Code {
    if error.is_about_what_was_given() { Code::BadAnswer } else { Code::NoCheckpoint }
}

impl From<RelayError> for Problem {
    fn from(error: RelayError) -> Self {
        let detail = whole(&error);
        let code = match &error {
            RelayError::CursorAhead { .. } => Code::CursorAhead,
            RelayError::BadPattern { .. } => Code::BadPattern,
            RelayError::Overloaded { .. } => Code::Overloaded,
            RelayError::Hole { .. } => Code::Hole,
            RelayError::RunOver { .. } => Code::RunOver,
            RelayError::TooManyProducers { .. } => Code::TooManyProducers,
            RelayError::Closed => Code::Closing,
            RelayError::Store(_) => Code::Unavailable,
            _ => Code::Internal,
        };
        let problem = Self::new(code, detail);
        match error {
            RelayError::CursorAhead { head, .. } => problem.with("head", head.0),
            RelayError::Hole { expected, .. } => problem.with("expected", expected),
            RelayError::RunOver { status, .. } => problem.with("run_status", status.as_str()),
            _ => problem,
        }
    }
}
