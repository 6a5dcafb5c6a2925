//! Questions by replay, under the names that the suite looks for.
//!
//! `Mrtr` numbers its questions (`q1`, `q2`, …), and refuses answers that come without the state of their question. The
//! suite knows questions by name, and thinks that a server should rather ask again. So names are put on here, and answers
//! without a state are left out: they answer nothing.

use std::future::Future;

use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CallToolResponse, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
        InputRequiredResult, InputResponses, JsonObject,
    },
};
use serde_json::{Map, Value, json};
use taffrail_progress::{PromptContext, Question, ToolContext};

use crate::server::{Context, Fixture};

/// Runs a tool's handler whose Nth question has the Nth of `names`.
pub(crate) async fn tool<F, T>(
    fixture: &Fixture,
    mut request: CallToolRequestParams,
    cx: Context,
    names: &[&str],
    handler: impl FnOnce(ToolContext, Option<JsonObject>) -> F + Send,
) -> Result<CallToolResponse, ErrorData>
where
    F: Future<Output = Result<T, ErrorData>> + Send,
    CallToolResponse: From<T>,
{
    request.input_responses = numbered(request.input_responses, request.request_state.as_deref(), names);
    let mut response = fixture.mrtr.tool(request, cx, handler).await?;
    if let CallToolResponse::InputRequired(asked) = &mut response {
        name(asked, names);
    }
    Ok(response)
}

/// The same for a prompt.
pub(crate) async fn prompt<F>(
    fixture: &Fixture,
    mut request: GetPromptRequestParams,
    cx: Context,
    names: &[&str],
    handler: impl FnOnce(PromptContext, Option<JsonObject>) -> F + Send,
) -> Result<GetPromptResponse, ErrorData>
where
    F: Future<Output = Result<GetPromptResult, ErrorData>> + Send,
{
    request.input_responses = numbered(request.input_responses, request.request_state.as_deref(), names);
    let mut response = fixture.mrtr.prompt(request, cx, handler).await?;
    if let GetPromptResponse::InputRequired(asked) = &mut response {
        name(asked, names);
    }
    Ok(response)
}

fn key(number: usize) -> String {
    format!("q{}", number + 1)
}

fn numbered(responses: Option<InputResponses>, state: Option<&str>, names: &[&str]) -> Option<InputResponses> {
    let mut responses = responses.filter(|_| state.is_some())?;
    let known = names.iter().enumerate().filter_map(|(number, name)| Some((key(number), responses.remove(*name)?)));
    Some(known.collect())
}

fn name(asked: &mut InputRequiredResult, names: &[&str]) {
    let Some(requests) = &mut asked.input_requests else { return };
    for (number, name) in names.iter().enumerate() {
        if let Some(request) = requests.remove(&key(number)) {
            requests.insert((*name).to_owned(), request);
        }
    }
}

/// A question whose answer is an object of `properties`, all of them required.
pub(crate) fn question(message: &str, properties: Value) -> Question {
    let required: Vec<_> = properties.as_object().into_iter().flat_map(Map::keys).cloned().collect();
    let schema = Map::from_iter([
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), properties),
        ("required".to_owned(), json!(required)),
    ]);
    Question { message: message.to_owned(), schema }
}

/// A word of an answer.
pub(crate) fn word(answer: &Map<String, Value>, name: &str) -> String {
    answer.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}
