//! The one door through which work reports.

use std::{future::Future, pin::Pin};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};

use crate::{Event, Fields, Stream, encode_json_str};

/// A boxed future, for object-safe async traits.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Takes the events of one run.
///
/// Two doors, because two kinds of events want opposite things: what happened in a run's life must be accepted at
/// once, from any thread; process output must be held back at its source rather than dropped or piled up.
///
/// # What callers may assume
///
/// Events that one thread hands over, through either door, are kept in that order. An accepted event is neither
/// dropped nor reordered later. Neither call ever panics, and neither reports whether the event became durable: a
/// failing store or a dead reader never changes the outcome of the work that reports.
///
/// # What implementors must guarantee
///
/// `emit` returns without waiting for I/O or for any reader. `send` resolves once the whole batch is accepted and
/// leaves it empty, its buffers kept for reuse; when its future is dropped before, none of the batch is accepted.
pub trait EventSink: Send + Sync {
    /// Accepts one event, at once.
    fn emit(&self, event: Event);

    /// Accepts a batch, waiting for room.
    fn send<'a>(&'a self, batch: &'a mut EventBatch) -> BoxFuture<'a, ()>;
}

/// Takes everything and keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullSink;

impl EventSink for NullSink {
    fn emit(&self, _: Event) {}
    fn send<'a>(&'a self, batch: &'a mut EventBatch) -> BoxFuture<'a, ()> {
        batch.clear();
        Box::pin(std::future::ready(()))
    }
}

/// One line of process output, or a piece of one, borrowed from a read buffer. See [`crate::Log`] for the fields.
#[derive(Debug, Clone, Copy)]
pub struct LogLine<'a> {
    /// The state whose process wrote it.
    pub state: &'a str,
    /// The branch of a fan-out.
    pub index: Option<u64>,
    /// Where it wrote.
    pub stream: Stream,
    /// The bytes, without newline.
    pub data: &'a [u8],
    /// Which piece of a long line.
    pub part: Option<u64>,
    /// Another piece follows.
    pub more: bool,
    /// Drawn over with carriage returns.
    pub redraw: bool,
    /// Bytes of earlier drawings.
    pub folded: u64,
    /// A newline followed.
    pub eol: bool,
    /// The newline was `\r\n`.
    pub crlf: bool,
}

impl<'a> LogLine<'a> {
    /// A whole line.
    pub const fn new(state: &'a str, stream: Stream, data: &'a [u8]) -> Self {
        Self {
            state,
            index: None,
            stream,
            data,
            part: None,
            more: false,
            redraw: false,
            folded: 0,
            eol: true,
            crlf: false,
        }
    }

    /// Bytes as read, newline and folded redraws included.
    pub const fn bytes(&self) -> u64 {
        let newline = (!self.more && self.eol) as u64 + self.crlf as u64;
        self.data.len() as u64 + self.folded + newline
    }

    /// Appends the body of its record: the bytes that serde would write for the same [`crate::Log`].
    pub(crate) fn encode_body(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\"type\":\"log\",\"state\":");
        encode_json_str(self.state, out);
        if let Some(index) = self.index {
            field(out, b"index", index);
        }
        out.extend_from_slice(match self.stream {
            Stream::Stdout => b",\"stream\":\"stdout\"",
            Stream::Stderr => b",\"stream\":\"stderr\"",
        });
        match std::str::from_utf8(self.data) {
            Ok(text) => {
                out.extend_from_slice(b",\"text\":");
                encode_json_str(text, out);
            }
            Err(_) => {
                out.extend_from_slice(b",\"b64\":\"");
                out.extend_from_slice(BASE64.encode(self.data).as_bytes());
                out.push(b'"');
            }
        }
        if let Some(part) = self.part {
            field(out, b"part", part);
        }
        if self.more {
            out.extend_from_slice(b",\"more\":true");
        }
        if self.redraw {
            out.extend_from_slice(b",\"redraw\":true");
        }
        if self.folded > 0 {
            field(out, b"folded", self.folded);
        }
        if !self.eol {
            out.extend_from_slice(b",\"eol\":false");
        }
        if self.crlf {
            out.extend_from_slice(b",\"crlf\":true");
        }
        out.extend_from_slice(b"}\n");
    }
}

fn field(out: &mut Vec<u8>, name: &[u8], value: u64) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name);
    out.extend_from_slice(b"\":");
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Encoded events on their way to a sink.
///
/// Encoding happens here, at the publisher, so that the single writer of a log only copies. The buffers are reused.
#[derive(Debug, Default)]
pub struct EventBatch {
    bodies: Vec<u8>,
    count: u64,
    lines: u64,
    line_bytes: u64,
    folding: Vec<(u64, Event)>,
}

impl EventBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an event.
    pub fn push(&mut self, event: Event) {
        self.push_with(event, &Fields::new());
    }

    /// Adds an event that was read from elsewhere, with the fields that this version does not know.
    pub fn push_with(&mut self, event: Event, extra: &Fields) {
        event.encode_body_with(extra, &mut self.bodies);
        let index = self.count;
        self.count += 1;
        if let Event::Log(log) = &event {
            self.lines += log.lines();
            self.line_bytes = self.line_bytes.saturating_add(log.bytes());
        }
        if event.folds() {
            self.folding.push((index, event));
        }
    }

    /// Adds a line of process output without building an [`Event`].
    pub fn push_line(&mut self, line: &LogLine<'_>) {
        line.encode_body(&mut self.bodies);
        self.count += 1;
        self.lines += u64::from(!line.more);
        self.line_bytes += line.bytes();
    }

    /// Adds a body that is known to be what [`Event::encode_body_with`] would write, without its newline.
    pub(crate) fn push_body(&mut self, body: &[u8], lines: u64, line_bytes: u64) {
        self.bodies.extend_from_slice(body);
        self.bodies.push(b'\n');
        self.count += 1;
        self.lines += lines;
        self.line_bytes = self.line_bytes.saturating_add(line_bytes);
    }

    /// Events in it.
    pub const fn len(&self) -> u64 {
        self.count
    }

    /// Whether it has none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Encoded size, in bytes.
    pub fn size(&self) -> usize {
        self.bodies.len()
    }

    /// The bodies: each is what follows a record's common fields, ended by a newline, which occurs nowhere else.
    pub fn bodies(&self) -> &[u8] {
        &self.bodies
    }

    /// Lines of process output completed, and their bytes as read.
    pub const fn output(&self) -> (u64, u64) {
        (self.lines, self.line_bytes)
    }

    /// The events that change a run's state, each with its index in the batch, in order.
    pub fn folding(&self) -> &[(u64, Event)] {
        &self.folding
    }

    /// Empties it and keeps the buffers.
    pub fn clear(&mut self) {
        self.bodies.clear();
        self.folding.clear();
        (self.count, self.lines, self.line_bytes) = (0, 0, 0);
    }
}
