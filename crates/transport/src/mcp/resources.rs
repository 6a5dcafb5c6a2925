//! Runs as resources: `taffrail://runs/{run}` holds a run's snapshot.

use std::time::Duration;

use rmcp::{
    ErrorData,
    model::{ListResourcesResult, ReadResourceResult, Resource, ResourceContents, ResourceTemplate},
};
use serde_json::{Value, json};
use taffrail_mcp_core::RunId;

use super::{
    answer::{failed, invalid, shown},
    backend::{Backend, BackendErrorKind, ListRuns, RunList},
    snapshot,
};

/// The template of a run's URI.
pub(super) const TEMPLATE: &str = "taffrail://runs/{run}";
const PREFIX: &str = "taffrail://runs/";
const JSON: &str = "application/json";

/// Runs of one page of the list. Hosts show lists of resources in menus; one has some 400 bytes.
const PAGE_RUNS: u32 = 50;
/// What a cursor begins with; the last run of the page before follows. Another order or meaning takes another one.
const CURSOR: &str = "runs-before:";

/// A list of runs is as good as new for so long.
pub(super) const LIST_FRESH: Duration = Duration::from_secs(1);
/// The end of a run stays as it is; only retention may take it away.
const ENDED_FRESH: Duration = Duration::from_secs(60);

/// The URI of a run.
pub(super) fn uri(run: &str) -> String {
    format!("{PREFIX}{run}")
}

/// The run that a URI names, if it has the form of ours.
pub(super) fn run_of(uri: &str) -> Option<RunId> {
    RunId::new(uri.strip_prefix(PREFIX)?).ok()
}

/// The answer to a URI that is none of ours.
pub(super) fn no_such(uri: &str) -> ErrorData {
    let uri = shown(uri);
    let text =
        format!("no resource {uri:?}; there is {TEMPLATE} for each run, and resources/list shows the recent ones");
    ErrorData::resource_not_found(text, Some(json!({ "uri": uri })))
}

/// What can be read: a template for the URI of any run.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(TEMPLATE, "run")
            .with_title("Run")
            .with_description("Snapshot of a run, as run_status gives it: status, state, cursor, what it waits for.")
            .with_mime_type(JSON),
    ]
}

/// The templates as `resources/templates/list` gives them: a JSON array. For the published contract.
///
/// ```
/// let templates = taffrail_transport::mcp::template_list();
/// assert_eq!(templates[0]["uriTemplate"], "taffrail://runs/{run}");
/// ```
#[must_use]
pub fn template_list() -> Value {
    // Plain data with text for keys, which always has a JSON form.
    serde_json::to_value(templates()).unwrap_or_default()
}

/// A page of the recent runs, newest first.
///
/// # Errors
///
/// -32602 for a cursor that this list did not give, or whose run is gone: what follows it cannot be told any more.
pub(super) async fn list(backend: &dyn Backend, cursor: Option<&str>) -> Result<ListResourcesResult, ErrorData> {
    let before = match cursor {
        None => None,
        Some(cursor) => Some(after_cursor(backend, cursor).await?),
    };
    let query = ListRuns { limit: PAGE_RUNS, before, ..ListRuns::default() };
    let RunList { runs, before } = backend.list_runs(query).await.map_err(failed)?;
    let mut result = ListResourcesResult::with_all_items(runs.iter().filter_map(resource).collect());
    result.next_cursor = before.map(|run| format!("{CURSOR}{run}"));
    Ok(result)
}

async fn after_cursor(backend: &dyn Backend, cursor: &str) -> Result<String, ErrorData> {
    let bad = || {
        let cursor = shown(cursor);
        invalid(format!(
            "bad cursor {cursor:?}; pass a nextCursor as it was given, or none to begin with the newest run"
        ))
    };
    let run = cursor.strip_prefix(CURSOR).and_then(|run| RunId::new(run).ok()).ok_or_else(bad)?;
    match backend.snapshot(run.as_str()).await {
        Ok(_) => Ok(run.to_string()),
        Err(error) if error.kind == BackendErrorKind::NotFound => Err(bad()),
        Err(error) => Err(failed(error)),
    }
}

/// An entry of the list.
fn resource(snapshot: &Value) -> Option<Resource> {
    let text = |key: &str| snapshot.get(key).and_then(Value::as_str);
    let run = text("run")?;
    let playbook = text("playbook").unwrap_or("a playbook");
    let mut description = format!("{playbook}: {}", text("status").unwrap_or("unknown"));
    if let Some(error) = text("error") {
        description.push_str(&format!(" ({error})"));
    }
    if let Some(state) = text("at").or_else(|| text("state")) {
        description.push_str(&format!(" at {state}"));
    }
    if let Some(started) = text("started_at") {
        description.push_str(&format!(", started {started}"));
    }
    let resource = Resource::new(uri(run), run).with_title(format!("Run of {playbook}"));
    Some(resource.with_description(description).with_mime_type(JSON))
}

/// The run that `uri` names, and its snapshot.
///
/// # Errors
///
/// Resource not found, for a URI that is none of ours and for a run that there is not.
pub(super) async fn named(backend: &dyn Backend, uri: &str) -> Result<(RunId, Value), ErrorData> {
    let run = run_of(uri).ok_or_else(|| no_such(uri))?;
    let snapshot = backend.snapshot(run.as_str()).await.map_err(|error| match error.kind {
        BackendErrorKind::NotFound => ErrorData::resource_not_found(error.message, Some(json!({ "uri": uri }))),
        _ => failed(error),
    })?;
    Ok((run, snapshot))
}

/// The resource of the run that `uri` names, and how long it stays true.
///
/// # Errors
///
/// As [`named`].
pub(super) async fn read(
    backend: &dyn Backend,
    shared_fs: bool,
    uri: &str,
) -> Result<(ReadResourceResult, Duration), ErrorData> {
    let (_, snapshot) = named(backend, uri).await?;
    let ended = matches!(snapshot.get("status").and_then(Value::as_str), Some("done" | "halt" | "cancelled"));
    let document = Value::Object(snapshot::document(snapshot, shared_fs));
    let contents = ResourceContents::text(document.to_string(), uri).with_mime_type(JSON);
    // One that goes on may have changed while this was written.
    Ok((ReadResourceResult::new(vec![contents]), if ended { ENDED_FRESH } else { Duration::ZERO }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_of_ours_names_a_run() {
        assert_eq!(run_of(&uri("run-1")).as_ref().map(RunId::as_str), Some("run-1"));
        for other in [
            "",
            "taffrail://runs/",
            "taffrail://runs/{run}",
            "taffrail://runs/a/b",
            "taffrail://runs/a?x",
            "taffrail://runs/..",
            "taffrail://playbooks/a",
            "TAFFRAIL://runs/a",
            "file:///etc/passwd",
        ] {
            assert_eq!(run_of(other), None, "{other}");
        }
    }

    #[test]
    fn an_entry_says_in_a_line_what_became_of_a_run() {
        let check = |snapshot, description: &str| {
            assert_eq!(resource(&snapshot).unwrap().description.as_deref(), Some(description));
        };
        check(
            json!({"run": "r", "playbook": "release", "status": "running", "state": "build", "started_at": "T"}),
            "release: running at build, started T",
        );
        check(
            json!({"run": "r", "playbook": "p", "status": "halt", "error": "gate-failed", "state": "b", "at": "a"}),
            "p: halt (gate-failed) at a",
        );
        assert_eq!(resource(&json!({"playbook": "p"})), None);
    }
}
