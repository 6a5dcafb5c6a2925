//! What a run snapshot looks like to a model: the document, and the same in words.

use std::fmt::Write as _;

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value, json};

/// Fields in the order in which they are told; others follow.
const ORDER: [&str; 16] = [
    "thread",
    "playbook",
    "status",
    "state",
    "step",
    "head",
    "started_at",
    "elapsed_ms",
    "error",
    "detail",
    "at",
    "approval",
    "checkpoint",
    "usage",
    "spool",
    "next",
];

/// A snapshot as a tool result: structured, and one text block that says the same.
pub(super) fn result(snapshot: Value, shared_fs: bool) -> CallToolResult {
    let document = document(snapshot, shared_fs);
    let mut result = CallToolResult::success(vec![ContentBlock::text(text(&document))]);
    result.structured_content = Some(Value::Object(document));
    result
}

/// A snapshot as a caller may see it, with what to do next.
pub(super) fn document(snapshot: Value, shared_fs: bool) -> Map<String, Value> {
    let mut document = match snapshot {
        Value::Object(document) => document,
        other => Map::from_iter([("snapshot".to_owned(), other)]),
    };
    if !shared_fs {
        document.remove("spool");
    }
    if !matches!(document.get("next"), Some(Value::String(next)) if !next.is_empty()) {
        document.insert("next".to_owned(), Value::from(next(&document)));
    }
    document
}

/// The last seq that a snapshot knows of.
pub(super) fn head(snapshot: &Value) -> u64 {
    snapshot.get("head").and_then(Value::as_u64).unwrap_or(0)
}

/// One line a field; absent ones, and those that are null, are left out.
pub(super) fn text(document: &Map<String, Value>) -> String {
    let mut text = String::new();
    let told = |key: &str| key == "run" || ORDER.contains(&key);
    let others = document.keys().map(String::as_str).filter(|key| !told(key));
    let last = ORDER.len() - 1;
    let keys =
        ["run"].into_iter().chain(ORDER.into_iter().take(last)).chain(others).chain(ORDER.into_iter().skip(last));
    for key in keys {
        let value = match document.get(key) {
            None | Some(Value::Null) => continue,
            Some(value) => words(value),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{key}: {value}");
    }
    text.truncate(text.trim_end().len());
    text
}

/// A value in a line: text bare, a flat object as `key=value`, anything else as JSON.
pub(super) fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| match value {
                Value::String(text) if !text.is_empty() && !text.contains([' ', '"', '\n']) => {
                    format!("{key}={text}")
                }
                value => format!("{key}={value}"),
            });
            fields.collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}

/// What to call next, and when.
fn next(document: &Map<String, Value>) -> String {
    let run = document.get("run").unwrap_or(&Value::Null);
    let head = document.get("head").unwrap_or(&Value::Null);
    match document.get("status").and_then(Value::as_str).unwrap_or_default() {
        "running" => format!(
            r#"It goes on by itself: wait with run_status {{"run":{run},"after":{head},"wait_s":25}}, or read its output with run_logs {{"run":{run}}}."#
        ),
        "suspended" if approver(document) == Some("human") => format!(
            r#"A person must decide; tell them, then wait with run_status {{"run":{run},"after":{head},"wait_s":25}}."#
        ),
        "suspended" => format!(
            r#"Go on with resume {{"run":{run},"inputs":{{…}}}}, giving the decision or the answer that it waits for."#
        ),
        "done" => format!(r#"Nothing more to do; run_logs {{"run":{run}}} reads what it did."#),
        "halt" => format!(r#"Find out why with run_logs {{"run":{run},"tail":40}}."#),
        "interrupted" => format!(r#"Go on from its last checkpoint with resume {{"run":{run}}}."#),
        _ => format!(r#"It is over; run_logs {{"run":{run}}} reads what it did."#),
    }
}

fn approver(document: &Map<String, Value>) -> Option<&str> {
    document.get("approval")?.get("by")?.as_str()
}

/// The rows of `list_runs`.
pub(super) fn table(runs: &[Value], before: Option<&str>) -> String {
    if runs.is_empty() {
        return "No runs. Start one with `run`; `list_playbooks` shows what there is.".to_owned();
    }
    let mut text = String::new();
    for run in runs {
        let field = |key: &str| run.get(key).filter(|value| !value.is_null()).map(words);
        let mut line = field("run").unwrap_or_default();
        for key in ["playbook", "status", "state", "error", "started_at", "elapsed_ms", "head"] {
            if let Some(value) = field(key) {
                let _ = write!(line, "  {key}={value}");
            }
        }
        let _ = writeln!(text, "{line}");
    }
    match before {
        Some(before) => {
            let _ = write!(text, "more: call again with {}", json!({ "before": before }));
        }
        None => text.push_str("end of list"),
    }
    text
}
