//! JSON Schema of the wire shapes, made from the types.

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, transform::Transform};
use serde_json::{Value, json};

use crate::{Event, Gap, PageMeta, RunId, Snapshot, ThreadId, Timestamp, WIRE_VERSION};

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true).into_generator()
}

/// Removes `format: uint64` and the like: JSON Schema does not define them, and TypeScript clients warn.
fn strip_number_formats(schema: &mut Schema) {
    if let Some(format) = schema.get("format").and_then(Value::as_str)
        && (format.starts_with("uint") || format.starts_with("int") || matches!(format, "double" | "float"))
    {
        schema.remove("format");
    }
    schemars::transform::transform_subschemas(&mut strip_number_formats, schema);
}

/// Turns the words of doc comments into plain ones: lines of a paragraph joined, links as names.
fn plain_descriptions(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        let paragraphs = text.split("\n\n").map(|paragraph| paragraph.replace('\n', " "));
        *text =
            paragraphs.collect::<Vec<_>>().join("\n\n").replace("[`crate::", "`").replace("[`", "`").replace("`]", "`");
    }
    schemars::transform::transform_subschemas(&mut plain_descriptions, schema);
}

fn schema_of<T: JsonSchema>() -> Value {
    let mut schema = generator().into_root_schema_for::<T>();
    strip_number_formats.transform(&mut schema);
    plain_descriptions.transform(&mut schema);
    schema.to_value()
}

/// JSON Schema of a record: the common fields, and one alternative for each known type, one for the unknown.
pub fn record_schema() -> Value {
    let mut events = schema_of::<Event>();
    // An enum with an untagged variant becomes `anyOf`; here each record has exactly one type.
    let known = events.get_mut("anyOf").map(Value::take).unwrap_or_default();
    let mut alternatives = known.as_array().cloned().unwrap_or_default();
    alternatives.push(json!({
        "type": "object",
        "description": "A type this version does not know: pass it on unchanged.",
        "required": ["type"],
        "properties": { "type": { "type": "string", "not": { "enum": Event::KINDS } } },
    }));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Taffrail record",
        "description": format!("One line of a run's log; version {WIRE_VERSION} of the encoding."),
        "type": "object",
        "required": ["seq", "thread", "run", "ts", "type"],
        "properties": {
            "seq": { "type": "integer", "minimum": 1, "description": "Position in the thread's log; dense." },
            "thread": property::<ThreadId>("The log."),
            "run": property::<RunId>("The run that wrote it."),
            "ts": property::<Timestamp>("When it was accepted: RFC 3339, UTC, microseconds, `Z`."),
            "type": { "type": "string", "description": "What happened; kebab-case." },
        },
        "oneOf": alternatives,
    })
}

fn property<T: JsonSchema>(description: &str) -> Value {
    let mut schema = schema_of::<T>();
    if let Some(object) = schema.as_object_mut() {
        object.insert("description".to_owned(), json!(description));
        object.remove("$schema");
        object.remove("title");
    }
    schema
}

/// JSON Schema of a run snapshot.
pub fn snapshot_schema() -> Value {
    schema_of::<Snapshot>()
}

/// JSON Schema of a page: its records, gaps among them, and what it says about itself.
pub fn page_schema() -> Value {
    let mut page = schema_of::<PageMeta>();
    let records = json!({
        "type": "array",
        "description": "In order of their position.",
        "items": { "anyOf": [{ "$ref": "record.json" }, { "$ref": "gap.json" }] },
    });
    if let Some(properties) = page.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("records".to_owned(), records);
    }
    if let Some(required) = page.get_mut("required").and_then(Value::as_array_mut) {
        required.push(json!("records"));
    }
    page
}

/// JSON Schema of a gap.
pub fn gap_schema() -> Value {
    schema_of::<Gap>()
}
