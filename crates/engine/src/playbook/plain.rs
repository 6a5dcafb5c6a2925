//! How a value that is not text becomes text or JSON, with a bound on its size.
//!
//! Values share their parts, so that a small template can stand for a huge text (`[x, x]` of `[y, y]` of …): it is
//! written through a counter and never built whole.

use std::{fmt, io};

use minijinja::{Error, ErrorKind, Output, State, Value as JinjaValue, value::ValueKind};
use serde_json::{Map, Value};

use super::template::MAX_RENDERED_BYTES;

/// minijinja's formatter: text as it is, numbers and booleans plain, the rest JSON.
pub(crate) fn write_plain(out: &mut Output<'_>, _state: &mut State<'_, '_>, value: &JinjaValue) -> Result<(), Error> {
    if let Some(text) = value.as_str() {
        return out.write_str(text).map_err(Error::from);
    }
    match value.kind() {
        ValueKind::Undefined => Ok(()),
        ValueKind::None => out.write_str("null").map_err(Error::from),
        ValueKind::Bool | ValueKind::Number => write!(out, "{value}").map_err(Error::from),
        _ => {
            let mut bytes = Bounded { bytes: Vec::new(), max: MAX_RENDERED_BYTES };
            serde_json::to_writer(&mut bytes, value)
                .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
            let text = String::from_utf8(bytes.bytes)
                .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
            out.write_str(&text).map_err(Error::from)
        }
    }
}

/// Converts to JSON; `Err(None)` when it is larger than `max` bytes.
pub(crate) fn to_json(value: &JinjaValue, max: usize) -> Result<Value, Option<String>> {
    let mut bytes = Bounded { bytes: Vec::new(), max };
    match serde_json::to_writer(&mut bytes, value) {
        Ok(()) => serde_json::from_slice(&bytes.bytes).map_err(|error| Some(error.to_string())),
        Err(error) if error.is_io() => Err(None),
        Err(error) => Err(Some(error.to_string())),
    }
}

/// JSON into minijinja.
pub(crate) fn to_jinja(value: &Value) -> JinjaValue {
    match value {
        Value::Null => JinjaValue::from(()),
        Value::Bool(answer) => JinjaValue::from(*answer),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => JinjaValue::from(whole),
            (None, Some(large)) => JinjaValue::from(large),
            (None, None) => number.as_f64().map_or_else(|| JinjaValue::from(()), JinjaValue::from),
        },
        Value::String(text) => JinjaValue::from(text.as_str()),
        Value::Array(items) => items.iter().map(to_jinja).collect::<Vec<_>>().into(),
        Value::Object(map) => object_to_jinja(map),
    }
}

/// An object into minijinja.
pub(crate) fn object_to_jinja(map: &Map<String, Value>) -> JinjaValue {
    JinjaValue::from_pairs(map.iter().map(|(key, value)| (key.as_str(), to_jinja(value))))
}

/// A buffer that fails when it would grow past `max`.
struct Bounded {
    bytes: Vec<u8>,
    max: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + piece.len() > self.max {
            return Err(io::Error::other(TooLarge));
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct TooLarge;

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value is too large")
    }
}

impl std::error::Error for TooLarge {}
