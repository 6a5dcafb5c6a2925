//! `list_runs`, `list_playbooks` and `check_playbook`: tables, in words and structured.

use std::fmt::Write as _;

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use super::{
    args::{CheckArgs, ListPlaybooksArgs, ListRunsArgs, Status},
    backend::{Finding, ListRuns, PlaybookRef, PlaybookReport, RunList},
    call::{Call, Failure},
    snapshot,
};

/// Runs of a list when nothing else is asked for; a row has some 150 bytes.
const DEFAULT_RUNS: u32 = 20;
const MAX_RUNS: u32 = 200;

pub(super) async fn list_runs(call: &Call, args: ListRunsArgs) -> Result<CallToolResult, Failure> {
    let query = ListRuns {
        status: args.status.map(Status::as_str).map(str::to_owned),
        thread: args.thread,
        limit: args.limit.unwrap_or(DEFAULT_RUNS).clamp(1, MAX_RUNS),
        before: args.before,
    };
    let further = query.before.clone();
    let RunList { mut runs, before } = call.backend.list_runs(query).await?;
    if !call.shared_fs {
        for run in runs.iter_mut().filter_map(Value::as_object_mut) {
            run.remove("spool");
        }
    }
    let text = match further {
        Some(further) if runs.is_empty() => {
            format!("No runs before {further}: it is the oldest, or there is no such run.")
        }
        _ => snapshot::table(&runs, before.as_deref()),
    };
    let mut document = json!({ "runs": runs });
    if let (Some(object), Some(before)) = (document.as_object_mut(), before) {
        object.insert("before".to_owned(), Value::from(before));
    }
    Ok(both(text, document))
}

pub(super) async fn list_playbooks(call: &Call, args: ListPlaybooksArgs) -> Result<CallToolResult, Failure> {
    let named = args.name.is_some();
    let playbooks = call.backend.list_playbooks(args.name).await?;
    let text = match playbooks.as_slice() {
        [] => "No playbooks. The server's playbooks folder is empty.".to_owned(),
        [one] if named => contract(one),
        some => some.iter().map(row).collect::<Vec<_>>().join("\n"),
    };
    Ok(both(text, json!({ "playbooks": playbooks })))
}

/// One playbook in a line: what to call it, what for, and with what.
fn row(playbook: &Value) -> String {
    let text = |key: &str| playbook.get(key).and_then(Value::as_str);
    let mut row = text("name").unwrap_or_default().to_owned();
    // Writing to a string cannot fail.
    if let Some(Value::Array(inputs)) = playbook.get("inputs").filter(|inputs| **inputs != json!([])) {
        let inputs = inputs.iter().map(|input| {
            let text = |key: &str, default: &'static str| input.get(key).and_then(Value::as_str).unwrap_or(default);
            let required = input.get("required") == Some(&Value::Bool(true));
            format!("{}{}: {}", text("name", "?"), if required { "" } else { "?" }, text("type", "any"))
        });
        let _ = write!(row, " ({})", inputs.collect::<Vec<_>>().join(", "));
    }
    if let Some(description) = text("description") {
        let _ = write!(row, " - {description}");
    }
    row
}

/// All that a playbook promises, a field a line.
pub(super) fn contract(playbook: &Value) -> String {
    let Value::Object(fields) = playbook else {
        return playbook.to_string();
    };
    let mut lines = vec![row(playbook)];
    for (key, value) in fields {
        if !matches!(key.as_str(), "name" | "description") && !value.is_null() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            lines.push(format!("{key}: {value}"));
        }
    }
    lines.join("\n")
}

pub(super) async fn check_playbook(call: &Call, args: CheckArgs) -> Result<CallToolResult, Failure> {
    let playbook = match args {
        CheckArgs { name: Some(name), path: None, source: None } => PlaybookRef::Name(name),
        CheckArgs { name: None, path: Some(path), source: None } if call.shared_fs => PlaybookRef::Path(path),
        CheckArgs { name: None, path: Some(_), source: None } => {
            return Err(Failure::arguments(
                "`path` is of no use here, the server does not share your disk; give `source`",
            ));
        }
        CheckArgs { name: None, path: None, source: Some(source) } => PlaybookRef::Source(source),
        _ => return Err(Failure::arguments("give exactly one of `name`, `path` and `source`")),
    };
    let PlaybookReport { playbook, findings } = call.backend.check_playbook(playbook).await?;
    let (errors, warnings): (Vec<_>, Vec<_>) = findings.iter().partition(|finding| finding.error);
    let ok = errors.is_empty();
    let name = playbook.as_deref().unwrap_or("the playbook");
    let mut text = match (ok, warnings.len()) {
        (true, 0) => format!("{name} is fine."),
        (true, _) => format!("{name} can run, with warnings:"),
        (false, _) => format!("{name} cannot run:"),
    };
    for Finding { error, line, column, message } in &findings {
        let level = if *error { "error" } else { "warning" };
        let _ = match line {
            0 => write!(text, "\n{level}: {message}"),
            _ => write!(text, "\n{level} at {line}:{column}: {message}"),
        };
    }
    let mut document = json!({ "ok": ok, "errors": places(&errors), "warnings": places(&warnings) });
    if let (Some(object), Some(playbook)) = (document.as_object_mut(), playbook) {
        object.insert("playbook".to_owned(), Value::from(playbook));
    }
    Ok(both(text, document))
}

fn places(findings: &[&Finding]) -> Vec<Value> {
    let place = |finding: &&Finding| {
        let Finding { error: _, line, column, message } = finding;
        json!({ "line": line, "column": column, "message": message })
    };
    findings.iter().map(place).collect()
}

fn both(text: String, document: Value) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(document);
    result
}
