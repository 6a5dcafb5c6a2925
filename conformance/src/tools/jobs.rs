//! Tools that are tasks where the client speaks of tasks. Those that need it refuse other clients.

use rmcp::{
    ErrorData,
    model::{CallToolRequestParams, CallToolResponse, ClientCapabilities, JsonObject, Tool},
};
use serde_json::json;
use taffrail_progress::{Elicitor as _, Reply};
use taffrail_transport::mcp::tasks;

use super::{plain, text, tool, unknown};
use crate::{
    asks::{self, question, word},
    server::{Context, Fixture},
};

const SLOW: &str = "slow_compute";
const FAILING: &str = "failing_job";
const ABANDONED: &str = "protocol_error_job";
const CONFIRM: &str = "confirm_delete";
const TWO: &str = "multi_input";
const ASK_FIRST: &str = "test_tool_with_task";

pub(super) fn list() -> Vec<Tool> {
    let slow = json!({ "seconds": { "type": "number" }, "label": { "type": "string" } });
    vec![
        tool(SLOW, "Takes some seconds", slow, &[]),
        plain(FAILING, "Runs, and fails"),
        plain(ABANDONED, "Is given to a worker who is never heard of again"),
        tool(CONFIRM, "Asks before it deletes", json!({ "filename": { "type": "string" } }), &[]),
        plain(TWO, "Asks two things at once"),
        plain(ASK_FIRST, "Asks for a name, and then takes some time"),
    ]
}

pub(super) async fn call(
    fixture: &Fixture,
    request: CallToolRequestParams,
    cx: Context,
) -> Result<CallToolResponse, ErrorData> {
    let jobs = &fixture.jobs;
    let arguments = request.arguments.clone().unwrap_or_default();
    let run = match &*request.name {
        SLOW if !tasks::declared(&cx) => {
            let run = jobs.start("slow-compute", arguments).await?;
            return Ok(jobs.result(&run).await?.into());
        }
        _ if !tasks::declared(&cx) => return Err(no_tasks()),
        SLOW => jobs.start("slow-compute", arguments).await?,
        FAILING => jobs.start("failing-job", JsonObject::new()).await?,
        ABANDONED => jobs.start_abandoned().await?,
        CONFIRM => jobs.start("confirm-delete", arguments).await?,
        TWO => {
            let first = jobs.start("confirm-delete", file("first.txt")).await?;
            jobs.join(&first, jobs.start("confirm-delete", file("second.txt")).await?);
            first
        }
        ASK_FIRST => return ask_first(fixture, request, cx).await,
        name => return Err(unknown(name)),
    };
    Ok(jobs.created(&run, &cx).await?.into())
}

/// The question comes before the task: what it asks is in the call's own answer.
async fn ask_first(
    fixture: &Fixture,
    request: CallToolRequestParams,
    cx: Context,
) -> Result<CallToolResponse, ErrorData> {
    let context = cx.clone();
    asks::tool(fixture, request, cx, &["user_name"], |cx, _| async move {
        let name = question("What is your name?", json!({ "name": { "type": "string" } }));
        let Reply::Accepted(answer) = cx.elicit(name).await else { return Ok(text("nobody to greet").into()) };
        let inputs = JsonObject::from_iter([("name".to_owned(), word(&answer, "name").into())]);
        let run = fixture.jobs.start("greet", inputs).await?;
        fixture.jobs.created(&run, &context).await.map(CallToolResponse::from)
    })
    .await
}

fn file(name: &str) -> JsonObject {
    JsonObject::from_iter([("filename".to_owned(), name.into())])
}

fn no_tasks() -> ErrorData {
    ErrorData::missing_required_client_capability(ClientCapabilities::builder().enable_tasks().build())
}
