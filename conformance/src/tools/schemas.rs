//! Tools whose input schema is what is looked at.

use rmcp::{
    ErrorData,
    model::{CallToolRequestParams, CallToolResponse, Tool},
};
use serde_json::{Value, json};

use super::{argument, text, tool, unknown, with_schema};

const FULL: &str = "json_schema_2020_12_tool";
const HEADER: &str = "test_custom_header";

pub(super) fn list() -> Vec<Tool> {
    let region = json!({ "region": { "type": "string", "x-mcp-header": "Region" } });
    vec![
        with_schema(FULL, "Tool with JSON Schema 2020-12 features", full()),
        tool(HEADER, "Takes an argument that a header repeats", region, &["region"]),
    ]
}

pub(super) fn call(request: &CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
    match &*request.name {
        FULL => Ok(text("called").into()),
        HEADER => Ok(text(format!("region: {}", argument(request.arguments.as_ref(), "region"))).into()),
        name => Err(unknown(name)),
    }
}

fn full() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}
