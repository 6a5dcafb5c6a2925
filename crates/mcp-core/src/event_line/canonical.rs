//! Bodies of records from the places of an event's fields, for the types that make floods.

use super::{Field, is_dropped};
use crate::Event;

/// What stands after the common fields of a record, without the newline, and what of it counts as process output.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Body<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) lines: u64,
    pub(super) line_bytes: u64,
}

/// Writes the body that [`crate::EventBatch::push_with`] would write for this event; gives the lines and bytes of process
/// output in it. `None` when that needs the value: another type, or a spelling that we would not write.
pub(super) fn write(line: &[u8], kind: &str, fields: &[Field], out: &mut Vec<u8>) -> Option<(u64, u64)> {
    if memchr::memchr(b'\r', line).is_some() {
        // Between the tokens of a value that is kept it would have to go.
        return None;
    }
    let counted = match kind {
        "log" => log(line, fields, out)?,
        "message" => message(line, fields, out)?,
        known if Event::KINDS.contains(&known) => return None,
        _ => {
            out.extend_from_slice(b"\"type\":\"");
            out.extend_from_slice(kind.as_bytes());
            out.push(b'"');
            extra(line, fields, |_| false, |_| false, out)?;
            (0, 0)
        }
    };
    out.push(b'}');
    Some(counted)
}

/// The fields of [`crate::Log`] that lines of text have, in the order in which they are written.
const LOG: [&[u8]; 10] =
    [b"state", b"index", b"stream", b"text", b"part", b"more", b"redraw", b"folded", b"eol", b"crlf"];

/// The place of a field among [`LOG`].
fn log_place(name: &[u8]) -> Option<usize> {
    // A match, which looks at the length first: searching the list takes as long as all the rest.
    Some(match name {
        b"state" => 0,
        b"index" => 1,
        b"stream" => 2,
        b"text" => 3,
        b"part" => 4,
        b"more" => 5,
        b"redraw" => 6,
        b"folded" => 7,
        b"eol" => 8,
        b"crlf" => 9,
        _ => return None,
    })
}

fn log(line: &[u8], fields: &[Field], out: &mut Vec<u8>) -> Option<(u64, u64)> {
    let known = places(line, fields, log_place);
    let [state, index, stream, text, part, more, redraw, folded, eol, crlf] = known;
    canonical(state?)?;
    let text_bytes = canonical(text?)?;
    if !matches!(stream?.value(line), b"\"stdout\"" | b"\"stderr\"") {
        return None;
    }
    // A field that says its default is not written in its place.
    let is = |field: Option<&Field>, word: &[u8]| field.is_none_or(|field| field.value(line) == word);
    if !(is(more, b"true") && is(redraw, b"true") && is(crlf, b"true") && is(eol, b"false")) {
        return None;
    }
    let number = |field: Option<&Field>| match field {
        Some(field) => integer(field.value(line)).map(Some),
        None => Some(None),
    };
    number(index)?;
    number(part)?;
    let folded_bytes = number(folded)?;
    if folded_bytes == Some(0) {
        return None;
    }
    out.extend_from_slice(b"\"type\":\"log\"");
    for (name, field) in LOG.iter().zip(known) {
        if let Some(field) = field {
            put(name, field.value(line), out);
        }
    }
    // `b64` stands between `text` and `part`, and then the text does not count.
    extra(line, fields, |name| log_place(name).is_some(), |name| name == b"b64", out)?;
    let newline = u64::from(more.is_none() && eol.is_none()) + u64::from(crlf.is_some());
    let bytes = (text_bytes as u64).checked_add(folded_bytes.unwrap_or(0))?.checked_add(newline)?;
    Some((u64::from(more.is_none()), bytes))
}

const MESSAGE: [&[u8]; 3] = [b"role", b"text", b"delta"];

fn message_place(name: &[u8]) -> Option<usize> {
    Some(match name {
        b"role" => 0,
        b"text" => 1,
        b"delta" => 2,
        _ => return None,
    })
}

fn message(line: &[u8], fields: &[Field], out: &mut Vec<u8>) -> Option<(u64, u64)> {
    let known = places(line, fields, message_place);
    let [role, text, delta] = known;
    canonical(role?)?;
    canonical(text?)?;
    if !matches!(delta?.value(line), b"true" | b"false") {
        return None;
    }
    out.extend_from_slice(b"\"type\":\"message\"");
    for (name, field) in MESSAGE.iter().zip(known) {
        if let Some(field) = field {
            put(name, field.value(line), out);
        }
    }
    extra(line, fields, |name| message_place(name).is_some(), |_| false, out)?;
    Some((0, 0))
}

/// The fields that have a place, each at it.
fn places<'a, const N: usize>(
    line: &[u8],
    fields: &'a [Field],
    place: impl Fn(&[u8]) -> Option<usize>,
) -> [Option<&'a Field>; N] {
    let mut known = [None; N];
    for field in fields {
        if let Some(slot) = place(field.name(line)).and_then(|place| known.get_mut(place)) {
            *slot = Some(field);
        }
    }
    known
}

/// The fields that are neither in their places by now nor dropped, in their order; `None` when one of them cannot stand
/// here.
fn extra(
    line: &[u8],
    fields: &[Field],
    written: impl Fn(&[u8]) -> bool,
    misplaced: impl Fn(&[u8]) -> bool,
    out: &mut Vec<u8>,
) -> Option<()> {
    for field in fields {
        let name = field.name(line);
        if name == b"type" || written(name) || is_dropped(name) {
            continue;
        }
        if !field.name.canonical || misplaced(name) {
            return None;
        }
        put(name, field.value(line), out);
    }
    Some(())
}

fn put(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name);
    out.extend_from_slice(b"\":");
    out.extend_from_slice(value);
}

/// The length of a string that is written as we would write it.
fn canonical(field: &Field) -> Option<usize> {
    field.text.as_ref().filter(|text| text.canonical).map(|text| text.len)
}

/// An unsigned integer as we would write it. JSON has no leading zeros already.
fn integer(value: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok()
}
