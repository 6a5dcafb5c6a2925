//! The door to the playbook language: what the machine needs of its parser, with errors in words.

use serde_json::{Map, Value};

use crate::playbook::Playbook;

/// Reads a source text.
pub(super) fn parse(_source: &str) -> Result<Playbook, String> {
    Err("the parser is not there yet".to_owned())
}

/// Checks inputs and fills in defaults.
pub(super) fn resolve(_playbook: &Playbook, given: Map<String, Value>) -> Result<Map<String, Value>, String> {
    Ok(given)
}
