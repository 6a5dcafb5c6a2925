//! What work says: process output, streamed answers, progress; and what of it was cut.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde::{Deserialize, Serialize};

use crate::{Timestamp, encode_json_str, sink::LogLine};

/// A standard stream of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        }
    }
}

/// A line of process output, or a piece of a long one.
///
/// Every byte the process wrote can be had back: the bytes of `text` or `b64`, after them a newline unless `more` or
/// `eol: false` says otherwise (`\r\n` where `crlf` is set). Only redraws that later ones overwrote are counted
/// instead of kept (`folded`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Log {
    /// The state whose process wrote it.
    pub state: String,
    /// The branch of a fan-out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// Where it wrote.
    pub stream: Stream,
    /// The line without its newline, when it is UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The same as base64 (RFC 4648, section 4) when it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b64: Option<String>,
    /// Which piece of a long line, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<u64>,
    /// Another piece of the same line follows.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub more: bool,
    /// The line was drawn over with carriage returns; this is how it looked last.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub redraw: bool,
    /// Bytes of earlier drawings that are not kept, their carriage returns included.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub folded: u64,
    /// `false` when the stream ended without a newline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eol: Option<bool>,
    /// The line ended in `\r\n`.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub crlf: bool,
}

impl Log {
    /// The bytes of the line; empty when `b64` is not base64.
    pub fn data(&self) -> Cow<'_, [u8]> {
        match (&self.text, &self.b64) {
            (Some(text), _) => Cow::Borrowed(text.as_bytes()),
            (None, Some(b64)) => Cow::Owned(BASE64.decode(b64).unwrap_or_default()),
            (None, None) => Cow::Borrowed(&[]),
        }
    }

    /// Lines this record completes: 0 or 1.
    pub const fn lines(&self) -> u64 {
        !self.more as u64
    }

    /// Bytes as read, newline and folded redraws included.
    pub fn bytes(&self) -> u64 {
        let newline = u64::from(!self.more && self.eol != Some(false)) + u64::from(self.crlf);
        // What a peer says may be any number.
        (self.data().len() as u64).saturating_add(self.folded).saturating_add(newline)
    }

    /// The line of text that this record is made from; `None` when it is of another kind: serde writes those.
    pub(super) fn as_line(&self) -> Option<LogLine<'_>> {
        let Log { state, index, stream, text, b64, part, more, redraw, folded, eol, crlf } = self;
        let (Some(text), None, None | Some(false)) = (text, b64, eol) else { return None };
        Some(LogLine {
            state,
            index: *index,
            stream: *stream,
            data: text.as_bytes(),
            part: *part,
            more: *more,
            redraw: *redraw,
            folded: *folded,
            eol: eol.is_none(),
            crlf: *crlf,
        })
    }
}

/// A piece of a streamed answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Message {
    /// Who says it: `assistant`, `user`, `tool`, …
    pub role: String,
    /// What.
    pub text: String,
    /// Whether it continues the message before it.
    pub delta: bool,
}

impl Message {
    pub(super) fn encode_body(&self, out: &mut Vec<u8>) {
        let Self { role, text, delta } = self;
        out.extend_from_slice(b"\"type\":\"message\",\"role\":");
        encode_json_str(role, out);
        out.extend_from_slice(b",\"text\":");
        encode_json_str(text, out);
        out.extend_from_slice(if *delta { b",\"delta\":true}\n".as_slice() } else { b",\"delta\":false}\n" });
    }
}

/// How far something is; the latest replaces the earlier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Progress {
    /// The state it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The branch it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// How far; finite and increasing.
    pub progress: f64,
    /// What `progress` will be at the end, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// One line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Which limit cut output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClipReason {
    /// The run's output budget.
    RunCap,
    /// The longest line.
    LineCap,
}

/// Output that a limit cut: exactly what, and how much.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Clipped {
    /// The state whose output it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The branch whose output it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// The stream.
    pub stream: Stream,
    /// Lines not kept.
    pub lines: u64,
    /// Their bytes as read, newlines included.
    pub bytes: u64,
    /// Which limit.
    pub reason: ClipReason,
    /// When the first of it was read.
    pub from_ts: Timestamp,
    /// When the last of it was read.
    pub to_ts: Timestamp,
}
