//! The schema of an answer: an object with primitive properties, because that is what people can fill in everywhere.

use serde_json::{Map, Value};

use crate::playbook::{
    diagnostic::Report,
    fields,
    yaml::{Node, NodeKind},
};

/// Types a property may have.
const PRIMITIVES: &[&str] = &["string", "integer", "number", "boolean"];

pub(super) fn schema(node: &Node, report: &mut Report) -> Option<Map<String, Value>> {
    let entries = fields::map(node, "`schema`", report)?;
    let Value::Object(schema) = node.to_json() else { return None };
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        report.error_help(
            node.at,
            "`schema` must describe an object",
            "write `{ type: object, properties: { NAME: { type: string } } }`",
        );
        return None;
    }
    let mut good = true;
    let properties = entries.iter().find(|(key, _)| key.text == "properties").map(|(_, node)| node);
    if let Some(node) = properties
        && let NodeKind::Map(properties) = &node.kind
    {
        for (key, node) in properties {
            good &= property(&key.text, node, report);
        }
    }
    good &= required(entries.iter().find(|(key, _)| key.text == "required").map(|(_, node)| &**node), &schema, report);
    // `validator_for` also sees what the meta-schema cannot: references that lead nowhere, bad patterns.
    if let Err(error) = jsonschema::validator_for(&Value::Object(schema.clone())) {
        report.error(node.at, format!("`schema` is not a JSON Schema: {error}"));
        return None;
    }
    good.then_some(schema)
}

fn property(name: &str, node: &Node, report: &mut Report) -> bool {
    let value = node.to_json();
    let kind = value.get("type");
    let primitive = match kind {
        Some(Value::String(kind)) => PRIMITIVES.contains(&kind.as_str()),
        Some(_) => false,
        None => value.get("enum").is_some() || value.get("const").is_some(),
    };
    if !primitive {
        let found = match kind {
            Some(Value::String(kind)) => format!(", not `{kind}`"),
            _ => String::new(),
        };
        report.error_help(
            node.at,
            format!("property `{name}` must be a string, integer, number or boolean{found}"),
            "people answer with one value a field: give the property such a `type`, or an `enum`",
        );
    }
    primitive
}

fn required(node: Option<&Node>, schema: &Map<String, Value>, report: &mut Report) -> bool {
    let Some(NodeKind::List(items)) = node.map(|node| &node.kind) else { return true };
    let known: Vec<&str> = match schema.get("properties") {
        Some(Value::Object(properties)) => properties.keys().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    let mut good = true;
    for item in items {
        if let NodeKind::Scalar { value: Value::String(name), .. } = &item.kind
            && !known.contains(&name.as_str())
        {
            report.unknown(
                item.at,
                format!("required property `{name}` is not described"),
                name,
                known.iter().copied(),
            );
            good = false;
        }
    }
    good
}
