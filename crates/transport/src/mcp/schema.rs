//! JSON Schemas as MCP hosts want them.

use std::sync::Arc;

use rmcp::model::JsonObject;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Value, json};

/// The schema of a tool's arguments.
pub(super) fn input<T: JsonSchema>() -> Arc<JsonObject> {
    let mut schema = plain::<T>();
    if let Value::Object(object) = &mut schema {
        // The struct's own doc says nothing that the tool does not.
        object.remove("description");
    }
    visit(&mut schema, &mut without_null);
    Arc::new(object(schema))
}

/// The schema of a run snapshot, without its prose: the text block of each result has that. Four tools carry
/// it, and some hosts show it to the model, so it says types and nothing else.
pub(super) fn snapshot() -> Value {
    let mut schema = plain::<taffrail_mcp_core::Snapshot>();
    visit(&mut schema, &mut |object| {
        // A property may be called by one of these names too; that one is an object.
        for key in ["description", "default", "minimum", "pattern"] {
            if object.get(key).is_some_and(|value| !value.is_object()) {
                object.remove(key);
            }
        }
        if let Some(names) = object.get("oneOf").and_then(names) {
            object.remove("oneOf");
            object.insert("enum".to_owned(), names);
            object.insert("type".to_owned(), Value::from("string"));
        }
    });
    schema
}

/// The names that a choice of documented constants comes down to.
fn names(choices: &Value) -> Option<Value> {
    choices.as_array()?.iter().map(|choice| choice.get("const").cloned()).collect()
}

/// A schema that fits into a tool.
pub(super) fn object(schema: Value) -> JsonObject {
    match schema {
        Value::Object(object) => object,
        other => json!({ "allOf": [other] }).as_object().cloned().unwrap_or_default(),
    }
}

/// One self-contained schema: no `$ref`, which some hosts do not follow, no `$schema`, which makes validators
/// of an older draft refuse it, no `title`, and no integer formats, of which TypeScript clients warn.
fn plain<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    visit(&mut schema, &mut |object| {
        for key in ["title", "format"] {
            if object.get(key).is_some_and(Value::is_string) {
                object.remove(key);
            }
        }
    });
    schema
}

/// Makes an optional argument simply optional: hosts that turn schemas into their own model's function
/// format stumble over `null` types. A `null` that is sent all the same is accepted.
fn without_null(object: &mut JsonObject) {
    if object.get("default") == Some(&Value::Null) {
        object.remove("default");
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            object.insert("type".to_owned(), one);
        }
    }
    if let Some(Value::Array(names)) = object.get_mut("enum") {
        names.retain(|name| !name.is_null());
    }
    if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
        choices.retain(|choice| choice != &json!({ "type": "null" }));
        if let [Value::Object(one)] = choices.as_mut_slice() {
            let mut one = std::mem::take(one);
            object.remove("anyOf");
            one.remove("description");
            object.append(&mut one);
        }
    }
}

/// Applies `change` to each object in `value`.
fn visit(value: &mut Value, change: &mut impl FnMut(&mut JsonObject)) {
    match value {
        Value::Object(object) => {
            change(object);
            for value in object.values_mut() {
                visit(value, change);
            }
        }
        Value::Array(items) => {
            for value in items {
                visit(value, change);
            }
        }
        _ => {}
    }
}
