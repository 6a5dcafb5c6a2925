//! Events as they arrive from elsewhere: one JSON object a line.
//!
//! Nearly all of a flood is process output, streamed answers and events of types that only its producer knows. Those are
//! checked in one walk over their bytes and copied; a value is built for the rest. Both ways give the same record.

use std::ops::Range;

use crate::{
    Event, EventBatch, Fields, Ingest, Record, Timestamp,
    walk::{Fault, Text, Walker},
};

mod as_is;
mod canonical;
mod error;

use as_is::AsIs;
use canonical::Body;
pub use error::{EventLineError, EventLineFault};

/// Longest type of an event, in bytes.
const MAX_KIND: usize = 128;

/// Types of what readers are told beside records; never stored, so no event can have them.
const TOLD: &[&str] = &["gap", "spool-segment"];

/// Reads lines of events. Its buffers are reused from line to line.
#[derive(Debug, Default)]
pub struct EventReader {
    fields: Vec<Field>,
    body: Vec<u8>,
}

/// One event that was read.
#[derive(Debug)]
pub struct EventLine<'a> {
    ts: Option<Timestamp>,
    run: Option<&'a str>,
    content: Content<'a>,
}

#[derive(Debug)]
enum Content<'a> {
    Body(Body<'a>),
    Event(Event, Fields),
}

/// A field of an event's object, at its place.
#[derive(Debug)]
struct Field {
    name: Text,
    /// The name, when its spelling has escapes that we would not write.
    decoded: Option<String>,
    value: Range<usize>,
    /// The value, when it is a string.
    text: Option<Text>,
}

impl Field {
    fn name<'a>(&'a self, line: &'a [u8]) -> &'a [u8] {
        match &self.decoded {
            Some(name) => name.as_bytes(),
            None => line.get(self.name.inner.clone()).unwrap_or_default(),
        }
    }

    fn value<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        line.get(self.value.clone()).unwrap_or_default()
    }
}

impl EventReader {
    /// A reader.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads one line: an event as [`Record::parse_event`] takes it, white space around it allowed.
    ///
    /// It is stricter where a record that is stored for good should be: no field twice, no nesting beyond 64 levels, a
    /// `type` of 1 to 128 letters, digits and `.`, `_`, `-`, `:`, `/`; and an event that a run's state depends on must
    /// have the shape of its type, for it would do nothing otherwise. Numbers of any size, lone surrogates in escapes
    /// and unknown fields pass through as they are written.
    ///
    /// # Errors
    ///
    /// [`EventLineError`]: what is wrong, and at which byte.
    pub fn read<'a>(&'a mut self, line: &'a [u8]) -> Result<EventLine<'a>, EventLineError> {
        let text = std::str::from_utf8(line).map_err(|error| EventLineFault::NotUtf8.at(error.valid_up_to()))?;
        if let Some(AsIs { ts, body }) = as_is::read(line) {
            return Ok(EventLine { ts, run: None, content: Content::Body(body) });
        }
        self.walk(line)?;
        let mut head = Head::default();
        for field in &self.fields {
            head.see(field, text)?;
        }
        let Head { ts, run, kind } = head;
        let (kind_at, kind) = kind.ok_or(EventLineFault::NoType.at(0))?;
        check_kind(kind, kind_at)?;
        self.body.clear();
        let content = match canonical::write(line, kind, &self.fields, &mut self.body) {
            Some((lines, line_bytes)) => Content::Body(Body { bytes: &self.body, lines, line_bytes }),
            None => by_value(line, text, kind)?,
        };
        Ok(EventLine { ts, run, content })
    }

    /// Finds the fields.
    fn walk(&mut self, line: &[u8]) -> Result<(), EventLineError> {
        self.fields.clear();
        let mut walker = Walker::new(line);
        walker.space();
        if walker.peek() != Some(b'{') {
            return Err(EventLineFault::NotObject.at(walker.at()));
        }
        walker.expect(b'{', "")?;
        walker.space();
        if walker.peek() == Some(b'}') {
            return Err(EventLineFault::NoType.at(walker.at()));
        }
        loop {
            let name = walker.name()?;
            walker.space();
            let start = walker.at();
            let text = match walker.peek() {
                Some(b'"') => Some(walker.string()?),
                _ => None,
            };
            let mut end = walker.at();
            if text.is_none() {
                walker.value()?;
                end = start + line.get(start..walker.at()).unwrap_or_default().trim_ascii_end().len();
            }
            let decoded = if name.canonical { None } else { Some(decode(line, &name)?) };
            self.fields.push(Field { name, decoded, value: start..end, text });
            walker.space();
            if walker.peek() == Some(b'}') {
                break;
            }
            walker.expect(b',', "a comma or the end of the object is expected here")?;
        }
        walker.expect(b'}', "")?;
        walker.space();
        if walker.at() < line.len() {
            return Err(EventLineFault::More.at(walker.at()));
        }
        self.no_field_twice(line)
    }

    fn no_field_twice(&self, line: &[u8]) -> Result<(), EventLineError> {
        /// Up to so many fields, comparing each with each costs less than hashing.
        const FEW: usize = 24;
        let mut seen = std::collections::HashSet::new();
        for (index, field) in self.fields.iter().enumerate() {
            let name = field.name(line);
            let twice = match self.fields.len() {
                ..=FEW => self.fields.iter().take(index).any(|earlier| earlier.name(line) == name),
                _ => !seen.insert(name),
            };
            if twice {
                return Err(EventLineFault::Twice { field: error::shown(name) }.at(field.name.inner.start));
            }
        }
        Ok(())
    }
}

/// A name as it is meant.
fn decode(line: &[u8], name: &Text) -> Result<String, EventLineError> {
    let quoted = line.get(name.inner.start - 1..=name.inner.end).unwrap_or_default();
    serde_json::from_slice(quoted)
        .map_err(|_| EventLineFault::Syntax { what: "a field's name with half of a character" }.at(name.inner.start))
}

/// What is known of an event before it is looked into.
#[derive(Debug, Default)]
struct Head<'a> {
    ts: Option<Timestamp>,
    run: Option<&'a str>,
    /// Its offset, and itself.
    kind: Option<(usize, &'a str)>,
}

impl<'a> Head<'a> {
    fn see(&mut self, field: &Field, line: &'a str) -> Result<(), EventLineError> {
        let wrong = |field_name, what| EventLineFault::Field { field: field_name, what }.at(field.value.start);
        let inner = || line.get(field.text.as_ref()?.inner.clone());
        match field.name(line.as_bytes()) {
            b"type" => {
                let kind = inner().ok_or_else(|| wrong("type", "must be a string"))?;
                self.kind = Some((field.value.start, kind));
            }
            // Absent, for producers whose language writes absent fields.
            b"ts" | b"run" if field.value(line.as_bytes()) == b"null" => {}
            b"ts" => {
                let ts = inner().and_then(|text| text.parse().ok());
                self.ts =
                    Some(ts.ok_or_else(|| wrong("ts", "must be a UTC time such as 2026-11-30T07:32:47.123456Z"))?);
            }
            b"run" => self.run = Some(inner().ok_or_else(|| wrong("run", "must be a string"))?),
            _ => {}
        }
        Ok(())
    }
}

/// Common fields, which say where a record stands, and [`Ingest::FIELD`], which says how it came there.
fn is_dropped(name: &[u8]) -> bool {
    matches!(name, b"seq" | b"thread" | b"run" | b"ts")
        || (name.len() == Ingest::FIELD.len() && name == Ingest::FIELD.as_bytes())
}

/// Types stand in URLs, in lists with commas, and in records at a place that is found without parsing.
fn check_kind(kind: &str, at: usize) -> Result<(), EventLineError> {
    let well = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b':' | b'/');
    if kind.is_empty() || kind.len() > MAX_KIND || !kind.bytes().all(well) {
        return Err(EventLineFault::BadType.at(at));
    }
    if TOLD.contains(&kind) {
        return Err(EventLineFault::ToldType { kind: kind.to_owned() }.at(at));
    }
    Ok(())
}

fn by_value(line: &[u8], text: &str, kind: &str) -> Result<Content<'static>, EventLineError> {
    let (event, extra) = Record::parse_event(line).map_err(|error| EventLineFault::Record(error.to_string()).at(0))?;
    if let Event::Other(_) = event
        && Event::kind_folds(kind)
        && let Some(error) = Event::misfit(kind, text)
    {
        let column = error.column().saturating_sub(1);
        return Err(EventLineFault::Shape { kind: kind.to_owned(), what: error::plain(&error) }.at(column));
    }
    Ok(Content::Event(event, extra))
}

impl<'a> EventLine<'a> {
    /// When it says that it happened.
    pub fn ts(&self) -> Option<Timestamp> {
        self.ts
    }

    /// Whose it says that it is, as it was written.
    pub fn run(&self) -> Option<&'a str> {
        self.run
    }

    /// The event, when a run's state depends on it.
    pub fn folding(&self) -> Option<&Event> {
        match &self.content {
            Content::Event(event, _) if event.folds() => Some(event),
            _ => None,
        }
    }
}

impl EventBatch {
    /// Adds an event that was read from a line: what [`EventBatch::push_with`] would add for it.
    pub fn push_read(&mut self, line: EventLine<'_>) {
        match line.content {
            Content::Body(Body { bytes, lines, line_bytes }) => self.push_body(bytes, lines, line_bytes),
            Content::Event(event, extra) => self.push_with(event, &extra),
        }
    }
}

impl From<Fault> for EventLineError {
    fn from(Fault { at, what }: Fault) -> Self {
        EventLineFault::Syntax { what }.at(at)
    }
}
