//! Tools that revisions with a handshake ask in the middle of a call. Here nobody can be asked then: a stateless server has
//! no way to send a request, so questions are dismissed, and what cannot do without is refused.

use rmcp::{
    ErrorData,
    model::{CallToolRequestParams, CallToolResponse, Tool},
};
use serde_json::{Value, json};
use taffrail_progress::{Elicitor as _, Reply};

use super::{argument, no_sampling, plain, text, tool, unknown};
use crate::{
    asks::{self, question},
    server::{Context, Fixture},
};

const SAMPLING: &str = "test_sampling";
const ELICITATION: &str = "test_elicitation";
const DEFAULTS: &str = "test_elicitation_sep1034_defaults";
const ENUMS: &str = "test_elicitation_sep1330_enums";

pub(super) fn list() -> Vec<Tool> {
    let string = || json!({ "type": "string" });
    vec![
        tool(SAMPLING, "Asks the client's model in the middle of a call", json!({ "prompt": string() }), &["prompt"]),
        tool(ELICITATION, "Asks a person in the middle of a call", json!({ "message": string() }), &["message"]),
        plain(DEFAULTS, "Asks a person, with an answer prepared"),
        plain(ENUMS, "Asks a person to choose"),
    ]
}

pub(super) async fn call(
    fixture: &Fixture,
    request: CallToolRequestParams,
    cx: Context,
) -> Result<CallToolResponse, ErrorData> {
    let (message, properties) = match &*request.name {
        SAMPLING => return Err(no_sampling()),
        ELICITATION => {
            let properties = json!({
                "username": { "type": "string", "description": "User's response" },
                "email": { "type": "string", "description": "User's email address" },
            });
            (argument(request.arguments.as_ref(), "message").to_owned(), properties)
        }
        DEFAULTS => ("Who are you?".to_owned(), defaults()),
        ENUMS => ("Which ones?".to_owned(), enums()),
        name => return Err(unknown(name)),
    };
    asks::tool(fixture, request, cx, &["answer"], |cx, _| async move {
        Ok(text(match cx.elicit(question(&message, properties)).await {
            Reply::Accepted(content) => format!("action=accept, content={}", Value::Object(content)),
            Reply::Declined => "action=decline".to_owned(),
            _ => "action=cancel: nobody was asked".to_owned(),
        }))
    })
    .await
}

fn defaults() -> Value {
    json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    })
}

fn enums() -> Value {
    let choices = |form: &str| {
        json!([
            { "const": "value1", "title": format!("First {form}") },
            { "const": "value2", "title": format!("Second {form}") },
            { "const": "value3", "title": format!("Third {form}") },
        ])
    };
    let options = ["option1", "option2", "option3"];
    json!({
        "untitledSingle": { "type": "string", "enum": options },
        "titledSingle": { "type": "string", "oneOf": choices("Option") },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
        "titledMulti": { "type": "array", "items": { "anyOf": choices("Choice") } },
    })
}
