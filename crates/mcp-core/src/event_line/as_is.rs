//! Lines that are bodies of records already, but for their brace: one walk, one copy.

use super::{canonical::Body, check_kind, is_dropped};
use crate::{Event, Timestamp, walk::Walker};

/// Most fields of an event that is taken so: each name is compared with all before it.
const MOST_FIELDS: usize = 16;

/// A line that is a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AsIs<'a> {
    /// When it says that it happened.
    pub(super) ts: Option<Timestamp>,
    /// The body.
    pub(super) body: Body<'a>,
}

/// Reads a line that begins with its type, or with its time and then its type, and is then written as we would write
/// it. `None` when it does not, for whatever reason: then it is looked at more closely.
///
/// The line is valid UTF-8.
pub(super) fn read(line: &[u8]) -> Option<AsIs<'_>> {
    let line = line.trim_ascii_end();
    let mut at = Place { walker: Walker::new(line), line };
    at.pass(b"{")?;
    let mut ts = None;
    if at.pass(br#""ts":""#).is_some() {
        let text = line.get(at.walker.at()..at.walker.at() + Timestamp::TEXT_LEN)?;
        ts = Some(std::str::from_utf8(text).ok()?.parse().ok()?);
        at.walker.skip(Timestamp::TEXT_LEN);
        at.pass(b"\",")?;
    }
    let body = at.walker.at();
    at.pass(br#""type":""#)?;
    let start = at.walker.at();
    let kind = line.get(start..start + memchr::memchr(b'"', line.get(start..)?)?)?;
    let kind = std::str::from_utf8(kind).ok()?;
    check_kind(kind, start).ok()?;
    at.walker.skip(kind.len() + 1);
    let (lines, line_bytes) = match kind {
        "log" => at.log()?,
        "message" => at.message()?,
        known if Event::KINDS.contains(&known) => return None,
        _ => at.fields()?,
    };
    if at.walker.at() != line.len() {
        return None;
    }
    Some(AsIs { ts, body: Body { bytes: line.get(body..)?, lines, line_bytes } })
}

struct Place<'a> {
    walker: Walker<'a>,
    line: &'a [u8],
}

impl Place<'_> {
    /// Passes these bytes, when they are here.
    fn pass(&mut self, bytes: &[u8]) -> Option<()> {
        self.line.get(self.walker.at()..)?.starts_with(bytes).then(|| self.walker.skip(bytes.len()))
    }

    /// Passes a string as we would write it; gives its length.
    fn text(&mut self) -> Option<usize> {
        if self.walker.peek() != Some(b'"') {
            return None;
        }
        self.walker.string().ok().filter(|text| text.canonical).map(|text| text.len)
    }

    /// Passes an unsigned integer as we would write it.
    fn integer(&mut self) -> Option<u64> {
        let start = self.walker.at();
        let rest = self.line.get(start..)?;
        let digits = rest.get(..rest.iter().take_while(|byte| byte.is_ascii_digit()).count())?;
        if digits.len() > 1 && digits.first() == Some(&b'0') {
            return None;
        }
        self.walker.skip(digits.len());
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    fn log(&mut self) -> Option<(u64, u64)> {
        self.pass(b",\"state\":")?;
        self.text()?;
        if self.pass(b",\"index\":").is_some() {
            self.integer()?;
        }
        self.pass(b",\"stream\":\"std")?;
        self.pass(b"out\"").or_else(|| self.pass(b"err\""))?;
        self.pass(b",\"text\":")?;
        let text_bytes = self.text()?;
        if self.pass(b",\"part\":").is_some() {
            self.integer()?;
        }
        let more = self.pass(b",\"more\":true").is_some();
        self.pass(b",\"redraw\":true");
        let folded = match self.pass(b",\"folded\":") {
            Some(()) => self.integer().filter(|folded| *folded > 0)?,
            None => 0,
        };
        let unended = self.pass(b",\"eol\":false").is_some();
        let crlf = self.pass(b",\"crlf\":true").is_some();
        self.pass(b"}")?;
        let newline = u64::from(!more && !unended) + u64::from(crlf);
        let bytes = (text_bytes as u64).checked_add(folded)?.checked_add(newline)?;
        Some((u64::from(!more), bytes))
    }

    fn message(&mut self) -> Option<(u64, u64)> {
        self.pass(b",\"role\":")?;
        self.text()?;
        self.pass(b",\"text\":")?;
        self.text()?;
        self.pass(b",\"delta\":")?;
        self.pass(b"true}").or_else(|| self.pass(b"false}"))?;
        Some((0, 0))
    }

    /// Any fields but those that are dropped, each once, without white space between them.
    fn fields(&mut self) -> Option<(u64, u64)> {
        let mut names: [&[u8]; MOST_FIELDS] = [b""; MOST_FIELDS];
        for count in 0..=MOST_FIELDS {
            if self.pass(b"}").is_some() {
                return Some((0, 0));
            }
            self.pass(b",")?;
            let start = self.walker.at() + 1;
            let length = self.text()?;
            // A name with escapes is longer than what it means.
            let name = self.line.get(start..start + length)?;
            if self.walker.at() != start + length + 1 || name == b"type" || is_dropped(name) {
                return None;
            }
            if names.iter().take(count).any(|earlier| *earlier == name) {
                return None;
            }
            *names.get_mut(count)? = name;
            self.pass(b":")?;
            let value = self.walker.at();
            self.walker.value().ok()?;
            // White space around a value would have to go, and line ends within it.
            let value = self.line.get(value..self.walker.at())?;
            if value.trim_ascii().len() != value.len() || memchr::memchr(b'\r', value).is_some() {
                return None;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_lines_are_bodies() {
        let check = |line: &str, lines, bytes| {
            let expected = Body { bytes: &line.trim_ascii_end().as_bytes()[1..], lines, line_bytes: bytes };
            assert_eq!(read(line.as_bytes()), Some(AsIs { ts: None, body: expected }), "{line}");
            let line = format!("{{\"ts\":\"1970-01-01T00:00:00.000007Z\",{}", &line[1..]);
            let timed = read(line.as_bytes()).unwrap();
            assert_eq!((timed.ts, timed.body.line_bytes), (Some(Timestamp::from_micros(7)), bytes), "{line}");
            assert!(timed.body.bytes.starts_with(b"\"type\":"));
        };
        check("{\"type\":\"log\",\"state\":\"s\",\"stream\":\"stdout\",\"text\":\"a\\nb\"}\r", 1, 4);
        check(
            r#"{"type":"log","state":"s","index":3,"stream":"stderr","text":"é","part":0,"more":true,"redraw":true,"folded":9,"crlf":true}"#,
            0,
            12,
        );
        check(r#"{"type":"log","state":"s","stream":"stdout","text":"","eol":false}"#, 1, 0);
        check(r#"{"type":"message","role":"user","text":"hi","delta":false}"#, 0, 0);
        check(r#"{"type":"metric"}"#, 0, 0);
        check(r#"{"type":"metric","value":1e999,"of":{"a" : [1, 2]},"é":"\ud800"}"#, 0, 0);
    }

    #[test]
    fn others_are_looked_at_more_closely() {
        for line in [
            r#"{"type":"x","run":"r"}"#,
            r#"{"type":"x","a":1,"a":2}"#,
            r#"{"type":"x","a": 1}"#,
            r#"{"type":"x","a":1 }"#,
            r#"{"type":"x","\u0061":1}"#,
            r#"{"type":"x","type":"y"}"#,
            r#"{"type":"note","text":"a"}"#,
            r#"{"type":"log","state":"s","stream":"stdout","text":"a","more":false}"#,
            r#"{"type":"log","state":"s","stream":"stdout","text":"a","part":00}"#,
            r#"{"type":"log","state":"s","stream":"stdout","text":"\u0061"}"#,
            r#"{"type":"log","state":"s","stream":"stdout","text":"a","extra":1}"#,
            "{\"type\":\"x\",\"a\":[1,\r2]}",
            r#"{"type":"x"}}"#,
            r#" {"type":"x"}"#,
            r#"{"ts":"1970-01-01T00:00:00Z","type":"x"}"#,
            r#"{"ts":"1970-01-01T00:00:00.000007Z","run":"r","type":"x"}"#,
            "",
        ] {
            assert_eq!(read(line.as_bytes()), None, "{line}");
        }
    }
}
