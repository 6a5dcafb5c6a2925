//! Templates and conditions where they stand: compiled, and what they refer to looked up.

use crate::playbook::{
    cel_tree::Reference,
    condition::Condition,
    diagnostic::{Position, Report},
    fields,
    model::TemplateValue,
    scope::{CONDITION_VARIABLES, TEMPLATE_VARIABLES},
    template::Template,
    yaml::{Node, NodeKind},
};

use super::Names;

/// Functions of CEL, macros included, that conditions may call.
const FUNCTIONS: &[&str] = &[
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "int",
    "uint",
    "double",
    "string",
    "bool",
    "bytes",
    "dyn",
    "type",
    "has",
    "all",
    "exists",
    "exists_one",
    "existsOne",
    "map",
    "filter",
    "value",
    "hasValue",
    "or",
    "orValue",
    "of",
    "none",
    "ofNonZeroValue",
    "optMap",
    "optFlatMap",
    "optional",
];

/// Names of CEL types, which stand where variables do.
const TYPES: &[&str] = &[
    "bool",
    "bytes",
    "double",
    "dyn",
    "int",
    "list",
    "map",
    "null_type",
    "optional",
    "optional_type",
    "string",
    "type",
    "uint",
];

/// Where a template stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In a state that runs once.
    Once,
    /// In a branch: `item` and `index` are there.
    Branch,
    /// In `over` itself: they are not there yet.
    Over,
}

/// Compiles a template given as any scalar.
pub(super) fn template(
    node: &Node,
    what: &str,
    place: Place,
    known: &Names<'_>,
    report: &mut Report,
) -> Option<Template> {
    let text = fields::text(node, what, report)?;
    compile(text, node.at, place, known, report)
}

/// A value whose strings may be templates.
pub(super) fn value(node: &Node, place: Place, known: &Names<'_>, report: &mut Report) -> Option<TemplateValue> {
    Some(match &node.kind {
        NodeKind::Scalar { value: serde_json::Value::String(text), .. } => {
            let template = compile(text, node.at, place, known, report)?;
            if template.is_literal() { TemplateValue::Plain(node.to_json()) } else { TemplateValue::Text(template) }
        }
        NodeKind::Scalar { value, .. } => TemplateValue::Plain(value.clone()),
        NodeKind::List(items) => {
            // Not `collect::<Option<_>>()` at once: that would stop at the first problem.
            let items: Vec<_> = items.iter().map(|item| value(item, place, known, report)).collect();
            TemplateValue::List(items.into_iter().collect::<Option<_>>()?)
        }
        NodeKind::Map(entries) => {
            let entries: Vec<_> = entries
                .iter()
                .map(|(key, node)| Some((key.text.clone(), value(node, place, known, report)?)))
                .collect();
            TemplateValue::Object(entries.into_iter().collect::<Option<_>>()?)
        }
    })
}

fn compile(text: &str, at: Position, place: Place, known: &Names<'_>, report: &mut Report) -> Option<Template> {
    match Template::compile(text) {
        Ok(template) => {
            for reference in template.references() {
                let (root, rest) = reference.split_once('.').unwrap_or((reference, ""));
                let member = rest.split('.').next().filter(|member| !member.is_empty());
                template_reference(root, member, at, place, known, report);
            }
            Some(template)
        }
        Err(error) => {
            report.error(at, error.to_string());
            None
        }
    }
}

fn template_reference(
    root: &str,
    member: Option<&str>,
    at: Position,
    place: Place,
    known: &Names<'_>,
    report: &mut Report,
) {
    match root {
        "inputs" | "ctx" => member_reference(root, member, at, known, report),
        "item" | "index" if place == Place::Branch => {}
        "item" | "index" => report.error_help(
            at,
            format!("`{root}` exists only in the branches of a fan-out"),
            "add `over: LIST` or `sample: N` to the state",
        ),
        "attempt" => {}
        _ if TEMPLATE_VARIABLES.contains(&root) => report.error_help(
            at,
            format!("`{root}` is not known before the state has run"),
            "keep the output of an earlier state with `output: NAME` and use `ctx.NAME`",
        ),
        _ if Template::is_builtin(root) => {}
        _ => report.unknown(
            at,
            format!("unknown variable `{root}`"),
            root,
            ["inputs", "ctx", "item", "index", "attempt"],
        ),
    }
}

fn member_reference(root: &str, member: Option<&str>, at: Position, known: &Names<'_>, report: &mut Report) {
    let Some(member) = member else { return };
    let (names, what, help) = match root {
        "inputs" => (&known.inputs, "input", "declare it under `inputs:`"),
        _ => (&known.outputs, "output", "a state keeps its output as `ctx.NAME` with `output: NAME`"),
    };
    if names.contains(&member) {
        return;
    }
    let message = format!("unknown {what} `{root}.{member}`");
    match names.is_empty() {
        true => report.error_help(at, message, help),
        false => report.unknown(at, message, member, names.iter().copied()),
    }
}

/// What a condition's state is, as far as its variables are concerned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject {
    pub(super) fan_out: bool,
    /// The key of its action.
    pub(super) action: &'static str,
}

/// Compiles a condition.
pub(super) fn condition(node: &Node, subject: Subject, known: &Names<'_>, report: &mut Report) -> Option<Condition> {
    let text = fields::text(node, "`when`", report)?;
    match Condition::compile(text) {
        Ok(condition) => {
            for reference in condition.references() {
                condition_reference(reference, node.at, subject, known, report);
            }
            for function in condition.functions() {
                if !FUNCTIONS.contains(&function.as_str()) {
                    let message = format!("unknown function `{function}`, or wrong arguments for it");
                    report.unknown(node.at, message, function, FUNCTIONS.iter().copied());
                }
            }
            Some(condition)
        }
        Err(error) => {
            report.error_help(
                node.at,
                error.to_string(),
                "conditions are CEL, such as `exit.code == 0`, or `otherwise`",
            );
            None
        }
    }
}

fn condition_reference(reference: &Reference, at: Position, subject: Subject, known: &Names<'_>, report: &mut Report) {
    let member = reference.member.as_deref();
    match reference.root.as_str() {
        root @ ("inputs" | "ctx") => member_reference(root, member, at, known, report),
        "exit" => {
            const MEMBERS: [&str; 3] = ["code", "signal", "timeout"];
            if let Some(member) = member.filter(|member| !MEMBERS.contains(member)) {
                report.unknown(at, format!("unknown member `exit.{member}`"), member, MEMBERS);
            }
        }
        "branches" if !subject.fan_out => {
            report.warn(
                at,
                "`branches` is null: the state does not fan out",
                "add `over: LIST` or `sample: N` to the state",
            );
        }
        root @ ("approval" | "answer") => {
            let wanted = if root == "approval" { "approve" } else { "ask" };
            if subject.action != wanted {
                let message = format!("`{root}` is null: the state is not an `{wanted}`");
                report.warn(at, message, "put the condition on the state that pauses");
            }
        }
        root @ ("item" | "index") => report.error_help(
            at,
            format!("`{root}` is not known in a condition, which judges all branches at once"),
            "use `branches`, such as `branches.all(b, b.exit.code == 0)`",
        ),
        root if CONDITION_VARIABLES.contains(&root) || TYPES.contains(&root) => {}
        root => report.unknown(at, format!("unknown variable `{root}`"), root, CONDITION_VARIABLES.iter().copied()),
    }
}
