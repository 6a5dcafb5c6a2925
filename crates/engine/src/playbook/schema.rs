//! The JSON Schema of a playbook file, for editors: made from the parser's own tables of keys.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use super::{
    keys::{self, KeyDoc},
    names,
    parse::KINDS,
};

/// The JSON Schema (draft 2020-12) of a playbook.
///
/// It knows the shape: keys, types, names, which keys exclude one another. What needs the whole file (targets, references,
/// conditions, templates) only [`parse`](super::parse) checks.
#[must_use]
pub fn playbook_schema() -> Value {
    let mut schema = object(keys::PLAYBOOK, |key| match key {
        "playbook" => kebab(),
        "inputs" => {
            json!({ "type": "object", "propertyNames": identifier(), "additionalProperties": reference("input") })
        }
        "budget" => reference("budget"),
        "states" => json!({
            "type": "object", "minProperties": 1,
            "propertyNames": { "type": "string", "pattern": anchored(names::STATE), "maxLength": names::MAX_CHARS },
            "additionalProperties": reference("state"),
        }),
        _ => json!({ "type": "string" }),
    });
    let rest = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://taffrail.dev/schema/playbook.json",
        "title": "Taffrail playbook",
        "required": ["playbook", "states"],
        "$defs": {
            "input": input(),
            "budget": object(keys::BUDGET, budget),
            "state": state(),
            "gate": gate(),
        },
    });
    merge(&mut schema, rest);
    schema
}

fn input() -> Value {
    let mut schema = object(keys::INPUT, |key| match key {
        "type" => json!({ "enum": KINDS.iter().map(|(name, _)| *name).collect::<Vec<_>>() }),
        "required" | "secret" => json!({ "type": "boolean" }),
        "default" => json!({}),
        "enum" => json!({ "type": "array", "minItems": 1 }),
        _ => json!({ "type": "string" }),
    });
    let secret_with_default =
        json!({ "required": ["secret", "default"], "properties": { "secret": { "const": true } } });
    merge(&mut schema, json!({ "not": secret_with_default }));
    schema
}

fn budget(key: &str) -> Value {
    match key {
        "steps" => json!({ "type": "integer", "minimum": 1 }),
        "wall" => duration(),
        _ => json!({ "anyOf": [
            { "type": "integer", "minimum": 0 },
            { "type": "string", "pattern": "^[0-9]+ *(B|[KMGT]B|[KMGT]iB)?$" },
        ] }),
    }
}

fn state() -> Value {
    let table: Vec<KeyDoc> = keys::ACTIONS.iter().chain(keys::STATE).copied().collect();
    let mut schema = object(&table, |key| match key {
        "run" => json!({ "type": "string", "minLength": 1, "not": { "pattern": "\\{\\{|\\{%" } }),
        "exec" => json!({ "type": "array", "minItems": 1, "items": scalar() }),
        "call" => kebab(),
        "approve" | "ask" | "cwd" => scalar(),
        "env" => json!({
            "type": "object",
            "propertyNames": { "type": "string", "pattern": anchored(names::IDENTIFIER) },
            "additionalProperties": scalar(),
        }),
        "timeout" => duration(),
        "detach" => json!({ "type": "boolean" }),
        "emit" => json!({ "enum": ["message"] }),
        "parse" => json!({ "enum": ["text", "json"] }),
        "with" => json!({ "type": "object", "propertyNames": identifier() }),
        "by" => json!({ "enum": ["human", "agent"] }),
        "schema" => json!({ "type": "object", "required": ["type"], "properties": { "type": { "const": "object" } } }),
        "over" => json!({ "anyOf": [
            { "type": "array", "minItems": 1 },
            { "type": "string", "pattern": "^\\{\\{.*\\}\\}$" },
        ] }),
        "sample" | "max_parallel" => json!({ "type": "integer", "minimum": 1 }),
        "gates" => json!({ "type": "array", "items": reference("gate") }),
        _ => identifier(),
    });
    let requires = |names: &[&str]| -> Value { names.iter().map(|name| json!({ "required": [name] })).collect() };
    let mut depends: Map<String, Value> =
        keys::BELONGS.iter().map(|(key, kinds)| ((*key).to_owned(), json!({ "anyOf": requires(kinds) }))).collect();
    // Two conditions on one key: the action, and that there are branches at all.
    depends.insert("max_parallel".to_owned(), json!({ "anyOf": requires(&["over", "sample"]) }));
    depends.insert("ask".to_owned(), json!({ "required": ["schema"] }));
    let actions: Vec<&str> = keys::names(keys::ACTIONS).collect();
    merge(
        &mut schema,
        json!({
            "oneOf": requires(&actions),
            "not": { "required": ["over", "sample"] },
            "dependentSchemas": depends,
        }),
    );
    schema
}

fn gate() -> Value {
    let mut schema = object(keys::GATE, |key| match key {
        "when" => json!({ "type": ["string", "boolean"] }),
        "then" => json!({ "enum": ["ok", "fail"] }),
        "repair" => json!({ "type": "integer", "minimum": 1 }),
        "escalate" => json!({ "const": true }),
        _ => scalar(),
    });
    merge(
        &mut schema,
        json!({
            "required": ["when"],
            "oneOf": [{ "required": ["then"] }, { "required": ["repair"] }, { "required": ["escalate"] }],
        }),
    );
    schema
}

/// An object with exactly the keys of a table, each with its description.
fn object(table: &[KeyDoc], shape: impl Fn(&str) -> Value) -> Value {
    let properties: Map<String, Value> = table
        .iter()
        .map(|(name, description)| {
            let mut property = shape(name);
            merge(&mut property, json!({ "description": description }));
            ((*name).to_owned(), property)
        })
        .collect();
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}

/// Text, or a scalar whose text is taken as written.
fn scalar() -> Value {
    json!({ "type": ["string", "number", "boolean"] })
}

fn duration() -> Value {
    json!({ "type": "string", "pattern": "^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$", "minLength": 2 })
}

fn kebab() -> Value {
    json!({ "type": "string", "pattern": anchored(names::KEBAB), "maxLength": names::MAX_CHARS })
}

fn identifier() -> Value {
    json!({ "type": "string", "pattern": anchored(names::IDENTIFIER), "maxLength": names::MAX_CHARS })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

fn anchored(pattern: &str) -> String {
    format!("^{pattern}$")
}
