//! The message that everybody is given: 200 bytes, a publisher, a number, a time.

use rustix::time::{ClockId, clock_gettime};

/// Size of a message, its newline not counted.
pub(crate) const MESSAGE_BYTES: usize = 200;

/// Stands before the publisher's digit and nowhere else, so that one search finds what subscribers want to know.
const MARK: u8 = b'~';
const HEAD: &str = r#"{"type":"message","role":"a","text":""#;
const TAIL: &str = r#"","delta":true}"#;
/// `~P NNNNNNNNNN TTTTTTTTTTTTTTTTTTT `: publisher, its number, nanoseconds.
const NUMBER_AT: usize = 3;
const NUMBER_DIGITS: usize = 10;
const TIME_AT: usize = NUMBER_AT + NUMBER_DIGITS + 1;
const TIME_DIGITS: usize = 19;
const WORDS: &str =
    "the quick brown fox jumps over the lazy dog while the five boxing wizards jump quickly and pack my";

/// Nanoseconds of the monotonic clock, which both ends of a message read.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// A body of one or several messages, whose numbers and times are written over for each request.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    body: Vec<u8>,
    /// From one message to the next.
    stride: usize,
}

impl Template {
    /// Messages of one publisher, 0 to 9, ended by newlines or (a single one) bare.
    pub(crate) fn new(publisher: usize, count: usize, lines: bool) -> Self {
        let mut line = format!("{HEAD}~{} {:010} {:019} ", publisher % 10, 0, 0);
        let room = MESSAGE_BYTES - TAIL.len();
        line.extend(WORDS.chars().cycle().take(room - line.len()));
        line.push_str(TAIL);
        if lines {
            line.push('\n');
        }
        Self { stride: line.len(), body: line.repeat(count).into_bytes() }
    }

    /// Writes consecutive numbers, and one time, into the messages.
    pub(crate) fn stamp(&mut self, first_number: u64, ns: u64) -> &[u8] {
        for (number, line) in (first_number..).zip(self.body.chunks_exact_mut(self.stride)) {
            digits(line, HEAD.len() + NUMBER_AT, NUMBER_DIGITS, number);
            digits(line, HEAD.len() + TIME_AT, TIME_DIGITS, ns);
        }
        &self.body
    }
}

fn digits(line: &mut [u8], at: usize, count: usize, mut value: u64) {
    for digit in line.iter_mut().skip(at).take(count).rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// The publisher and the number of a message that came back, wherever in the bytes it stands.
pub(crate) fn number(event: &[u8]) -> Option<(usize, u64)> {
    let mark = marked(event)?;
    let publisher = mark.get(1)?.wrapping_sub(b'0');
    Some((usize::from(publisher), parse(mark.get(NUMBER_AT..NUMBER_AT + NUMBER_DIGITS)?)?))
}

/// When it was sent.
pub(crate) fn time(event: &[u8]) -> Option<u64> {
    parse(marked(event)?.get(TIME_AT..TIME_AT + TIME_DIGITS)?)
}

fn marked(event: &[u8]) -> Option<&[u8]> {
    event.get(memchr::memchr(MARK, event)?..)
}

/// Decimal digits and nothing else.
pub(crate) fn parse(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    let mut value = 0u64;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_200_bytes_and_says_what_was_stamped() {
        let mut template = Template::new(7, 3, true);
        let body = template.stamp(41, 1_234_567_890_123);
        assert_eq!(body.len(), 3 * (MESSAGE_BYTES + 1));
        for (line, number_of_line) in body.split_inclusive(|b| *b == b'\n').zip(41..) {
            assert!(serde_json::from_slice::<serde_json::Value>(line).is_ok());
            assert_eq!(number(line), Some((7, number_of_line)));
            assert_eq!(time(line), Some(1_234_567_890_123));
        }
        assert_eq!(Template::new(0, 1, false).stamp(1, 1).len(), MESSAGE_BYTES);
    }
}
