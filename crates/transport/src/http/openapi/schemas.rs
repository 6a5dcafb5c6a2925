//! The shapes, from the types themselves.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};
use taffrail_mcp_core::{gap_schema, page_schema, record_schema, snapshot_schema};

use crate::http::{
    api::wire::{ApproveBody, CancelBody, ResumeBody, RunList, StartBody},
    code::Code,
    ingest::wire::IngestAnswer,
    login::LoginBody,
};

/// Where components are.
const PREFIX: &str = "#/components/schemas/";

/// A reference to one of them.
pub(super) fn reference(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// All components.
pub(super) fn all() -> Value {
    let mut accepted = snapshot_schema();
    if let Some(object) = accepted.as_object_mut() {
        if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
            let url = json!({ "type": "string", "description": "Where to ask for the snapshot again." });
            properties.insert("status_url".to_owned(), url);
        }
        if let Some(required) = object.get_mut("required").and_then(Value::as_array_mut) {
            required.push("status_url".into());
        }
    }
    let mut list = of::<RunList>();
    if let Some(items) = list.pointer_mut("/properties/runs/items") {
        *items = json!({ "$ref": reference("Snapshot") });
    }
    let schemas = [
        ("Record", record_schema()),
        ("Gap", gap_schema()),
        ("Page", page_schema()),
        ("Snapshot", snapshot_schema()),
        ("Started", accepted),
        ("RunList", list),
        ("StartBody", of::<StartBody>()),
        ("ApproveBody", of::<ApproveBody>()),
        ("ResumeBody", of::<ResumeBody>()),
        ("CancelBody", of::<CancelBody>()),
        ("Ingested", of::<IngestAnswer>()),
        ("LoginBody", of::<LoginBody>()),
        ("Message", json!({ "type": "object", "description": "A JSON-RPC message of the protocol." })),
        ("Problem", problem()),
        ("Health", health()),
    ];
    schemas.into_iter().map(|(name, schema)| (name.to_owned(), component(schema))).collect::<Map<_, _>>().into()
}

/// Problem details (RFC 9457).
fn problem() -> Value {
    let codes: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    json!({
        "type": "object",
        "description": "A mistake. Further fields say more, depending on the code: `parameter`, `head`, `expected` …",
        "required": ["type", "title", "status", "detail", "code"],
        "properties": {
            "type": { "type": "string", "format": "uri" },
            "title": { "type": "string", "description": "The same for every problem with this code." },
            "status": { "type": "integer" },
            "detail": { "type": "string", "description": "What is wrong with what, and what to do." },
            "code": { "type": "string", "examples": codes, "description": "Stable; there may be more." },
        },
    })
}

fn health() -> Value {
    json!({
        "type": "object",
        "required": ["status"],
        "properties": {
            "status": { "const": "ok" },
            "checks": { "type": "object", "additionalProperties": { "type": "string" } },
        },
    })
}

/// The schema of a type of ours.
fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// A schema as a component: its name is the key, and what was a file of its own is a component, too.
fn component(mut schema: Value) -> Value {
    if let Some(object) = schema.as_object_mut() {
        object.remove("$schema");
        object.remove("title");
    }
    tidy(&mut schema);
    schema
}

fn tidy(value: &mut Value) {
    match value {
        Value::Object(object) => {
            // Formats of numbers that JSON Schema does not know.
            if object.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uint")) {
                object.remove("format");
            }
            if let Some(Value::String(text)) = object.get_mut("$ref") {
                match text.as_str() {
                    "record.json" => *text = reference("Record"),
                    "gap.json" => *text = reference("Gap"),
                    _ => {}
                }
            }
            object.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}
