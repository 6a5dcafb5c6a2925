//! Answers against the schemas of their questions.
//!
//! The schemas of MCP elicitation are few: an object of strings, numbers, booleans and choices, none of them nested. That
//! is what is checked here; a keyword that is not among theirs is not.

use serde_json::{Map, Value};

/// Says what is wrong with `answer`, if anything.
pub(crate) fn check(answer: &Map<String, Value>, schema: &Map<String, Value>) -> Result<(), String> {
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !answer.contains_key(name) {
            return Err(format!("`{name}` is missing"));
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, value) in answer {
        match properties.and_then(|properties| properties.get(name)).and_then(Value::as_object) {
            Some(property) => one(value, property).map_err(|what| format!("`{name}` {what}"))?,
            None if schema.get("additionalProperties") == Some(&Value::Bool(false)) => {
                return Err(format!("`{name}` was not asked for"));
            }
            None => {}
        }
    }
    Ok(())
}

fn one(value: &Value, schema: &Map<String, Value>) -> Result<(), String> {
    let kind = schema.get("type").and_then(Value::as_str);
    let fits = match kind {
        Some("string") => value.is_string(),
        Some("number") => value.is_number(),
        Some("integer") => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        _ => true,
    };
    if !fits {
        return Err(format!("is not of type {}", kind.unwrap_or_default()));
    }
    if let Some(choices) = choices(schema)
        && !choices.contains(&value)
    {
        return Err("is none of the choices".to_owned());
    }
    let bounds = |least: &str, most: &str, size: f64, what: &str| {
        let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
        match (bound(least), bound(most)) {
            (Some(least), _) if size < least => Err(format!("{what} less than {least}")),
            (_, Some(most)) if size > most => Err(format!("{what} more than {most}")),
            _ => Ok(()),
        }
    };
    match value {
        Value::String(text) => bounds("minLength", "maxLength", text.chars().count() as f64, "has a length of"),
        Value::Number(number) => bounds("minimum", "maximum", number.as_f64().unwrap_or(f64::NAN), "is"),
        Value::Array(items) => {
            bounds("minItems", "maxItems", items.len() as f64, "has a number of choices")?;
            match schema.get("items").and_then(Value::as_object) {
                Some(schema) => items.iter().try_for_each(|item| one(item, schema)),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// `enum`, or the constants of `oneOf` or `anyOf`.
fn choices(schema: &Map<String, Value>) -> Option<Vec<&Value>> {
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        return Some(choices.iter().collect());
    }
    let titled = schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array)?;
    titled.iter().map(|choice| choice.get("const")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_one(property: Value, good: &[Value], bad: &[(Value, &str)]) {
        let schema = json!({"type": "object", "properties": {"x": property}, "required": ["x"]});
        let try_one = |value: &Value| {
            check(json!({"x": value}).as_object().unwrap(), schema.as_object().unwrap())
                .map_err(|what| what[4..].to_owned())
        };
        for value in good {
            assert_eq!(try_one(value), Ok(()), "{value}");
        }
        for (value, what) in bad {
            assert_eq!(try_one(value), Err((*what).to_owned()), "{value}");
        }
    }

    #[test]
    fn strings() {
        check_one(
            json!({"type": "string", "minLength": 2, "maxLength": 3}),
            &[json!("äö"), json!("äöü")],
            &[
                (json!("ä"), "has a length of less than 2"),
                (json!("äöüß"), "has a length of more than 3"),
                (json!(1), "is not of type string"),
            ],
        );
    }

    #[test]
    fn numbers() {
        check_one(
            json!({"type": "integer", "minimum": 0, "maximum": 9}),
            &[json!(0), json!(9), json!(3.0)],
            &[
                (json!(-1), "is less than 0"),
                (json!(10), "is more than 9"),
                (json!(1.5), "is not of type integer"),
                (json!("1"), "is not of type integer"),
            ],
        );
        check_one(json!({"type": "number"}), &[json!(1.5)], &[(json!(null), "is not of type number")]);
        check_one(json!({"type": "boolean"}), &[json!(true)], &[(json!("true"), "is not of type boolean")]);
    }

    #[test]
    fn choices_of_every_form() {
        let titled = json!([{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]);
        let none = "is none of the choices";
        check_one(json!({"type": "string", "enum": ["a", "b"]}), &[json!("a")], &[(json!("c"), none)]);
        check_one(json!({"type": "string", "oneOf": titled}), &[json!("b")], &[(json!("c"), none)]);
        for items in [json!({"type": "string", "enum": ["a", "b"]}), json!({"anyOf": titled})] {
            check_one(
                json!({"type": "array", "items": items, "maxItems": 2}),
                &[json!([]), json!(["a", "b"])],
                &[
                    (json!(["a", "c"]), none),
                    (json!(["a", "b", "a"]), "has a number of choices more than 2"),
                    (json!("a"), "is not of type array"),
                ],
            );
        }
    }

    #[test]
    fn members() {
        let schema = json!({"properties": {"x": {"type": "string"}}, "required": ["x"], "additionalProperties": false});
        let try_one = |answer: Value| check(answer.as_object().unwrap(), schema.as_object().unwrap());
        assert_eq!(try_one(json!({})), Err("`x` is missing".to_owned()));
        assert_eq!(try_one(json!({"x": "", "y": 1})), Err("`y` was not asked for".to_owned()));
        assert_eq!(check(json!({"y": 1}).as_object().unwrap(), &Map::new()), Ok(()));
    }
}
