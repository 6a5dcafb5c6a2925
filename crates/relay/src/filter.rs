//! Which records a reader wants.

use regex::bytes::{Regex, RegexBuilder};
use taffrail_mcp_core::{LineFields, LineHead, RunId};

use crate::RelayError;

/// Conditions on records; all that are given must hold.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only records of this run.
    pub run: Option<RunId>,
    /// Only these event types; empty means all.
    pub types: Vec<String>,
    /// Only records about this state.
    pub state: Option<String>,
    /// Only this stream of process output: `stdout` or `stderr`.
    pub stream: Option<String>,
    /// Only records that match: in `text` for `log` and `message`, in the JSON of others.
    pub grep: Option<Pattern>,
}

/// A regular expression for [`Filter::grep`].
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// Largest compiled size, in bytes: far more than a pattern that a person writes needs.
    pub const MAX_SIZE: usize = 1024 * 1024;

    /// Compiles a pattern in the syntax of the `regex` crate, which matches in linear time.
    ///
    /// # Errors
    ///
    /// [`RelayError::BadPattern`] when it is not one, or too large.
    pub fn new(pattern: &str) -> Result<Self, RelayError> {
        let built = RegexBuilder::new(pattern).size_limit(Self::MAX_SIZE).build();
        built.map(Self).map_err(|error| RelayError::BadPattern { detail: error.to_string() })
    }
}

impl Filter {
    /// Whether every record passes.
    pub fn is_open(&self) -> bool {
        self.run.is_none() && !self.looks_inside()
    }

    /// Whether more than the run decides.
    pub fn looks_inside(&self) -> bool {
        !self.types.is_empty() || self.state.is_some() || self.stream.is_some() || self.grep.is_some()
    }

    /// Whether one line passes. A line that is not a record passes none but the open filter.
    pub fn passes(&self, line: &[u8]) -> bool {
        if self.is_open() {
            return true;
        }
        let Some(head) = LineHead::parse(line) else { return false };
        let run = self.run.as_ref().is_none_or(|run| run.as_str() == head.run);
        let kind = self.types.is_empty() || self.types.iter().any(|kind| kind == head.kind);
        run && kind && self.fields_pass(line, head.kind)
    }

    fn fields_pass(&self, line: &[u8], kind: &str) -> bool {
        if self.state.is_none() && self.stream.is_none() && self.grep.is_none() {
            return true;
        }
        let fields = LineFields::parse(line).unwrap_or_default();
        let wants = |wanted: &Option<String>, has: &Option<std::borrow::Cow<'_, str>>| {
            wanted.as_ref().is_none_or(|wanted| has.as_deref() == Some(wanted))
        };
        let matches = |pattern: &Pattern| match (&fields.text, kind) {
            (Some(text), "log" | "message") => pattern.0.is_match(text.as_bytes()),
            _ => pattern.0.is_match(line.trim_ascii_end()),
        };
        wants(&self.state, &fields.state)
            && wants(&self.stream, &fields.stream)
            && self.grep.as_ref().is_none_or(matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = r#"{"seq":1,"thread":"t","run":"r","ts":"2026-01-01T00:00:00.000000Z","type":"log","state":"s","stream":"stderr","text":"a \"quoted\" word"}"#;
    const NOTE: &str = r#"{"seq":2,"thread":"t","run":"q","ts":"2026-01-01T00:00:00.000000Z","type":"note","level":"info","text":"hm"}"#;

    fn check(filter: Filter, log: bool, note: bool) {
        assert_eq!((filter.passes(LOG.as_bytes()), filter.passes(NOTE.as_bytes())), (log, note), "{filter:?}");
    }

    fn grep(pattern: &str) -> Option<Pattern> {
        Some(Pattern::new(pattern).unwrap())
    }

    #[test]
    fn each_condition() {
        check(Filter::default(), true, true);
        check(Filter { run: Some(RunId::new("r").unwrap()), ..Filter::default() }, true, false);
        check(Filter { types: vec!["note".into(), "x".into()], ..Filter::default() }, false, true);
        check(Filter { state: Some("s".into()), ..Filter::default() }, true, false);
        check(Filter { stream: Some("stdout".into()), ..Filter::default() }, false, false);
        check(Filter { grep: grep("\"quoted\""), ..Filter::default() }, true, false);
        check(Filter { grep: grep("stderr"), ..Filter::default() }, false, false);
        check(Filter { grep: grep("\"level\":\"info\""), ..Filter::default() }, false, true);
        check(Filter { grep: grep("word$"), stream: Some("stderr".into()), ..Filter::default() }, true, false);
    }

    #[test]
    fn a_bad_pattern_says_where() {
        let error = Pattern::new("a(b").unwrap_err().to_string();
        assert!(error.contains("unclosed group"), "{error}");
        assert!(Pattern::new(&"(a{1000}){1000}".repeat(3)).is_err());
    }
}
