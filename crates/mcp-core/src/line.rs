//! Looking into encoded records without parsing them whole.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};

use crate::{Seq, Timestamp};

/// What stands at fixed places at the beginning of every record that [`crate::RecordHead`] wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineHead<'a> {
    /// Its position.
    pub seq: Seq,
    /// The thread's id.
    pub thread: &'a str,
    /// The run's id.
    pub run: &'a str,
    /// The time, as text.
    pub ts: &'a str,
    /// The event's type.
    pub kind: &'a str,
    /// Offset of the body (`"type":…`) in the line.
    pub body: usize,
}

impl<'a> LineHead<'a> {
    /// Reads the head of a line; `None` when the line is not in the canonical form.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let mut at = 0;
        literal(line, &mut at, b"{\"seq\":")?;
        let digits = line.get(at..)?.iter().take_while(|b| b.is_ascii_digit()).count();
        let seq = std::str::from_utf8(line.get(at..at + digits)?).ok()?.parse().ok()?;
        at += digits;
        let thread = quoted(line, &mut at, b",\"thread\":\"")?;
        let run = quoted(line, &mut at, b",\"run\":\"")?;
        let ts = quoted(line, &mut at, b",\"ts\":\"")?;
        literal(line, &mut at, b",")?;
        let body = at;
        let kind = quoted(line, &mut at, b"\"type\":\"")?;
        Some(Self { seq: Seq(seq), thread, run, ts, kind, body })
    }

    /// The time as a value.
    pub fn timestamp(&self) -> Option<Timestamp> {
        self.ts.parse().ok()
    }
}

fn literal(line: &[u8], at: &mut usize, text: &[u8]) -> Option<()> {
    line.get(*at..)?.starts_with(text).then(|| *at += text.len())
}

fn quoted<'a>(line: &'a [u8], at: &mut usize, open: &[u8]) -> Option<&'a str> {
    literal(line, at, open)?;
    let rest = line.get(*at..)?;
    let end = memchr::memchr2(b'"', b'\\', rest)?;
    if rest.get(end) != Some(&b'"') {
        return None;
    }
    *at += end + 1;
    std::str::from_utf8(rest.get(..end)?).ok()
}

/// The fields that readers filter by.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct LineFields<'a> {
    /// The state a record is about.
    #[serde(borrow, default, deserialize_with = "text")]
    pub state: Option<Cow<'a, str>>,
    /// The stream of process output.
    #[serde(borrow, default, deserialize_with = "text")]
    pub stream: Option<Cow<'a, str>>,
    /// The text of `log`, `message` and `note`.
    #[serde(borrow, default, deserialize_with = "text")]
    pub text: Option<Cow<'a, str>>,
    /// The branch.
    #[serde(default)]
    pub index: Option<u64>,
}

/// Serde borrows a `Cow` only when it is not inside an `Option`.
fn text<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'a, str>>, D::Error> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    Option::deserialize(deserializer).map(|text| text.map(|Text(text)| text))
}

impl<'a> LineFields<'a> {
    /// Reads them; `None` when the line is not JSON or a field has another type.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, Note, RecordHead, RunId};

    #[test]
    fn fields_are_borrowed_when_nothing_is_escaped() {
        let fields = LineFields::parse(br#"{"type":"log","state":"s","stream":null,"text":"a\tb","index":3}"#).unwrap();
        assert!(matches!(fields.state, Some(Cow::Borrowed("s"))));
        assert_eq!((fields.stream, fields.index), (None, Some(3)));
        assert!(matches!(fields.text, Some(Cow::Owned(text)) if text == "a\tb"));
        assert!(LineFields::parse(br#"{"type":"x","state":1}"#).is_none());
    }

    #[test]
    fn head_of_a_written_record() {
        let run = RunId::new("r.1").unwrap();
        let mut line = Vec::new();
        let head = RecordHead { seq: Seq(42), thread: &run.clone().into(), run: &run, ts: Timestamp::from_micros(1) };
        head.encode(&Event::from(Note::info("x")), &mut line);
        let read = LineHead::parse(&line).unwrap();
        assert_eq!((read.seq, read.thread, read.run, read.kind), (Seq(42), "r.1", "r.1", "note"));
        assert_eq!(read.timestamp(), Some(Timestamp::from_micros(1)));
        assert!(line[read.body..].starts_with(b"\"type\":\"note\""));
        for cut in 0..read.body {
            assert_eq!(LineHead::parse(&line[..cut]), None);
        }
    }
}
