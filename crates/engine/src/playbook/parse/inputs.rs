//! `inputs:`.

use serde_json::Value;

use crate::playbook::{
    diagnostic::Report,
    fields::{self, Fields},
    keys,
    model::{InputKind, InputSpec},
    names,
    yaml::{Key, Node, NodeKind},
};

/// The names of the types.
pub(crate) const KINDS: &[(&str, InputKind)] = &[
    ("string", InputKind::String),
    ("integer", InputKind::Integer),
    ("number", InputKind::Number),
    ("boolean", InputKind::Boolean),
    ("array", InputKind::Array),
    ("object", InputKind::Object),
];

pub(super) fn inputs(node: &Node, report: &mut Report) -> Vec<InputSpec> {
    let Some(entries) = fields::map(node, "`inputs`", report) else { return Vec::new() };
    entries.iter().filter_map(|(key, node)| input(key, node, report)).collect()
}

fn input(key: &Key, node: &Node, report: &mut Report) -> Option<InputSpec> {
    let form = "use letters, digits and `_`, not a digit first: `target_dir`";
    fields::name(key.at, &key.text, "an input", names::is_identifier, form, report);
    if let NodeKind::Scalar { text, value } = &node.kind {
        let help = if value.is_null() { "{ type: string }".to_owned() } else { format!("{{ type: {text} }}") };
        let message = format!("input `{}` must be a mapping, not {}", key.text, node.describe());
        report.error_help(node.at, message, format!("write `{}: {help}`", key.text));
        return None;
    }
    let fields = Fields::of(node, "an input", &[keys::INPUT], report)?;
    let kind = match fields.get("type") {
        None => Some(InputKind::String),
        Some(node) => fields::word(node, "`type`", KINDS, report),
    };
    let flag = |name: &str, report: &mut Report| {
        fields.get(name).and_then(|node| fields::boolean(node, &format!("`{name}`"), report)).unwrap_or(false)
    };
    let required = flag("required", report);
    let secret = flag("secret", report);
    let description = fields.get("description").and_then(|node| fields::string(node, "`description`", report));
    // Without a type nothing can be said about the values.
    let kind = kind?;
    let allowed = fields.get("enum").map_or_else(Vec::new, |node| allowed(node, kind, report));
    let default = fields.get("default").and_then(|node| value(node, kind, "the default", report));
    if let Some(node) = fields.get("default").filter(|_| secret) {
        // The text of a playbook is stored with the checkpoints, and the default with it.
        let help = "leave the default out; a secret is given when the run is started";
        report.error_help(node.at, "a secret input cannot have a default", help);
    }
    if let (Some(value), Some(node)) = (&default, fields.get("default")) {
        if !allowed.is_empty() && !allowed.contains(value) {
            report.error(node.at, "the default is not among the values of `enum`");
        }
        if required {
            report.warn(node.at, "a required input never uses its default", "leave one of them out");
        }
    }
    Some(InputSpec {
        name: key.text.clone(),
        kind,
        required,
        default,
        description: description.unwrap_or_default().trim().to_owned(),
        allowed,
        secret,
    })
}

fn allowed(node: &Node, kind: InputKind, report: &mut Report) -> Vec<Value> {
    let Some(items) = fields::list(node, "`enum`", report) else { return Vec::new() };
    if items.is_empty() {
        report.error(node.at, "`enum` allows no value at all");
    }
    items.iter().filter_map(|item| value(item, kind, "a value of `enum`", report)).collect()
}

/// A value that has to fit the type. Text keeps the way it was written only when quoted: `1.10` is the number 1.1, and
/// saying so here saves a wrong version later.
fn value(node: &Node, kind: InputKind, what: &str, report: &mut Report) -> Option<Value> {
    let value = node.to_json();
    if fits(kind, &value) {
        return Some(value);
    }
    let message = format!("{what} must be {}, not {}", kind.describe(), node.describe());
    match &node.kind {
        NodeKind::Scalar { text, .. } if kind == InputKind::String && !value.is_null() => {
            report.error_help(node.at, message, format!("put quotes around it: \"{text}\""));
        }
        _ => report.error(node.at, message),
    }
    None
}

/// Whether a value has the type, as JSON Schema has it: 1.0 is an integer.
pub(crate) fn fits(kind: InputKind, value: &Value) -> bool {
    match kind {
        InputKind::String => value.is_string(),
        InputKind::Integer => match value {
            Value::Number(number) => {
                number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            _ => false,
        },
        InputKind::Number => value.is_number(),
        InputKind::Boolean => value.is_boolean(),
        InputKind::Array => value.is_array(),
        InputKind::Object => value.is_object(),
    }
}

impl InputKind {
    /// The name of the JSON type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    /// What it is, in words for messages.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::String => "a string",
            Self::Integer => "a whole number",
            Self::Number => "a number",
            Self::Boolean => "`true` or `false`",
            Self::Array => "a list",
            Self::Object => "an object",
        }
    }
}
