//! The variables a condition or a template can see: plain data, filled by the machine.

use serde_json::{Map, Value};

/// The names conditions may use, in the order of the documentation.
pub(crate) const CONDITION_VARIABLES: &[&str] =
    &["exit", "output", "branches", "approval", "answer", "inputs", "ctx", "attempt"];

/// The names templates may use: those of conditions and, inside a fan-out, the branch's own.
pub(crate) const TEMPLATE_VARIABLES: &[&str] =
    &["inputs", "ctx", "item", "index", "attempt", "exit", "output", "branches", "approval", "answer"];

/// What conditions and templates see.
///
/// A variable that is `None` is null in a condition and undefined, so an error when used, in a template.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scope {
    /// The run's inputs, defaults applied.
    pub inputs: Map<String, Value>,
    /// Kept outputs of earlier states, by the name in their `output:`.
    pub ctx: Map<String, Value>,
    /// Output of the state: text, or the value parsed from it.
    pub output: Option<Value>,
    /// How the state's process ended; see [`exit_value`].
    pub exit: Option<Value>,
    /// Of a fan-out: a list of `{index, item, exit, output}`.
    pub branches: Option<Value>,
    /// Of an approval: `{decision, …}`.
    pub approval: Option<Value>,
    /// Of a question: the answer.
    pub answer: Option<Value>,
    /// Times this state has run before because of `repair`, plus one.
    pub attempt: u64,
    /// Of one branch of a fan-out over a list: its item.
    pub item: Option<Value>,
    /// Of one branch of a fan-out: its index, from 0.
    pub index: Option<u64>,
}

impl Scope {
    /// Looks a top-level variable up by name; `None` when there is none now.
    pub(crate) fn variable(&self, name: &str) -> Option<Variable<'_>> {
        match name {
            "inputs" => Some(Variable::Object(&self.inputs)),
            "ctx" => Some(Variable::Object(&self.ctx)),
            "output" => self.output.as_ref().map(Variable::Value),
            "exit" => self.exit.as_ref().map(Variable::Value),
            "branches" => self.branches.as_ref().map(Variable::Value),
            "approval" => self.approval.as_ref().map(Variable::Value),
            "answer" => self.answer.as_ref().map(Variable::Value),
            "item" => self.item.as_ref().map(Variable::Value),
            "index" => self.index.map(Variable::Number),
            "attempt" => Some(Variable::Number(self.attempt)),
            _ => None,
        }
    }
}

/// A borrowed variable, so that a large output is not copied before someone needs it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Variable<'a> {
    Object(&'a Map<String, Value>),
    Value(&'a Value),
    Number(u64),
}

/// Builds the `exit` variable: a map that always has all of `code`, `signal` and `timeout`, so that a condition
/// may ask for any of them whatever happened.
///
/// ```
/// use taffrail_engine::playbook::exit_value;
/// assert_eq!(exit_value(Some(0), None, false).to_string(), r#"{"code":0,"signal":null,"timeout":false}"#);
/// ```
#[must_use]
pub fn exit_value(code: Option<i64>, signal: Option<&str>, timeout: bool) -> Value {
    serde_json::json!({ "code": code, "signal": signal, "timeout": timeout })
}
