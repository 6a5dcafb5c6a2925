//! Questions: what is asked, and the hash that binds a decision to exactly what will happen.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use taffrail_mcp_core::Approver;

use super::{Machine, frame::LaneId, resume::public_inputs};
use crate::playbook::{Action, ApprovedBy, Scope, State};

/// What an `approve` or `ask` state asks, rendered.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Question {
    pub(super) message: String,
    /// Of the answer; only `ask` has one.
    pub(super) schema: Option<Value>,
    pub(super) by: Approver,
}

impl Question {
    /// The question of a state; `None` when it asks none.
    pub(super) fn of(state: &State, scope: &Scope) -> Option<Result<Self, String>> {
        let (message, schema, by) = match &state.action {
            Action::Approve(spec) => {
                let by = match spec.by {
                    ApprovedBy::Human => Approver::Human,
                    ApprovedBy::Agent => Approver::Agent,
                };
                (&spec.message, None, by)
            }
            Action::Ask(spec) => (&spec.message, Some(Value::Object(spec.schema.clone())), Approver::Agent),
            Action::Process(_) | Action::Call(_) => return None,
        };
        let message = message.render(scope).map_err(|error| error.to_string());
        Some(message.map(|message| Self { message, schema, by }))
    }
}

/// The hash of what happens when a question is answered with yes: SHA-256, in hex, of the canonical JSON (no space,
/// keys in byte order, numbers and strings as `serde_json` writes them) of
///
/// ```json
/// {"v":1, "message":…, "schema":…, "by":…, "cwd":…,
///  "frames":[{"playbook":…, "state":…, "ctx":{…}}, …],
///  "inputs":{…}, "sources":{"<name>":"<text>", …}}
/// ```
///
/// `frames` is every running playbook, outermost first, the last one at the state that asks; `inputs` those of the
/// outermost without its secret ones (those of the others follow from them); `sources` the text of every playbook the
/// run may come to: a decision is about all that can follow from it, and so it is void when any of that changes. Values
/// of secrets do not take part: they may be given anew at a resume, and a hash of a short secret gives it away.
pub(super) fn hash(machine: &Machine, question: &Question) -> String {
    let Question { message, schema, by } = question;
    let frames = machine.lanes.get(&LaneId::ROOT).map(|lane| lane.frames.as_slice()).unwrap_or_default();
    let inputs = frames.first().map(|frame| public_inputs(&frame.playbook, &frame.inputs)).unwrap_or_default();
    let stack: Vec<Value> = frames
        .iter()
        .map(|frame| json!({ "playbook": frame.playbook.name, "state": frame.state_name(), "ctx": frame.ctx }))
        .collect();
    let sources: Map<String, Value> =
        machine.books.found().map(|(name, book)| (name.to_owned(), Value::from(&*book.source))).collect();
    let document = json!({
        "v": 1,
        "message": message,
        "schema": schema,
        "by": by,
        "cwd": machine.cwd.to_string_lossy(),
        "frames": stack,
        "inputs": inputs,
        "sources": sources,
    });
    let mut text = String::new();
    canonical(&document, &mut text);
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes JSON with sorted keys, whatever order the map type keeps. Documents come from a checked playbook and from
/// JSON that a parser with a depth limit has read, so the recursion is bounded.
fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                canonical(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            let sorted: BTreeMap<&str, &Value> = map.iter().map(|(key, value)| (key.as_str(), value)).collect();
            for (at, (key, value)) in sorted.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key).to_string());
                out.push(':');
                canonical(value, out);
            }
            out.push('}');
        }
        plain => out.push_str(&plain.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_json_is_sorted_at_every_level() {
        let mut text = String::new();
        canonical(&json!({ "b": [{ "z": 1, "a": "é\n" }], "a": null }), &mut text);
        assert_eq!(text, "{\"a\":null,\"b\":[{\"a\":\"é\\n\",\"z\":1}]}");
    }
}
