//! Tools that ask a person, by replay.

use rmcp::{
    ErrorData,
    model::{CallToolRequestParams, CallToolResponse, Tool},
};
use serde_json::json;
use taffrail_progress::{Elicitor as _, Reply};

use super::{plain, text, unknown};
use crate::{
    asks::{self, question, word},
    server::{Context, Fixture},
};

const ONE: &str = "test_input_required_result_elicitation";
const STATE: &str = "test_input_required_result_request_state";
const TAMPERED: &str = "test_input_required_result_tampered_state";
const ROUNDS: &str = "test_input_required_result_multi_round";
const STREAMING: &str = "test_streaming_elicitation";

pub(super) fn list() -> Vec<Tool> {
    vec![
        plain(ONE, "Asks for a name"),
        plain(STATE, "Asks for a confirmation"),
        plain(TAMPERED, "Asks for a confirmation whose state is then tampered with"),
        plain(ROUNDS, "Asks twice, one after the other"),
        plain(STREAMING, "Asks while its answer is a stream"),
    ]
}

pub(super) async fn call(
    fixture: &Fixture,
    request: CallToolRequestParams,
    cx: Context,
) -> Result<CallToolResponse, ErrorData> {
    let name = || json!({ "name": { "type": "string" } });
    match &*request.name {
        ONE | STREAMING => {
            asks::tool(fixture, request, cx, &["user_name"], |cx, _| async move {
                Ok(text(match cx.elicit(question("What is your name?", name())).await {
                    Reply::Accepted(answer) => format!("Hello, {}!", word(&answer, "name")),
                    _ => "Hello, whoever you are!".to_owned(),
                }))
            })
            .await
        }
        STATE | TAMPERED => {
            asks::tool(fixture, request, cx, &["confirm"], |cx, _| async move {
                let confirm = question("Please confirm", json!({ "ok": { "type": "boolean" } }));
                Ok(text(match cx.elicit(confirm).await {
                    Reply::Accepted(_) => "state-ok",
                    _ => "not confirmed",
                }))
            })
            .await
        }
        ROUNDS => {
            asks::tool(fixture, request, cx, &["step1", "step2"], |cx, _| async move {
                let Reply::Accepted(first) = cx.elicit(question("Step 1: What is your name?", name())).await else {
                    return Ok(text("no name"));
                };
                let color = question("Step 2: What is your favorite color?", json!({ "color": { "type": "string" } }));
                let Reply::Accepted(second) = cx.elicit(color).await else { return Ok(text("no color")) };
                Ok(text(format!("{} likes {}", word(&first, "name"), word(&second, "color"))))
            })
            .await
        }
        name => Err(unknown(name)),
    }
}
