//! Prompts, one of which asks first.

use rmcp::{
    ErrorData,
    model::{
        ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult, JsonObject, Prompt, PromptArgument,
        PromptMessage, ResourceContents, Role,
    },
};
use serde_json::{Value, json};
use taffrail_progress::{Elicitor as _, Reply};

use crate::{
    asks::{self, question},
    picture::{PNG, PNG_TYPE},
    server::{Context, Fixture},
};

const SIMPLE: &str = "test_simple_prompt";
pub(crate) const WITH_ARGUMENTS: &str = "test_prompt_with_arguments";
const WITH_RESOURCE: &str = "test_prompt_with_embedded_resource";
const WITH_IMAGE: &str = "test_prompt_with_image";
const ASKING: &str = "test_input_required_result_prompt";
const EXTRA: &str = "test_extra_prompt";

pub(crate) fn list(fixture: &Fixture) -> Vec<Prompt> {
    let prompt = |name: &str, what: &str, arguments: &[(&str, &str)]| {
        let arguments = arguments
            .iter()
            .map(|(name, what)| PromptArgument::new(*name).with_description(*what).with_required(true))
            .collect::<Vec<_>>();
        Prompt::new(name, Some(what), Some(arguments).filter(|arguments| !arguments.is_empty()))
    };
    let mut all = vec![
        prompt(SIMPLE, "A prompt without arguments", &[]),
        prompt(
            WITH_ARGUMENTS,
            "A prompt that holds its arguments",
            &[("arg1", "First test argument"), ("arg2", "Second test argument")],
        ),
        prompt(WITH_RESOURCE, "A prompt that embeds a resource", &[("resourceUri", "URI of the resource to embed")]),
        prompt(WITH_IMAGE, "A prompt with a picture", &[]),
        prompt(ASKING, "A prompt that asks for its context", &[]),
    ];
    if fixture.changes.more_prompts() {
        all.push(prompt(EXTRA, "Is there every other time that the list of prompts changes", &[]));
    }
    all
}

pub(crate) async fn get(
    fixture: &Fixture,
    request: GetPromptRequestParams,
    cx: Context,
) -> Result<GetPromptResponse, ErrorData> {
    let arguments = request.arguments.as_ref();
    let messages = match request.name.as_str() {
        SIMPLE => vec![text("This is a simple prompt for testing.")],
        WITH_ARGUMENTS => {
            let (first, second) = (argument(arguments, "arg1")?, argument(arguments, "arg2")?);
            vec![text(format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))]
        }
        WITH_RESOURCE => {
            let uri = argument(arguments, "resourceUri")?;
            let resource = ResourceContents::text("Embedded resource content for testing.", uri);
            vec![
                PromptMessage::new(Role::User, ContentBlock::resource(resource)),
                text("Please process the embedded resource above."),
            ]
        }
        WITH_IMAGE => vec![
            PromptMessage::new(Role::User, ContentBlock::image(PNG, PNG_TYPE)),
            text("Please analyze the image above."),
        ],
        ASKING => return ask(fixture, request, cx).await,
        EXTRA => vec![text("Here today.")],
        name => return Err(ErrorData::invalid_params(format!("unknown prompt `{name}`"), None)),
    };
    Ok(GetPromptResult::new(messages).into())
}

async fn ask(fixture: &Fixture, request: GetPromptRequestParams, cx: Context) -> Result<GetPromptResponse, ErrorData> {
    asks::prompt(fixture, request, cx, &["user_context"], |cx, _| async move {
        let schema = json!({ "context": { "type": "string" } });
        let words = match cx.elicit(question("What context should the prompt use?", schema)).await {
            Reply::Accepted(answer) => format!("Context: {}", asks::word(&answer, "context")),
            _ => "No context was given.".to_owned(),
        };
        Ok(GetPromptResult::new(vec![text(words)]))
    })
    .await
}

fn text(words: impl Into<String>) -> PromptMessage {
    PromptMessage::new_text(Role::User, words.into())
}

fn argument<'a>(arguments: Option<&'a JsonObject>, name: &str) -> Result<&'a str, ErrorData> {
    let value = arguments.and_then(|arguments| arguments.get(name)).and_then(Value::as_str);
    value.ok_or_else(|| ErrorData::invalid_params(format!("the argument `{name}` is missing, or no string"), None))
}
