//! Tests of the parser: a source, and everything it is told about it.

mod gates;
mod hostile;
mod inputs;
mod shape;
mod states;
mod whole;

use super::parse;
use crate::playbook::{Playbook, Severity};

/// What is told about a source, as a person sees it. A leading newline is there for looks and left out.
fn told(source: &str) -> String {
    let parsed = parse(source.strip_prefix('\n').unwrap_or(source), "p.yaml");
    let errors = parsed.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    assert_eq!(parsed.playbook.is_none(), errors, "a playbook, or an error, not both");
    match parsed.diagnostics.is_empty() {
        true => "(nothing)".to_owned(),
        false => parsed.diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
    }
}

/// The playbook of a source that has to be good.
fn good(source: &str) -> Playbook {
    let parsed = parse(source, "p.yaml");
    parsed.playbook.unwrap_or_else(|| panic!("{source}\n{:?}", parsed.diagnostics))
}
