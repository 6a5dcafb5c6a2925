//! Playbooks: the language. From YAML text to a checked [`Playbook`], with every problem of a file reported at once.
//!
//! [`parse`] reads, [`Library`] finds, [`Contract`] describes, [`resolve_inputs`] checks what a caller gives, and
//! [`Condition`] and [`Template`] are the two small languages inside. Running is the machine's business, not ours.

mod cel_tree;
mod condition;
mod contract;
mod diagnostic;
mod fields;
mod inputs;
mod keys;
mod library;
mod model;
mod names;
mod parse;
mod plain;
mod scalar;
mod schema;
mod scope;
mod template;
mod units;
mod yaml;

pub use condition::{Condition, ConditionError, EvalError};
pub use contract::{BudgetContract, Contract, InputContract, StateContract};
pub use diagnostic::{Diagnostic, Severity};
pub use inputs::{InputError, InputErrors, parse_cli_input, resolve_inputs};
pub use library::{Library, LibraryError, Listed, Loaded, MAX_CALL_DEPTH, is_path};
pub use model::{
    Action, ApproveSpec, ApprovedBy, AskSpec, Budget, CallSpec, FanOut, Gate, InputKind, InputSpec, Over, Parse,
    Playbook, Policy, ProcessSpec, Program, State, Target, TemplateValue,
};
pub use parse::{Parsed, parse};
pub use schema::playbook_schema;
pub use scope::{Scope, exit_value};
pub use template::{Template, TemplateError};
