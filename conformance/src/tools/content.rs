//! Tools whose result is a fixed content of some kind.

use rmcp::{
    ErrorData,
    model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ResourceContents, Tool},
};
use serde_json::json;

use super::{argument, plain, tool, unknown};
use crate::picture::{PNG, PNG_TYPE, WAV, WAV_TYPE};

const SIMPLE: &str = "test_simple_text";
const IMAGE: &str = "test_image_content";
const AUDIO: &str = "test_audio_content";
const RESOURCE: &str = "test_embedded_resource";
const MIXED: &str = "test_multiple_content_types";
const ERROR: &str = "test_error_handling";
const GREET: &str = "greet";

pub(super) fn list() -> Vec<Tool> {
    vec![
        plain(SIMPLE, "Returns a text"),
        plain(IMAGE, "Returns a picture"),
        plain(AUDIO, "Returns a sound"),
        plain(RESOURCE, "Returns an embedded resource"),
        plain(MIXED, "Returns a text, a picture and a resource"),
        plain(ERROR, "Always fails"),
        tool(GREET, "Greets somebody", json!({ "name": { "type": "string" } }), &["name"]),
    ]
}

pub(super) fn call(request: &CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
    let image = || ContentBlock::image(PNG, PNG_TYPE);
    let content = match &*request.name {
        SIMPLE => vec![ContentBlock::text("This is a simple text response for testing.")],
        IMAGE => vec![image()],
        AUDIO => vec![ContentBlock::audio(WAV, WAV_TYPE)],
        RESOURCE => {
            let text = "This is an embedded resource content.";
            vec![ContentBlock::resource(ResourceContents::text(text, "test://embedded-resource"))]
        }
        MIXED => {
            let data = json!({ "test": "data", "value": 123 }).to_string();
            let resource = ResourceContents::text(data, "test://mixed-content-resource");
            vec![
                ContentBlock::text("Multiple content types test:"),
                image(),
                ContentBlock::resource(resource.with_mime_type("application/json")),
            ]
        }
        ERROR => {
            let why = ContentBlock::text("This tool intentionally returns an error for testing");
            return Ok(CallToolResult::error(vec![why]).into());
        }
        GREET => {
            let name = argument(request.arguments.as_ref(), "name");
            vec![ContentBlock::text(format!("Hello, {name}!"))]
        }
        name => return Err(unknown(name)),
    };
    Ok(CallToolResult::success(content).into())
}
