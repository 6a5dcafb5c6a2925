//! Cursors as requests write them: the one place that reads them, for streams and pages.

use axum::http::HeaderValue;
use taffrail_mcp_core::{Seq, Start};

use super::{code::Code, problem::Problem};

/// The word for "only what is written from now on".
const LIVE: &[u8] = b"live";

/// Most characters of a wrong cursor that are told back.
const SHOWN: usize = 60;

/// A text that is not a cursor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not a cursor: give an integer from 0 on, the `seq` of the last record that was seen")]
pub(crate) struct CursorError {
    given: String,
}

impl CursorError {
    fn new(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        let mut given: String = text.chars().take(SHOWN).collect();
        if given.len() < text.len() {
            given.push('…');
        }
        Self { given }
    }

    /// The answer; `name` is the parameter or header that held it.
    pub(crate) fn problem(&self, name: &'static str) -> Problem {
        Problem::new(Code::BadCursor, format!("{name}: {self}")).with("parameter", name)
    }
}

/// Reads a position: an integer from 0 on, in digits. One beyond 64 bits is the largest position, which is past the
/// end of every log: that is what the reader should be told, not that it is no integer.
///
/// # Errors
///
/// [`CursorError`] when it is anything else: empty, signed, a fraction, with white space.
pub(crate) fn position(text: &[u8]) -> Result<Seq, CursorError> {
    if text.is_empty() {
        return Err(CursorError::new(text));
    }
    let digits = text.iter().try_fold(0u64, |number, byte| match byte {
        b'0'..=b'9' => Some(number.saturating_mul(10).saturating_add(u64::from(byte - b'0'))),
        _ => None,
    });
    digits.map(Seq).ok_or_else(|| CursorError::new(text))
}

/// Reads where a reader begins: a position, or `live`.
///
/// # Errors
///
/// As [`position`].
pub(crate) fn start(text: &[u8]) -> Result<Start, CursorError> {
    if text == LIVE { Ok(Start::Live) } else { position(text).map(Start::After) }
}

/// Where a stream begins: `Last-Event-ID` wins over `after`; neither is the beginning.
///
/// The header is what a browser adds by itself when it connects again, to the URL that it had from the start: it is
/// the newer of the two. An empty one says that no id was seen (HTML, section 9.2.4), so it is as good as none.
///
/// # Errors
///
/// `bad-cursor` when the one that counts is not a cursor.
pub(crate) fn requested(last_event_id: Option<&HeaderValue>, after: Option<&str>) -> Result<Start, Problem> {
    if let Some(id) = last_event_id.map(HeaderValue::as_bytes).filter(|id| !id.is_empty()) {
        return position(id).map(Start::After).map_err(|error| error.problem("Last-Event-ID"));
    }
    match after {
        None => Ok(Start::Beginning),
        Some(after) => start(after.as_bytes()).map_err(|error| error.problem("after")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<u64>) {
        assert_eq!(position(text.as_bytes()).ok(), expected.map(Seq), "{text:?}");
    }

    #[test]
    fn a_position_is_digits() {
        check("0", Some(0));
        check("7", Some(7));
        check("007", Some(7));
        check("18446744073709551615", Some(u64::MAX));
        check("99999999999999999999999999", Some(u64::MAX));
        for bad in ["", "-1", "+1", " 1", "1 ", "1.0", "1e3", "0x1", "١", "live", "\u{0}", "1\n"] {
            check(bad, None);
        }
        assert!(position(b"\xff1").is_err());
    }

    #[test]
    fn what_was_wrong_is_told_and_not_at_any_length() {
        let error = position("x".repeat(1000).as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("\"xxx") && error.len() < 250, "{error}");
        assert!(position(b"\xff").unwrap_err().to_string().contains("an integer from 0 on"));
    }

    fn asked(header: Option<&'static str>, after: Option<&str>) -> Result<Start, Problem> {
        let header = header.map(HeaderValue::from_static);
        requested(header.as_ref(), after)
    }

    #[test]
    fn the_header_wins() {
        assert_eq!(asked(None, None).unwrap(), Start::Beginning);
        assert_eq!(asked(None, Some("3")).unwrap(), Start::After(Seq(3)));
        assert_eq!(asked(None, Some("live")).unwrap(), Start::Live);
        assert_eq!(asked(Some("5"), Some("3")).unwrap(), Start::After(Seq(5)));
        assert_eq!(asked(Some("5"), Some("nonsense")).unwrap(), Start::After(Seq(5)));
        assert_eq!(asked(Some(""), Some("3")).unwrap(), Start::After(Seq(3)));
        for (header, after) in [(Some("live"), None), (Some("-1"), Some("3")), (None, Some("")), (None, Some("-1"))] {
            let problem = asked(header, after).unwrap_err();
            assert_eq!(problem.code(), Code::BadCursor);
        }
    }
}
