//! Playbooks: the language. From YAML text to a checked [`Playbook`], with every problem of a file reported at once.
//!
//! [`parse`] reads, [`Library`] finds, [`Contract`] describes, [`resolve_inputs`] checks what a caller gives, and
//! [`Condition`] and [`Template`] are the two small languages inside. Running is the machine's business, not ours.

mod cel_tree;
mod condition;
mod model;
mod plain;
mod scope;
mod template;

pub use condition::{Condition, ConditionError, EvalError};
pub use model::{
    Action, ApproveSpec, ApprovedBy, AskSpec, Budget, CallSpec, FanOut, Gate, InputKind, InputSpec, Over, Parse,
    Playbook, Policy, ProcessSpec, Program, State, Target, TemplateValue,
};
pub use scope::{Scope, exit_value};
pub use template::{Template, TemplateError};
