//! The door to the playbook language: what the machine needs of its parser, with errors in words.

use serde_json::{Map, Value};

use crate::playbook::{self, Parsed, Playbook, Severity};

/// Reads a source text.
pub(super) fn parse(source: &str) -> Result<Playbook, String> {
    let Parsed { playbook, diagnostics } = playbook::parse(source, "playbook");
    let first = diagnostics.iter().find(|problem| problem.severity == Severity::Error);
    playbook.ok_or_else(|| first.map_or_else(|| "it cannot be read".to_owned(), ToString::to_string))
}

/// Checks inputs and fills in defaults.
pub(super) fn resolve(playbook: &Playbook, given: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    playbook::resolve_inputs(playbook, given).map_err(|errors| errors.to_string())
}
