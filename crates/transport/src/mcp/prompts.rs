//! Prompts: requests that a person can pick from a menu. Each stands alone: it holds what it is about.

mod explain;
mod start;
mod watch;

use std::collections::BTreeMap;

use rmcp::{
    ErrorData,
    model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role},
};
use serde_json::{Map, Value, json};
use taffrail_mcp_core::RunId;

use super::{
    answer::{failed, invalid, shown},
    backend::Backend,
    snapshot,
};

/// A prompt and what it takes.
pub(super) struct Definition {
    pub(super) name: &'static str,
    title: &'static str,
    description: &'static str,
    pub(super) arguments: &'static [Argument],
}

/// An argument of a prompt.
pub(super) struct Argument {
    pub(super) name: &'static str,
    title: &'static str,
    description: &'static str,
    required: bool,
    pub(super) of: Of,
}

/// What an argument names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Run,
    Playbook,
    /// A number that nobody can guess.
    Cursor,
}

const RUN: Argument = Argument {
    name: "run",
    title: "Run",
    description: "Id of the run, as list_runs shows it.",
    required: true,
    of: Of::Run,
};

/// All prompts, in the order in which they are listed.
pub(super) const ALL: [Definition; 3] = [
    Definition {
        name: "watch-run",
        title: "Watch a run",
        description: "Follow a run until it is over or needs somebody, and report what happens.",
        arguments: &[
            RUN,
            Argument {
                name: "cursor",
                title: "Cursor",
                description: "Position in the log from which on to read; default: its last lines.",
                required: false,
                of: Of::Cursor,
            },
        ],
    },
    Definition {
        name: "explain-failure",
        title: "Explain a failure",
        description: "Find out from a run's state and its last log lines what failed, why, and what to try next.",
        arguments: &[RUN],
    },
    Definition {
        name: "run-playbook",
        title: "Run a playbook",
        description: "Settle the inputs of a playbook, start it, and see it through.",
        arguments: &[Argument {
            name: "playbook",
            title: "Playbook",
            description: "Name of the playbook, as list_playbooks shows it.",
            required: true,
            of: Of::Playbook,
        }],
    },
];

/// The list of prompts.
pub(super) fn list() -> Vec<Prompt> {
    let argument = |argument: &Argument| {
        let Argument { name, title, description, required, of: _ } = argument;
        PromptArgument::new(*name).with_title(*title).with_description(*description).with_required(*required)
    };
    let prompt = |definition: &Definition| {
        let Definition { name, title, description, arguments } = definition;
        Prompt::new(*name, Some(*description), Some(arguments.iter().map(argument).collect())).with_title(*title)
    };
    ALL.iter().map(prompt).collect()
}

/// The list of prompts as `prompts/list` gives it: a JSON array, the same each time. For the published contract.
///
/// ```
/// let prompts = taffrail_transport::mcp::prompt_list();
/// assert_eq!(prompts[0]["name"], "watch-run");
/// ```
#[must_use]
pub fn prompt_list() -> Value {
    // Plain data with text for keys, which always has a JSON form.
    serde_json::to_value(list()).unwrap_or_default()
}

/// The prompt of this name.
///
/// # Errors
///
/// -32602 that says which there are.
pub(super) fn named(name: &str) -> Result<&'static Definition, ErrorData> {
    ALL.iter().find(|definition| definition.name == name).ok_or_else(|| {
        let names: Vec<_> = ALL.iter().map(|definition| definition.name).collect();
        invalid(format!("unknown prompt {:?}; there are {}", shown(name), names.join(", ")))
    })
}

/// A prompt, with what it is about as it is now.
///
/// # Errors
///
/// -32602 for an unknown prompt, run or playbook, and for arguments that are missing, unknown or not text.
pub(super) async fn get(
    backend: &dyn Backend,
    shared_fs: bool,
    name: &str,
    arguments: Option<JsonObject>,
) -> Result<GetPromptResult, ErrorData> {
    let definition = named(name)?;
    let given = read(definition, arguments)?;
    let argument = |name: &str| given.get(name).map(String::as_str);
    let run = argument("run").unwrap_or_default();
    let text = match definition.name {
        "watch-run" => watch::text(&about(backend, shared_fs, run).await?, argument("cursor"))?,
        "explain-failure" => explain::text(backend, &about(backend, shared_fs, run).await?).await?,
        _ => start::text(backend, argument("playbook").unwrap_or_default()).await?,
    };
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(definition.description))
}

/// The arguments by name: those there are, as text, all that are required among them.
fn read(definition: &Definition, given: Option<JsonObject>) -> Result<BTreeMap<String, String>, ErrorData> {
    let name = definition.name;
    let mut read = BTreeMap::new();
    for (key, value) in given.unwrap_or_default() {
        if !definition.arguments.iter().any(|argument| argument.name == key) {
            return Err(invalid(format!("unknown argument {:?} of {name}; {}", shown(&key), takes(definition))));
        }
        match value {
            Value::String(text) => drop(read.insert(key, text)),
            Value::Null => {}
            _ => return Err(invalid(format!("argument `{key}` of {name} must be text; {}", takes(definition)))),
        }
    }
    for argument in definition.arguments.iter().filter(|argument| argument.required) {
        if read.get(argument.name).is_none_or(String::is_empty) {
            return Err(invalid(format!("{name} needs the argument `{}`; {}", argument.name, takes(definition))));
        }
    }
    Ok(read)
}

/// What a prompt takes, for errors.
pub(super) fn takes(definition: &Definition) -> String {
    let arguments = definition.arguments.iter().map(|argument| {
        let need = if argument.required { "required" } else { "optional" };
        format!("`{}` ({need})", argument.name)
    });
    format!("it takes {}", arguments.collect::<Vec<_>>().join(" and "))
}

/// A run that a prompt is about.
struct About {
    run: String,
    document: Map<String, Value>,
}

async fn about(backend: &dyn Backend, shared_fs: bool, run: &str) -> Result<About, ErrorData> {
    let id =
        RunId::new(run).map_err(|_| invalid(format!("no run {:?}; list_runs shows the runs there are", shown(run))))?;
    let snapshot = backend.snapshot(id.as_str()).await.map_err(failed)?;
    Ok(About { run: run.to_owned(), document: snapshot::document(snapshot, shared_fs) })
}

impl About {
    fn field(&self, key: &str) -> Option<&str> {
        self.document.get(key).and_then(Value::as_str)
    }

    fn head(&self) -> u64 {
        self.document.get("head").and_then(Value::as_u64).unwrap_or(0)
    }

    /// Neither running nor suspended.
    fn is_over(&self) -> bool {
        !matches!(self.field("status"), Some("running" | "suspended"))
    }

    /// The snapshot as the tools tell it.
    fn state(&self) -> String {
        snapshot::text(&self.document)
    }

    /// A call of a tool about this run, with further arguments.
    fn call(&self, tool: &str, more: &[(&str, Value)]) -> String {
        let more: String = more.iter().map(|(name, value)| format!(",\"{name}\":{value}")).collect();
        format!("{tool} {{\"run\":{}{more}}}", json!(self.run))
    }
}
