//! Tools that want of a client what only some have: sampling and roots, beside elicitation.
//!
//! `Mrtr` asks people and nothing else. What is asked of the client's model, and for its roots, is put beside that here in
//! the protocol's own types, and needs no state: the answers come with the retry and are used up in it.

use std::collections::BTreeMap;

use rmcp::{
    ErrorData,
    model::{CallToolRequestParams, CallToolResponse, CallToolResult, InputRequest, InputRequiredResult, Tool},
};
use serde_json::{Value, json};
use taffrail_progress::{Elicitor as _, Reply};

use super::{no_sampling, plain, text, unknown};
use crate::{
    asks::{self, question, word},
    server::{Context, Fixture},
};

const MISSING: &str = "test_missing_capability";
const SAMPLING: &str = "test_input_required_result_sampling";
const ROOTS: &str = "test_input_required_result_list_roots";
const MULTIPLE: &str = "test_input_required_result_multiple_inputs";
const DECLARED: &str = "test_input_required_result_capabilities";

pub(super) fn list() -> Vec<Tool> {
    vec![
        plain(MISSING, "Needs a client with sampling"),
        plain(SAMPLING, "Asks the client's model"),
        plain(ROOTS, "Asks for the client's roots"),
        plain(MULTIPLE, "Asks a person, the client's model, and for its roots, at once"),
        plain(DECLARED, "Asks whatever the client can be asked"),
    ]
}

pub(super) async fn call(
    fixture: &Fixture,
    mut request: CallToolRequestParams,
    cx: Context,
) -> Result<CallToolResponse, ErrorData> {
    let capabilities = cx.client_capabilities().unwrap_or_default();
    let (sampling, roots) = (capabilities.sampling.is_some(), capabilities.roots.is_some());
    let responses = request.input_responses.clone().unwrap_or_default();
    match &*request.name {
        MISSING if !sampling => Err(no_sampling()),
        MISSING => Ok(text("the client has sampling").into()),
        SAMPLING if !sampling => Err(no_sampling()),
        SAMPLING => match responses.get("capital_question") {
            Some(answer) => Ok(sampled(answer).into()),
            None => ask([("capital_question", sample("What is the capital of France?", 100)?)]),
        },
        ROOTS => match responses.get("client_roots") {
            Some(answer) => Ok(text(format!("roots: {}", answer["roots"])).into()),
            None => ask([("client_roots", list_roots()?)]),
        },
        DECLARED if sampling => match responses.get("greeting") {
            Some(answer) => Ok(sampled(answer).into()),
            None => ask([("greeting", sample("Generate a greeting", 50)?)]),
        },
        DECLARED => Ok(text("the client can be asked nothing").into()),
        MULTIPLE => {
            let there = |name: &str, wanted: bool| !wanted || responses.contains_key(name);
            let whole = there("greeting", sampling) && there("client_roots", roots);
            if !whole {
                // Begin anew: all three are asked at once.
                (request.request_state, request.input_responses) = (None, None);
            }
            let mut response = asks::tool(fixture, request, cx, &["user_name"], |cx, _| async move {
                let name = question("What is your name?", json!({ "name": { "type": "string" } }));
                let Reply::Accepted(answer) = cx.elicit(name).await else { return Ok(text("nobody")) };
                let (greeting, roots) = (words(responses.get("greeting")), responses.get("client_roots"));
                Ok(text(format!("{}: {greeting} {roots:?}", word(&answer, "name"))))
            })
            .await?;
            if let CallToolResponse::InputRequired(asked) = &mut response {
                let more = asked.input_requests.get_or_insert_default();
                if sampling {
                    more.insert("greeting".to_owned(), sample("Generate a greeting", 50)?);
                }
                if roots {
                    more.insert("client_roots".to_owned(), list_roots()?);
                }
            }
            Ok(response)
        }
        name => Err(unknown(name)),
    }
}

fn ask<const N: usize>(requests: [(&str, InputRequest); N]) -> Result<CallToolResponse, ErrorData> {
    let requests = requests.into_iter().map(|(name, request)| (name.to_owned(), request));
    Ok(InputRequiredResult::new(Some(requests.collect::<BTreeMap<_, _>>()), None).into())
}

fn sample(words: &str, most_tokens: u32) -> Result<InputRequest, ErrorData> {
    let message = json!({ "role": "user", "content": { "type": "text", "text": words } });
    input("sampling/createMessage", json!({ "messages": [message], "maxTokens": most_tokens }))
}

fn list_roots() -> Result<InputRequest, ErrorData> {
    input("roots/list", json!({}))
}

fn input(method: &str, params: Value) -> Result<InputRequest, ErrorData> {
    serde_json::from_value(json!({ "method": method, "params": params }))
        .map_err(|error| ErrorData::internal_error(format!("{method}: {error}"), None))
}

fn sampled(answer: &Value) -> CallToolResult {
    text(format!("LLM response: {}", words(Some(answer))))
}

/// The text of a sampled message.
fn words(answer: Option<&Value>) -> &str {
    answer.and_then(|answer| answer.pointer("/content/text")).and_then(Value::as_str).unwrap_or_default()
}
