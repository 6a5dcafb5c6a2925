//! The schema of an answer as a form that clients show.
//!
//! What a playbook may ask for is JSON Schema; a form of MCP is a flat object of texts, numbers, yes or no, and choices, and
//! clients refuse what else they find in one. So what a form has no place for is left out of it: the answer is checked
//! against the schema itself.

use serde_json::{Map, Value, json};

/// Formats of text that MCP knows.
const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];

/// The form for answers of `schema`; `None` where there is none, because something in it is not flat.
pub(super) fn of(schema: &Map<String, Value>) -> Option<Map<String, Value>> {
    if schema.get("type").is_some_and(|kind| kind != "object") {
        return None;
    }
    let mut form = schema.clone();
    form.insert("type".to_owned(), json!("object"));
    let properties = match schema.get("properties") {
        None => Map::new(),
        Some(properties) => {
            let fields = properties.as_object()?.iter().map(|(name, field)| Some((name.clone(), field_of(field)?)));
            fields.collect::<Option<_>>()?
        }
    };
    form.insert("properties".to_owned(), Value::Object(properties));
    Some(form)
}

fn field_of(field: &Value) -> Option<Value> {
    let mut field = field.as_object()?.clone();
    let choices = field.get("enum").or_else(|| field.get("oneOf")).and_then(Value::as_array);
    let texts = |choices: &Vec<Value>| choices.iter().all(|choice| choice.get("const").unwrap_or(choice).is_string());
    if !field.contains_key("type") && choices.is_some_and(texts) {
        field.insert("type".to_owned(), json!("string"));
    }
    let kind = field.get("type")?.as_str()?.to_owned();
    let fits = match kind.as_str() {
        "string" => {
            field.retain(|key, value| key != "format" || FORMATS.iter().any(|known| value == known));
            whole(&mut field, &["minLength", "maxLength"], 0.0);
            Value::is_string
        }
        "integer" => {
            whole(&mut field, &["minimum", "maximum", "default"], f64::MIN);
            Value::is_i64
        }
        "number" => Value::is_number,
        "boolean" => Value::is_boolean,
        // A choice of several has its choices in its items.
        "array" => {
            return field.get("items")?.get("enum").or(field.get("items")?.get("anyOf")).map(|_| field.clone().into());
        }
        _ => return None,
    };
    if field.get("default").is_some_and(|default| !fits(default)) {
        field.remove("default");
    }
    Some(Value::Object(field))
}

/// Bounds that count things are whole numbers; one that says the same in another way is rewritten, others are left out.
fn whole(field: &mut Map<String, Value>, keys: &[&str], least: f64) {
    /// Up to here a float is the number that was written.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    for key in keys {
        let Some(number) = field.get(*key).and_then(Value::as_f64) else { continue };
        let rounded = if *key == "minimum" { number.ceil() } else { number.floor() };
        let exact = (-EXACT..=EXACT).contains(&rounded) && rounded >= least && (*key != "default" || rounded == number);
        match exact {
            // Within the range that was looked at.
            true => drop(field.insert((*key).to_owned(), json!(rounded as i64))),
            false => drop(field.remove(*key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(field: Value, expected: Option<Value>) {
        let schema = json!({ "type": "object", "properties": { "x": field }, "required": ["x"] });
        let form = of(schema.as_object().unwrap());
        let field = form.map(|form| form["properties"]["x"].clone());
        assert_eq!(field, expected);
    }

    #[test]
    fn what_a_form_knows_stays() {
        for field in [
            json!({ "type": "string", "minLength": 1, "maxLength": 9, "format": "email", "default": "a", "title": "A" }),
            json!({ "type": "integer", "minimum": -3, "maximum": 9, "default": 2 }),
            json!({ "type": "number", "minimum": 0.5, "maximum": 1e30 }),
            json!({ "type": "boolean", "default": true, "description": "d" }),
            json!({ "type": "string", "enum": ["a", "b"] }),
            json!({ "type": "string", "oneOf": [{ "const": "a", "title": "A" }] }),
            json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b"] } }),
        ] {
            check(field.clone(), Some(field));
        }
    }

    #[test]
    fn what_it_does_not_know_is_left_out() {
        check(json!({ "enum": ["a", "b"] }), Some(json!({ "enum": ["a", "b"], "type": "string" })));
        check(
            json!({ "type": "integer", "minimum": 0.5, "maximum": 10.0, "default": 3.0 }),
            Some(json!({ "type": "integer", "minimum": 1, "maximum": 10, "default": 3 })),
        );
        check(json!({ "type": "integer", "maximum": 1e30, "default": "zz" }), Some(json!({ "type": "integer" })));
        check(
            json!({ "type": "string", "maxLength": 2.0, "format": "uuid", "default": 1 }),
            Some(json!({ "type": "string", "maxLength": 2 })),
        );
    }

    #[test]
    fn what_is_not_flat_is_no_form() {
        check(json!({ "type": "object", "properties": {} }), None);
        check(json!({ "type": "array", "items": { "type": "string" } }), None);
        check(json!({ "enum": [1, 2] }), None);
        check(json!({ "type": ["string", "null"] }), None);
        assert_eq!(of(json!({ "type": "string" }).as_object().unwrap()), None);
        let empty = of(json!({ "type": "object" }).as_object().unwrap()).unwrap();
        assert_eq!(empty["properties"], json!({}));
    }
}
