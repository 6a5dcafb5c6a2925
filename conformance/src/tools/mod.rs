//! Tools, one topic a file.

mod asking;
mod capabilities;
mod content;
mod handshake;
mod jobs;
mod live;
mod schemas;

use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, JsonObject,
        SamplingCapability, Tool,
    },
};
use serde_json::{Value, json};

use crate::server::{Context, Fixture};

/// In the order in which they are listed. The first can be called without arguments: the suite does.
pub(crate) fn list(fixture: &Fixture) -> Vec<Tool> {
    let mut all = content::list();
    all.extend(live::list());
    all.extend(schemas::list());
    all.extend(asking::list());
    all.extend(capabilities::list());
    all.extend(handshake::list());
    all.extend(jobs::list());
    if fixture.changes.more_tools() {
        all.push(plain("test_extra_tool", "Is there every other time that the list of tools changes"));
    }
    all
}

pub(crate) async fn call(
    fixture: &Fixture,
    request: CallToolRequestParams,
    cx: Context,
) -> Result<CallToolResponse, ErrorData> {
    match &*request.name {
        name if has(&content::list(), name) => content::call(&request),
        name if has(&live::list(), name) => live::call(fixture, &request, &cx).await,
        name if has(&schemas::list(), name) => schemas::call(&request),
        name if has(&asking::list(), name) => asking::call(fixture, request, cx).await,
        name if has(&capabilities::list(), name) => capabilities::call(fixture, request, cx).await,
        name if has(&handshake::list(), name) => handshake::call(fixture, request, cx).await,
        name if has(&jobs::list(), name) => jobs::call(fixture, request, cx).await,
        "test_extra_tool" if fixture.changes.more_tools() => Ok(text("Here today.").into()),
        name => Err(unknown(name)),
    }
}

fn has(tools: &[Tool], name: &str) -> bool {
    tools.iter().any(|tool| tool.name == name)
}

fn unknown(name: &str) -> ErrorData {
    ErrorData::invalid_params(format!("unknown tool `{name}`"), None)
}

/// The refusal of a tool that needs a client with sampling.
fn no_sampling() -> ErrorData {
    let mut required = ClientCapabilities::default();
    required.sampling = Some(SamplingCapability::default());
    ErrorData::missing_required_client_capability(required)
}

/// A tool without arguments.
fn plain(name: &'static str, what: &'static str) -> Tool {
    tool(name, what, json!({}), &[])
}

/// A tool with arguments, all but those named optional.
fn tool(name: &'static str, what: &'static str, properties: Value, required: &[&str]) -> Tool {
    with_schema(name, what, json!({ "type": "object", "properties": properties, "required": required }))
}

fn with_schema(name: &'static str, what: &'static str, schema: Value) -> Tool {
    Tool::new(name, what, schema.as_object().cloned().unwrap_or_default())
}

fn text(words: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(words)])
}

/// A string among the arguments; empty when it is not there.
fn argument<'a>(arguments: Option<&'a JsonObject>, name: &str) -> &'a str {
    arguments.and_then(|arguments| arguments.get(name)).and_then(Value::as_str).unwrap_or_default()
}
