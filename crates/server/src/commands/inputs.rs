//! `-i key=value` as values.

use serde_json::{Map, Value};
use taffrail_engine::playbook::{InputSpec, parse_cli_input};

use super::Usage;

/// Reads inputs by the types that a playbook declares. Unknown names are kept as text: the service knows what to say.
pub(crate) fn by_spec(specs: &[InputSpec], given: &[(String, String)]) -> Result<Map<String, Value>, Usage> {
    let mut inputs = Map::new();
    for (key, text) in given {
        let value = match specs.iter().find(|spec| spec.name == *key) {
            Some(spec) => parse_cli_input(spec, text).map_err(|error| Usage(error.to_string()))?,
            None => Value::from(text.as_str()),
        };
        if inputs.insert(key.clone(), value).is_some() {
            return Err(Usage(format!("input {key} is given twice")));
        }
    }
    Ok(inputs)
}

/// Reads an answer by the JSON Schema of its question: text stays text where a string is wanted, else it is JSON.
pub(crate) fn by_schema(schema: Option<&Value>, given: &[(String, String)]) -> Map<String, Value> {
    let wants_text = |key: &str| {
        let property = schema.and_then(|schema| schema.get("properties")).and_then(|all| all.get(key));
        property.and_then(|property| property.get("type")).is_none_or(|kind| kind == "string")
    };
    let value = |key: &str, text: &str| match wants_text(key) {
        true => Value::from(text),
        false => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
    };
    given.iter().map(|(key, text)| (key.clone(), value(key, text))).collect()
}
