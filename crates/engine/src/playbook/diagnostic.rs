//! Problems of a playbook file: where, what, and what to do about it.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diagnostic {
    /// Whether it keeps the playbook from running.
    pub severity: Severity,
    /// The name the caller gave the source: a path, mostly.
    pub origin: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// What is wrong: a lower-case fragment.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The playbook cannot run.
    Error,
    /// It can, but probably not as meant.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// `origin:line:column: error: message`, with the help on a line of its own.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}: {}", self.origin, self.line, self.column, self.severity, self.message)?;
        match &self.help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

/// A position in a source: line and column, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Position {
    /// Where a problem of the whole file is told.
    pub(crate) const START: Self = Self { line: 1, column: 1 };
}

/// Collects the problems of one file.
#[derive(Debug)]
pub(crate) struct Report {
    origin: String,
    diagnostics: Vec<Diagnostic>,
}

impl Report {
    /// Most problems told of one file: past that, nobody reads on.
    const MAX: usize = 100;

    pub(crate) fn new(origin: &str) -> Self {
        Self { origin: origin.to_owned(), diagnostics: Vec::new() }
    }

    pub(crate) fn error(&mut self, at: Position, message: impl Into<String>) {
        self.add(Severity::Error, at, message.into(), None);
    }

    pub(crate) fn error_help(&mut self, at: Position, message: impl Into<String>, help: impl Into<String>) {
        self.add(Severity::Error, at, message.into(), Some(help.into()));
    }

    pub(crate) fn warn(&mut self, at: Position, message: impl Into<String>, help: impl Into<String>) {
        self.add(Severity::Warning, at, message.into(), Some(help.into()));
    }

    /// An unknown name, with the closest of `known` or, when none is close, all of them.
    pub(crate) fn unknown<'a>(
        &mut self,
        at: Position,
        message: impl Into<String>,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) {
        let known: Vec<&str> = known.into_iter().collect();
        self.add(Severity::Error, at, message.into(), suggestion(name, &known));
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// The problems in the order of the file.
    pub(crate) fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        self.diagnostics.sort_by_key(|diagnostic| (diagnostic.line, diagnostic.column, diagnostic.severity));
        self.diagnostics
    }

    fn add(&mut self, severity: Severity, at: Position, message: String, help: Option<String>) {
        let diagnostic =
            Diagnostic { severity, origin: self.origin.clone(), line: at.line, column: at.column, message, help };
        // An alias brings the same node, and so the same problem, several times.
        let room = self.diagnostics.len() < Self::MAX || (severity == Severity::Error && !self.has_errors());
        if room && !self.diagnostics.contains(&diagnostic) {
            self.diagnostics.push(diagnostic);
        }
    }
}

/// A sentence that leads from a wrong name to a right one; `None` when there is nothing to offer.
pub(crate) fn suggestion(name: &str, known: &[&str]) -> Option<String> {
    if let Some(best) = closest(name, known) {
        return Some(format!("did you mean `{best}`?"));
    }
    // A long list is no help.
    const MAX_LISTED: usize = 16;
    match known {
        [] => None,
        [..] if known.len() > MAX_LISTED => None,
        _ => Some(format!("known: {}", known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))),
    }
}

/// The known name that is close enough to be what was meant.
pub(crate) fn closest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    // One slip in a short name, two in a longer one; Jaro-Winkler catches reversals and missing ends.
    const CLOSE: f64 = 0.85;
    // Measuring a very long name against all others is work for nothing.
    const MAX_CHARS: usize = 128;
    if name.len() > MAX_CHARS {
        return None;
    }
    let wanted = name.to_lowercase().replace('-', "_");
    known
        .iter()
        .map(|candidate| (*candidate, candidate.to_lowercase().replace('-', "_")))
        .map(|(candidate, plain)| {
            let edits = strsim::damerau_levenshtein(&wanted, &plain);
            let close = edits <= 1.max(wanted.chars().count() / 4);
            (candidate, strsim::jaro_winkler(&wanted, &plain) + if close { 1.0 } else { 0.0 })
        })
        .filter(|(_, score)| *score >= CLOSE)
        .max_by(|(_, left), (_, right)| left.total_cmp(right))
        .map(|(candidate, _)| candidate)
}
