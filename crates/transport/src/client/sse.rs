//! Server-sent events, read as they come in (WHATWG HTML, section 9.2.6 "Interpreting an event stream"). No I/O.

use std::time::Duration;

use bytes::Bytes;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Its name; empty for the default, `message`.
    pub(crate) event: String,
    /// The last id that the stream has given, in this event or before; `None` before any.
    pub(crate) id: Option<String>,
    /// Its data lines, each with a line end.
    pub(crate) data: Bytes,
}

/// What a piece of the stream brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    /// An event is complete.
    Frame(Frame),
    /// How long to wait before a new connection.
    Retry(Duration),
}

/// An event has more bytes than are taken; nothing after it can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is longer than {limit} bytes")]
pub(crate) struct TooLong {
    pub(crate) limit: usize,
}

/// Reads a stream whose pieces may be cut anywhere.
///
/// What is not complete at the end of the stream is dropped, as the standard says: an event that was cut off is sent
/// again, whole, to who asks from the last id.
#[derive(Debug)]
pub(crate) struct Parser {
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    data: Vec<u8>,
    event: String,
    id: Option<String>,
    /// Bytes of the stream's beginning that were compared with a byte order mark; `None` once that is decided.
    mark: Option<usize>,
    /// The last byte was CR: an LF that follows belongs to it.
    after_cr: bool,
    limit: usize,
}

/// UTF-8's byte order mark, which may stand at the very beginning.
const MARK: &[u8] = &[0xef, 0xbb, 0xbf];

impl Parser {
    /// A parser of a new connection. Events with more data than `limit` bytes, or lines longer than that, are refused.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            data: Vec::new(),
            event: String::new(),
            id: None,
            mark: Some(0),
            after_cr: false,
            limit,
        }
    }

    /// Takes in a piece and tells what it completed, in order.
    pub(crate) fn push(&mut self, piece: &[u8], mut out: impl FnMut(Item)) -> Result<(), TooLong> {
        let mut rest = self.skip_mark(piece);
        while let Some(first) = rest.first() {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else {
                self.keep(rest)?;
                break;
            };
            let (line, ended) = rest.split_at(end);
            self.after_cr = ended.first() == Some(&b'\r');
            rest = ended.get(1..).unwrap_or_default();
            if self.line.is_empty() {
                self.take_line(line, &mut out)?;
            } else {
                self.keep(line)?;
                let whole = std::mem::take(&mut self.line);
                self.take_line(&whole, &mut out)?;
                // Its room is used again.
                self.line = whole;
                self.line.clear();
            }
        }
        Ok(())
    }

    /// Compares the beginning of the stream with the mark; what turns out to be none is a beginning of the first line.
    fn skip_mark<'a>(&mut self, piece: &'a [u8]) -> &'a [u8] {
        let Some(seen) = self.mark else { return piece };
        let wanted = MARK.get(seen..).unwrap_or_default();
        let same = wanted.iter().zip(piece).take_while(|(wanted, is)| wanted == is).count();
        if same == wanted.len() {
            self.mark = None;
        } else if same == piece.len() {
            self.mark = Some(seen + same);
        } else {
            self.mark = None;
            self.line.extend(MARK.iter().take(seen));
            return piece;
        }
        piece.get(same..).unwrap_or_default()
    }

    fn keep(&mut self, part: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + part.len() > self.limit {
            return Err(TooLong { limit: self.limit });
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn take_line(&mut self, line: &[u8], out: &mut impl FnMut(Item)) -> Result<(), TooLong> {
        if line.len() > self.limit {
            return Err(TooLong { limit: self.limit });
        }
        if line.is_empty() {
            self.dispatch(out);
            return Ok(());
        }
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.data.len() + value.len() >= self.limit {
                    return Err(TooLong { limit: self.limit });
                }
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => self.event = String::from_utf8_lossy(value).into_owned(),
            b"id" if !value.contains(&0) => self.id = Some(String::from_utf8_lossy(value).into_owned()),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                // More digits than a number of milliseconds has are as good as the most.
                let millis = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).unwrap_or(u64::MAX);
                out(Item::Retry(Duration::from_millis(millis)));
            }
            // A comment has an empty field name; unknown fields are ignored.
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self, out: &mut impl FnMut(Item)) {
        let event = std::mem::take(&mut self.event);
        let data = std::mem::take(&mut self.data);
        if !data.is_empty() {
            out(Item::Frame(Frame { event, id: self.id.clone(), data: data.into() }));
        }
    }
}

#[cfg(test)]
mod tests;
