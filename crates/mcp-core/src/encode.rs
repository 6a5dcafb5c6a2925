//! Records as bytes, without an intermediate value.

use crate::{Event, RunId, Seq, ThreadId, Timestamp};

/// The common fields of a record, which stand first and in this order.
#[derive(Debug, Clone, Copy)]
pub struct RecordHead<'a> {
    /// Position in the thread's log.
    pub seq: Seq,
    /// The log.
    pub thread: &'a ThreadId,
    /// The run that wrote it.
    pub run: &'a RunId,
    /// When it was accepted.
    pub ts: Timestamp,
}

impl RecordHead<'_> {
    /// Appends one whole record, newline included.
    pub fn encode(&self, event: &Event, out: &mut Vec<u8>) {
        self.encode_head(out);
        event.encode_body(out);
    }

    /// Appends `{"seq":…,"thread":…,"run":…,"ts":…,`: what stands before an event's body.
    ///
    /// Ids need no escaping, by their grammar.
    pub fn encode_head(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"seq\":");
        out.extend_from_slice(itoa::Buffer::new().format(self.seq.0).as_bytes());
        out.extend_from_slice(b",\"thread\":\"");
        out.extend_from_slice(self.thread.as_str().as_bytes());
        out.extend_from_slice(b"\",\"run\":\"");
        out.extend_from_slice(self.run.as_str().as_bytes());
        out.extend_from_slice(b"\",\"ts\":\"");
        out.extend_from_slice(&self.ts.to_text());
        out.extend_from_slice(b"\",");
    }
}

/// Appends `text` as a JSON string, quotes included (RFC 8259, section 7).
///
/// Runs of bytes that need no escape, nearly all of any log, are found eight at a time and copied whole.
pub fn encode_json_str(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut done = 0;
    while let Some(offset) = bytes.get(done..).and_then(first_special) {
        let at = done + offset;
        out.extend_from_slice(&bytes[done..at]);
        escape(bytes[at], out);
        done = at + 1;
    }
    out.extend_from_slice(&bytes[done..]);
    out.push(b'"');
}

/// Turns line ends into spaces.
///
/// Values of unknown fields are written as they were read, white space between their tokens included; a record is one
/// line, and a bare carriage return ends a line of SSE. Inside JSON strings neither can occur, so nothing changes.
pub(crate) fn join_lines(json: &mut [u8]) {
    for byte in json {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

fn escape(byte: u8, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0x08 => out.extend_from_slice(b"\\b"),
        0x0c => out.extend_from_slice(b"\\f"),
        other => {
            out.extend_from_slice(b"\\u00");
            out.push(HEX[usize::from(other >> 4)]);
            out.push(HEX[usize::from(other & 15)]);
        }
    }
}

/// Offset of the first byte that a JSON string must escape.
pub(crate) fn first_special(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // "Has a zero byte" (Warren, Hacker's Delight, 6-1) of the word, xored with the wanted byte. A borrow can only
    // mark bytes above a true hit, so the lowest mark is exact.
    let zero_byte = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let mut chunks = bytes.chunks_exact(8);
    for (i, chunk) in chunks.by_ref().enumerate() {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        let word = u64::from_le_bytes(word);
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let quote = zero_byte(word ^ (ONES * u64::from(b'"')));
        let backslash = zero_byte(word ^ (ONES * u64::from(b'\\')));
        let marks = control | quote | backslash;
        if marks != 0 {
            return Some(i * 8 + marks.trailing_zeros() as usize / 8);
        }
    }
    let tail = bytes.len() - chunks.remainder().len();
    chunks.remainder().iter().position(|&b| b < 0x20 || b == b'"' || b == b'\\').map(|i| tail + i)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn strings_are_what_serde_json_writes(text in "(\\PC|[\\x00-\\x22\\\\]){0,40}") {
            let mut out = Vec::new();
            encode_json_str(&text, &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&text).unwrap());
        }
    }
}
