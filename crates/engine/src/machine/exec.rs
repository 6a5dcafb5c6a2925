//! A playbook of one command, for `taffrail exec`.

use super::language;
use crate::playbook::Playbook;

/// The name of its only state.
pub const EXEC_STATE: &str = "exec";

/// A command cannot be made a playbook.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the command cannot be run: {message}")]
pub struct CommandError {
    message: String,
}

/// Makes a playbook that runs one command, without a shell, and ends as the command ends.
///
/// `name` may be any text; `argv` is the program and its arguments, passed on as they are. Limits are those of any
/// playbook; callers change [`Playbook::budget`] as they like.
///
/// ```
/// let argv = ["echo".to_owned(), "{{ not a template }}".to_owned()];
/// let playbook = taffrail_engine::for_command("My build", &argv)?;
/// assert_eq!((playbook.name.as_str(), playbook.states.len()), ("My build", 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// When `argv` is empty, or a part of it is larger than a template may be.
pub fn for_command(name: &str, argv: &[String]) -> Result<Playbook, CommandError> {
    // It is made from a source text, so that it resumes as any other playbook does.
    let words: Vec<String> = argv.iter().map(|word| literal(word)).collect();
    let source = serde_json::json!({ "playbook": EXEC_STATE, "states": { EXEC_STATE: { "exec": words } } });
    let mut playbook = language::parse(&source.to_string()).map_err(|message| CommandError { message })?;
    playbook.name = name.to_owned();
    Ok(playbook)
}

/// A template that renders to exactly this text.
fn literal(text: &str) -> String {
    if ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark)) {
        format!("{{{{ {} }}}}", serde_json::Value::from(text))
    } else {
        text.to_owned()
    }
}
