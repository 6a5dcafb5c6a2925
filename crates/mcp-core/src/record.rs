//! Records as values.

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{Event, Fields, Ingest, OtherEvent, RecordError, RecordHead, RunId, Seq, ThreadId, Timestamp};

/// One record of a log.
///
/// Reading and writing loses nothing: an unknown type becomes [`Event::Other`], unknown fields of a known type are in
/// `extra`, and a known type whose fields do not have the known shape is passed on as [`Event::Other`] too. Unknown
/// values keep their bytes, numbers beyond 64 bits among them; only line ends between their tokens become spaces.
#[derive(Debug, Clone)]
pub struct Record {
    /// Position in the thread's log.
    pub seq: Seq,
    /// The log.
    pub thread: ThreadId,
    /// The run that wrote it.
    pub run: RunId,
    /// When it was accepted.
    pub ts: Timestamp,
    /// What happened.
    pub event: Event,
    /// Fields of the event that this version does not know, as they were written.
    pub extra: Fields,
}

impl Record {
    /// Reads one JSON object; white space around it, a newline among it, is allowed.
    ///
    /// # Errors
    ///
    /// [`RecordError`] when it is not an object or a common field is missing or unreadable.
    pub fn parse(line: &[u8]) -> Result<Self, RecordError> {
        let object: &RawValue = serde_json::from_slice(line).map_err(RecordError::Json)?;
        let Object(mut fields) = serde_json::from_str(object.get()).map_err(RecordError::Json)?;
        let seq = Seq(take(&mut fields, "seq")?);
        let thread = take(&mut fields, "thread")?;
        let run = take(&mut fields, "run")?;
        let ts = take(&mut fields, "ts")?;
        let (event, extra) = event_of(fields, object)?;
        Ok(Self { seq, thread, run, ts, event, extra })
    }

    /// Whose numbered events end with this record.
    pub fn ingest(&self) -> Option<Ingest> {
        let fields = match &self.event {
            Event::Other(other) => &other.fields,
            _ => &self.extra,
        };
        let (_, value) = fields.iter().find(|(name, _)| name == Ingest::FIELD)?;
        serde_json::from_str(value.get()).ok()
    }

    /// Reads an event without common fields, as ingest receives it; common fields that are there are dropped, and so is
    /// [`Ingest::FIELD`], which only says how a record came into this log.
    ///
    /// # Errors
    ///
    /// [`RecordError`] when it is not an object or has no `type`.
    pub fn parse_event(line: &[u8]) -> Result<(Event, Fields), RecordError> {
        let object: &RawValue = serde_json::from_slice(line).map_err(RecordError::Json)?;
        let Object(mut fields) = serde_json::from_str(object.get()).map_err(RecordError::Json)?;
        fields.retain(|(name, _)| !matches!(name.as_str(), "seq" | "thread" | "run" | "ts" | Ingest::FIELD));
        event_of(fields, object)
    }

    /// Appends its line, newline included.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let Record { seq, thread, run, ts, event, extra } = self;
        RecordHead { seq: *seq, thread, run, ts: *ts }.encode_head(out);
        event.encode_body_with(extra, out);
    }
}

/// The event, and what is left of the fields.
fn event_of(mut fields: Fields, object: &RawValue) -> Result<(Event, Fields), RecordError> {
    let kind: String = take(&mut fields, "type")?;
    Ok(match Event::read(&kind, object.get()) {
        Some(event) => {
            let known = known_fields(&event);
            fields.retain(|(name, _)| !known.contains(name));
            (event, fields)
        }
        None => (Event::Other(OtherEvent { kind, fields }), Fields::new()),
    })
}

/// The names that serde writes for this value: a field that was there and is not among them (one set to its default,
/// say) stays in `extra`, so that it is written again.
fn known_fields(event: &Event) -> Vec<String> {
    let mut body = vec![b'{'];
    event.encode_body(&mut body);
    let object: Result<Object, _> = serde_json::from_slice(&body);
    object.map(|Object(fields)| fields.into_iter().map(|(name, _)| name).collect()).unwrap_or_default()
}

fn take<T: for<'de> Deserialize<'de>>(fields: &mut Fields, field: &'static str) -> Result<T, RecordError> {
    let at = fields.iter().position(|(name, _)| name == field).ok_or(RecordError::Missing { field })?;
    let (_, value) = fields.remove(at);
    serde_json::from_str(value.get()).map_err(|source| RecordError::Field { field, source: Box::new(source) })
}

/// An object with its fields in order.
struct Object(Fields);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Object;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut fields = Fields::new();
                while let Some(entry) = map.next_entry()? {
                    fields.push(entry);
                }
                Ok(Object(fields))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}
