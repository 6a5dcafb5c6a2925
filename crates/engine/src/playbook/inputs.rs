//! What a caller gives a run, against what the playbook declares.

use serde_json::{Map, Number, Value};

use super::{
    diagnostic::suggestion,
    model::{InputKind, InputSpec, Playbook},
    parse::fits,
};

/// One input that does not do. Values are left out of the messages: they may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// The playbook has no such input.
    #[error("unknown input `{name}`{}", help.as_ref().map(|help| format!("; {help}")).unwrap_or_default())]
    Unknown {
        /// The name given.
        name: String,
        /// A sentence that leads to a right one.
        help: Option<String>,
    },
    /// It is required and not given.
    #[error("input `{name}` is required: {wanted}")]
    Missing {
        /// The input.
        name: String,
        /// What it has to be.
        wanted: &'static str,
    },
    /// The value has another type.
    #[error("input `{name}` must be {wanted}, not {found}")]
    WrongType {
        /// The input.
        name: String,
        /// What it has to be.
        wanted: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// The value is not among those allowed.
    #[error("input `{name}` must be one of {allowed}")]
    NotAllowed {
        /// The input.
        name: String,
        /// Those allowed, as JSON.
        allowed: String,
    },
}

/// Everything that is wrong with what a caller gave. Never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct InputErrors(Vec<InputError>);

impl InputErrors {
    /// The errors, in the order of the declarations, unknown inputs last.
    pub fn iter(&self) -> std::slice::Iter<'_, InputError> {
        self.0.iter()
    }
}

impl IntoIterator for InputErrors {
    type Item = InputError;
    type IntoIter = std::vec::IntoIter<InputError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a InputErrors {
    type Item = &'a InputError;
    type IntoIter = std::slice::Iter<'a, InputError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// Applies defaults and checks types, allowed values and names.
///
/// A null counts as "not given", because models like to send one for what they leave out. An input that is neither
/// given nor has a default stays absent: null in conditions, an error in templates that use it without `default()`.
///
/// # Errors
/// Everything that is wrong, at once.
pub fn resolve_inputs(playbook: &Playbook, given: &Map<String, Value>) -> Result<Map<String, Value>, InputErrors> {
    let mut resolved = Map::new();
    let mut errors = Vec::new();
    for spec in &playbook.inputs {
        match given.get(&spec.name).filter(|value| !value.is_null()) {
            Some(value) => match check(spec, value) {
                Ok(()) => {
                    resolved.insert(spec.name.clone(), value.clone());
                }
                Err(error) => errors.push(error),
            },
            None => match &spec.default {
                Some(default) => {
                    resolved.insert(spec.name.clone(), default.clone());
                }
                None if spec.required => {
                    errors.push(InputError::Missing { name: spec.name.clone(), wanted: spec.kind.describe() });
                }
                None => {}
            },
        }
    }
    let known: Vec<&str> = playbook.inputs.iter().map(|spec| spec.name.as_str()).collect();
    errors.extend(
        given
            .keys()
            .filter(|name| !known.contains(&name.as_str()))
            .map(|name| InputError::Unknown { name: name.clone(), help: suggestion(name, &known) }),
    );
    if errors.is_empty() { Ok(resolved) } else { Err(InputErrors(errors)) }
}

/// Turns the text of `-i NAME=TEXT` into a value of the input's type. Lists and objects are JSON; a list may also be
/// items of text between commas, `linux,mac`.
///
/// # Errors
/// When the text does not give such a value, or one that is not allowed.
pub fn parse_cli_input(spec: &InputSpec, text: &str) -> Result<Value, InputError> {
    let wrong =
        || InputError::WrongType { name: spec.name.clone(), wanted: spec.kind.describe(), found: "what was given" };
    let json = || serde_json::from_str::<Value>(text).ok();
    let value = match spec.kind {
        InputKind::String => Some(Value::from(text)),
        InputKind::Boolean => text.trim().parse().ok().map(Value::Bool),
        InputKind::Integer => {
            let text = text.trim();
            text.parse::<i64>()
                .map(Number::from)
                .or_else(|_| text.parse::<u64>().map(Number::from))
                .ok()
                .map(Value::Number)
        }
        InputKind::Number => json(),
        InputKind::Object => json(),
        InputKind::Array if text.trim_start().starts_with('[') => json(),
        InputKind::Array if text.trim().is_empty() => Some(Value::Array(Vec::new())),
        InputKind::Array => Some(text.split(',').map(|item| Value::from(item.trim())).collect()),
    };
    let value = value.filter(|value| fits(spec.kind, value)).ok_or_else(wrong)?;
    check(spec, &value).map(|()| value)
}

fn check(spec: &InputSpec, value: &Value) -> Result<(), InputError> {
    if !fits(spec.kind, value) {
        let found = match value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        return Err(InputError::WrongType { name: spec.name.clone(), wanted: spec.kind.describe(), found });
    }
    if !spec.allowed.is_empty() && !spec.allowed.contains(value) {
        let allowed = spec.allowed.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        return Err(InputError::NotAllowed { name: spec.name.clone(), allowed });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::playbook::parse;

    const SOURCE: &str = "
playbook: p
inputs:
  version: { type: string, required: true }
  targets: { type: array, default: [linux] }
  level: { type: integer, enum: [1, 2] }
  rate: { type: number }
  dry: { type: boolean, default: false }
  extra: { type: object }
states: { s: { run: 'true' } }
";

    fn playbook() -> Playbook {
        let parsed = parse(SOURCE, "p.yaml");
        parsed.playbook.unwrap_or_else(|| panic!("{:?}", parsed.diagnostics))
    }

    fn check(given: Value, expected: Result<Value, &str>) {
        let given = given.as_object().cloned().unwrap_or_default();
        match (resolve_inputs(&playbook(), &given), expected) {
            (Ok(resolved), Ok(expected)) => assert_eq!(Value::Object(resolved), expected),
            (Err(errors), Err(expected)) => assert_eq!(errors.to_string(), expected),
            (result, _) => panic!("{given:?}: {result:?}"),
        }
    }

    #[test]
    fn inputs_are_resolved() {
        check(json!({ "version": "1" }), Ok(json!({ "version": "1", "targets": ["linux"], "dry": false })));
        check(
            json!({ "version": "1", "level": 2, "targets": [], "rate": 1, "extra": {}, "dry": null }),
            Ok(json!({ "version": "1", "level": 2, "targets": [], "rate": 1, "extra": {}, "dry": false })),
        );
        check(json!({}), Err("input `version` is required: a string"));
        check(
            json!({ "version": 1, "level": 3, "verison": "x" }),
            Err("input `version` must be a string, not a number; input `level` must be one of 1, 2; \
                 unknown input `verison`; did you mean `version`?"),
        );
        check(json!({ "version": "1", "level": 1.5 }), Err("input `level` must be a whole number, not a number"));
    }

    #[test]
    fn command_line_texts_become_values() {
        let playbook = playbook();
        for (name, text, expected) in [
            ("version", "1.10", Some(json!("1.10"))),
            ("version", "", Some(json!(""))),
            ("targets", "linux, mac", Some(json!(["linux", "mac"]))),
            ("targets", "[1, \"a,b\"]", Some(json!([1, "a,b"]))),
            ("targets", "", Some(json!([]))),
            ("targets", "[1", None),
            ("level", "2", Some(json!(2))),
            ("level", "3", None),
            ("level", "x", None),
            ("rate", "1.5", Some(json!(1.5))),
            ("rate", "\"1\"", None),
            ("dry", "true", Some(json!(true))),
            ("dry", "yes", None),
            ("extra", "{\"a\":1}", Some(json!({ "a": 1 }))),
            ("extra", "[]", None),
        ] {
            let spec = playbook.inputs.iter().find(|spec| spec.name == name).expect("declared");
            assert_eq!(parse_cli_input(spec, text).ok(), expected, "{name}={text}");
        }
    }
}
