//! `completion/complete`: ids of runs and names of playbooks, from what was typed so far.

use rmcp::{
    ErrorData,
    model::{CompleteRequestParams, CompleteResult, CompletionInfo, Reference},
};
use serde_json::Value;

use super::{
    answer::{failed, invalid, shown},
    backend::{Backend, ListRuns, RunList},
    prompts::{self, Of},
    resources,
};

/// Runs that are read at a time, and most that are looked at: older ones are found by `list_runs`.
const PAGE_RUNS: u32 = 200;
const MOST_RUNS: usize = 1000;

/// What begins with what was typed: at most 100 values, and how many there are.
///
/// # Errors
///
/// -32602 for something that has no such argument.
pub(super) async fn complete(
    backend: &dyn Backend,
    request: CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let CompleteRequestParams { r#ref, argument, .. } = request;
    let typed = argument.value.as_str();
    let completion = match kind(&r#ref, &argument.name)? {
        Of::Run => runs(backend, typed).await?,
        Of::Playbook => playbooks(backend, typed).await?,
        Of::Cursor => some(Vec::new(), true),
    };
    Ok(CompleteResult::new(completion))
}

/// What an argument names.
fn kind(reference: &Reference, argument: &str) -> Result<Of, ErrorData> {
    let argument = shown(argument);
    match reference {
        Reference::Prompt(prompt) => {
            let definition = prompts::named(&prompt.name)?;
            let named = definition.arguments.iter().find(|it| it.name == argument);
            named.map(|it| it.of).ok_or_else(|| {
                let name = definition.name;
                invalid(format!("prompt {name} has no argument {argument:?}; {}", prompts::takes(definition)))
            })
        }
        Reference::Resource(template) if template.uri == resources::TEMPLATE => match argument {
            "run" => Ok(Of::Run),
            _ => Err(invalid(format!("{} has no argument {argument:?}; it takes `run`", resources::TEMPLATE))),
        },
        Reference::Resource(template) => {
            let uri = shown(&template.uri);
            Err(invalid(format!("no resource template {uri:?}; there is {}", resources::TEMPLATE)))
        }
        _ => Err(invalid("unknown kind of reference; there are ref/prompt and ref/resource")),
    }
}

/// Ids of runs, the newest first.
async fn runs(backend: &dyn Backend, typed: &str) -> Result<CompletionInfo, ErrorData> {
    let mut found = Vec::new();
    let mut looked_at = 0;
    let mut before = None;
    loop {
        let query = ListRuns { limit: PAGE_RUNS, before, ..ListRuns::default() };
        let RunList { runs, before: next } = backend.list_runs(query).await.map_err(failed)?;
        looked_at += runs.len();
        let ids = runs.iter().filter_map(|run| run.get("run").and_then(Value::as_str));
        found.extend(ids.filter(|id| id.starts_with(typed)).map(str::to_owned));
        if next.is_none() || looked_at >= MOST_RUNS {
            return Ok(some(found, next.is_none()));
        }
        before = next;
    }
}

/// Names of playbooks, in order.
async fn playbooks(backend: &dyn Backend, typed: &str) -> Result<CompletionInfo, ErrorData> {
    let playbooks = backend.list_playbooks(None).await.map_err(failed)?;
    let names = playbooks.iter().filter_map(|playbook| playbook.get("name").and_then(Value::as_str));
    let mut names: Vec<_> = names.filter(|name| name.starts_with(typed)).map(str::to_owned).collect();
    names.sort();
    Ok(some(names, true))
}

/// The first of `found`. `all`: there are no others that were not looked at, so that their number is known.
fn some(mut found: Vec<String>, all: bool) -> CompletionInfo {
    let count = found.len();
    found.truncate(CompletionInfo::MAX_VALUES);
    let mut completion = CompletionInfo::default();
    completion.total = all.then(|| u32::try_from(count).unwrap_or(u32::MAX));
    completion.has_more = Some(!all || count > found.len());
    completion.values = found;
    completion
}
