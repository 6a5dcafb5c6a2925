//! Tables of fields from JSON Schema.

use serde_json::{Map, Value};

/// `| field | type | meaning |` for the properties of an object schema, in the order of an example.
///
/// A `?` after a name says that the field may be absent.
pub(crate) fn fields(schema: &Value, skip: &[&str], example: &str) -> String {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut names: Vec<_> = properties.keys().filter(|name| !skip.contains(&name.as_str())).collect();
    names.sort_by_key(|name| example.find(&format!("\"{name}\":")).unwrap_or(usize::MAX));
    let mut out = String::from("| field | type | meaning |\n| --- | --- | --- |\n");
    for name in names {
        let property = &properties[name];
        let optional = if required.contains(&name.as_str()) { "" } else { "?" };
        let meaning = property["description"].as_str().unwrap_or_default().replace("\n\n", " ");
        out.push_str(&format!("| `{name}`{optional} | {} | {meaning} |\n", kind(property)));
    }
    out
}

/// A type in words.
fn kind(schema: &Value) -> String {
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(|word| format!("`{}`", text(word))).collect::<Vec<_>>().join(" ");
    }
    if let Some(word) = schema.get("const") {
        return format!("`{}`", text(word));
    }
    for any in ["oneOf", "anyOf"] {
        if let Some(alternatives) = schema[any].as_array() {
            return alternatives.iter().map(kind).collect::<Vec<_>>().join(" or ");
        }
    }
    match &schema["type"] {
        Value::String(name) if name == "object" => object(schema),
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().map(text).collect::<Vec<_>>().join(" or "),
        _ => "any".to_owned(),
    }
}

/// `{"code": integer}`, when it is small; larger ones have a table of their own.
fn object(schema: &Value) -> String {
    match schema["properties"].as_object() {
        Some(properties) if properties.len() == 1 => {
            let inner: Vec<_> = properties.iter().map(|(name, of)| format!("\"{name}\": {}", kind(of))).collect();
            format!("`{{{}}}`", inner.join(", "))
        }
        _ => "object".to_owned(),
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_in_words() {
        for (schema, expected) in [
            (json!({ "type": "integer" }), "integer"),
            (json!({ "type": ["string", "null"] }), "string or null"),
            (json!({ "type": "string", "enum": ["a", "b"] }), "`a` `b`"),
            (json!({ "oneOf": [{ "const": "a" }, { "const": "b" }] }), "`a` or `b`"),
            (json!({ "type": "object", "properties": { "code": { "type": "integer" } } }), "`{\"code\": integer}`"),
            (json!(true), "any"),
        ] {
            assert_eq!(kind(&schema), expected);
        }
    }

    #[test]
    fn rows_follow_the_example() {
        let schema = json!({
            "required": ["b"],
            "properties": { "a": { "type": "string", "description": "A." }, "b": { "type": "integer" }, "type": {} },
        });
        let expected =
            "| field | type | meaning |\n| --- | --- | --- |\n| `b` | integer |  |\n| `a`? | string | A. |\n";
        assert_eq!(fields(&schema, &["type"], "{\"b\":1,\"a\":\"x\"}"), expected);
    }
}
