//! What a state does: `run`, `exec`, `call`, `approve`, `ask`.

use crate::playbook::{
    diagnostic::{Position, Report},
    fields::{self, Fields},
    model::{Action, ApproveSpec, ApprovedBy, AskSpec, CallSpec, InputSpec, ProcessSpec, Program, TemplateValue},
    names,
    template::Template,
    yaml::{Node, NodeKind},
};

use super::{
    Names, ask,
    refs::{self, Place},
};

pub(super) fn action(
    kind: &str,
    fields: &Fields<'_>,
    place: Place,
    inputs: &[InputSpec],
    known: &Names<'_>,
    report: &mut Report,
) -> Option<Action> {
    let node = fields.get(kind)?;
    match kind {
        "run" => {
            let program = shell(node, inputs, report).map(Program::Shell);
            process(program, fields, place, known, report)
        }
        "exec" => {
            let program = arguments(node, place, known, report).map(Program::Exec);
            process(program, fields, place, known, report)
        }
        "call" => {
            let playbook = fields::string(node, "`call`", report).filter(|name| {
                fields::name(node.at, name, "a playbook", names::is_kebab, "use kebab-case: `deploy-one`", report)
            });
            let with = match fields.get("with") {
                Some(node) => with(node, place, known, report),
                None => Some(Vec::new()),
            };
            Some(Action::Call(CallSpec { playbook: playbook?.to_owned(), with: with? }))
        }
        "approve" => {
            let message = message(node, "`approve`", place, known, report);
            let words = &[("human", ApprovedBy::Human), ("agent", ApprovedBy::Agent)];
            let by = match fields.get("by") {
                Some(node) => fields::word(node, "`by`", words, report),
                None => Some(ApprovedBy::Human),
            };
            Some(Action::Approve(ApproveSpec { message: message?, by: by? }))
        }
        _ => {
            let message = message(node, "`ask`", place, known, report);
            let schema = match fields.get("schema") {
                Some(node) => ask::schema(node, report),
                None => {
                    report.error_help(
                        node.at,
                        "`ask` needs a schema of the answer",
                        "add `schema: { type: object, properties: { NAME: { type: string } } }`",
                    );
                    None
                }
            };
            Some(Action::Ask(AskSpec { message: message?, schema: schema? }))
        }
    }
}

/// A shell command: exactly as written, and so without templates, or a value could become a command.
fn shell(node: &Node, inputs: &[InputSpec], report: &mut Report) -> Option<String> {
    let command = fields::string(node, "`run`", report)?;
    if command.trim().is_empty() {
        report.error(node.at, "`run` has no command");
        return None;
    }
    if command.contains("{{") || command.contains("{%") {
        let input = inputs.first().map_or("version", |input| input.name.as_str());
        report.error_help(
            node.at,
            "`run` is passed to the shell as it is and never templated",
            format!(
                "pass the value in the environment: `env: {{ VALUE: \"{{{{ inputs.{input} }}}}\" }}`, and write \"$VALUE\" in \
                 the command; for braces of another tool use `exec` or a script"
            ),
        );
        return None;
    }
    no_nul(command, node.at, "`run`", report).then(|| command.to_owned())
}

fn arguments(node: &Node, place: Place, known: &Names<'_>, report: &mut Report) -> Option<Vec<Template>> {
    if let NodeKind::Scalar { text: command, .. } = &node.kind {
        let list = command.split_whitespace().collect::<Vec<_>>().join(", ");
        report.error_help(
            node.at,
            "`exec` must be a list: the program and its arguments",
            format!("write `exec: [{list}]`, or use `run` for a shell command"),
        );
        return None;
    }
    let items = fields::list(node, "`exec`", report)?;
    if items.is_empty() {
        report.error(node.at, "`exec` has no program");
        return None;
    }
    let arguments: Vec<Option<Template>> = items
        .iter()
        .map(|item| {
            let template = refs::template(item, "an element of `exec`", place, known, report)?;
            no_nul(template.source(), item.at, "an element of `exec`", report).then_some(template)
        })
        .collect();
    if let (Some(Some(program)), Some(node)) = (arguments.first(), items.first())
        && program.source().is_empty()
    {
        report.error(node.at, "`exec` has no program: its first element is empty");
    }
    arguments.into_iter().collect()
}

fn process(
    program: Option<Program>,
    fields: &Fields<'_>,
    place: Place,
    known: &Names<'_>,
    report: &mut Report,
) -> Option<Action> {
    let env = match fields.get("env") {
        Some(node) => environment(node, place, known, report),
        None => Some(Vec::new()),
    };
    let cwd = fields.get("cwd").map(|node| refs::template(node, "`cwd`", place, known, report));
    let timeout = fields.get("timeout").map(|node| fields::duration(node, "`timeout`", report));
    let detach = fields.get("detach").map(|node| fields::boolean(node, "`detach`", report));
    let emit = fields.get("emit").map(|node| fields::word(node, "`emit`", &[("message", true)], report));
    Some(Action::Process(ProcessSpec {
        program: program?,
        env: env?,
        cwd: optional(cwd)?,
        timeout: optional(timeout)?,
        detach: optional(detach)?.unwrap_or(false),
        emit_message: optional(emit)?.unwrap_or(false),
    }))
}

/// "Absent" and "read" are good, "could not be read" is not.
fn optional<T>(read: Option<Option<T>>) -> Option<Option<T>> {
    match read {
        None => Some(None),
        Some(None) => None,
        Some(value) => Some(value),
    }
}

fn environment(node: &Node, place: Place, known: &Names<'_>, report: &mut Report) -> Option<Vec<(String, Template)>> {
    let entries = fields::map(node, "`env`", report)?;
    let read: Vec<Option<(String, Template)>> = entries
        .iter()
        .map(|(key, node)| {
            let form = "use letters, digits and `_`, not a digit first: `TARGET_DIR`";
            let named = fields::name(key.at, &key.text, "a variable", names::is_variable, form, report);
            let value = refs::template(node, &format!("`{}`", key.text), place, known, report)?;
            (no_nul(value.source(), node.at, "a variable", report) && named).then(|| (key.text.clone(), value))
        })
        .collect();
    read.into_iter().collect()
}

fn with(node: &Node, place: Place, known: &Names<'_>, report: &mut Report) -> Option<Vec<(String, TemplateValue)>> {
    let entries = fields::map(node, "`with`", report)?;
    let read: Vec<Option<(String, TemplateValue)>> = entries
        .iter()
        .map(|(key, node)| {
            let form = "use letters, digits and `_`, not a digit first: `target_dir`";
            let named = fields::name(key.at, &key.text, "an input", names::is_identifier, form, report);
            let value = refs::value(node, place, known, report)?;
            named.then(|| (key.text.clone(), value))
        })
        .collect();
    read.into_iter().collect()
}

fn message(node: &Node, what: &str, place: Place, known: &Names<'_>, report: &mut Report) -> Option<Template> {
    let template = refs::template(node, what, place, known, report)?;
    if template.source().trim().is_empty() {
        report.error(node.at, format!("{what} has no question"));
        return None;
    }
    Some(template)
}

/// Arguments and environment end at a NUL, so none can be in them.
fn no_nul(text: &str, at: Position, what: &str, report: &mut Report) -> bool {
    let good = !text.contains('\0');
    if !good {
        report.error(at, format!("{what} contains a NUL character, which no command can take"));
    }
    good
}
