//! The checked form of a playbook: what the parser produces and the machine runs.
//!
//! Everything here has passed the checks that need no inputs: names exist, gates are complete, templates and
//! conditions compile. Nothing here knows YAML.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value};

use super::{condition::Condition, template::Template};

/// One playbook, checked.
#[derive(Debug)]
pub struct Playbook {
    /// Kebab-case name.
    pub name: String,
    /// What it is for, in the author's words; empty when absent.
    pub description: String,
    /// Declared inputs, in the order of the file.
    pub inputs: Vec<InputSpec>,
    /// Limits of a whole run; a called playbook runs within its caller's.
    pub budget: Budget,
    /// Index into [`Playbook::states`] of the first state.
    pub entry: usize,
    /// The states, in the order of the file.
    pub states: Vec<State>,
    /// The exact source text, so that a resumed run goes on with what it started with.
    pub source: Arc<str>,
}

/// One declared input.
#[derive(Debug, Clone, PartialEq)]
pub struct InputSpec {
    /// The name, as used in `inputs.NAME`.
    pub name: String,
    /// The JSON type a value must have.
    pub kind: InputKind,
    /// Whether a run cannot start without it.
    pub required: bool,
    /// Used when the caller gives none.
    pub default: Option<Value>,
    /// For people and models; empty when absent.
    pub description: String,
    /// Allowed values; empty means any.
    pub allowed: Vec<Value>,
    /// Never stored: a resumed run must be given it again.
    pub secret: bool,
}

/// The JSON type of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputKind {
    /// A string.
    String,
    /// A whole number.
    Integer,
    /// Any finite number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A list.
    Array,
    /// An object.
    Object,
}

/// Limits that end every loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// States started, at any depth. Default 200.
    pub steps: u64,
    /// Time from the first `run-start`, pauses excluded. Default 24 h.
    pub wall: Duration,
    /// Bytes of process output kept; past it output is clipped and the run goes on. Default 1 GiB.
    pub output_bytes: u64,
}

/// One state.
#[derive(Debug)]
pub struct State {
    /// Kebab-case or snake-case name, unique in the playbook.
    pub name: String,
    /// What it does.
    pub action: Action,
    /// How many concurrent branches, and over what.
    pub fan_out: Option<FanOut>,
    /// The transition table, in order; empty means: success goes to the next state, anything else fails.
    pub gates: Vec<Gate>,
    /// Name under `ctx` that keeps the output.
    pub output: Option<String>,
    /// How `output` is read from stdout.
    pub parse: Parse,
}

/// What a state does.
#[derive(Debug)]
pub enum Action {
    /// `run:` (a shell command) and `exec:` (no shell).
    Process(ProcessSpec),
    /// `call:` another playbook.
    Call(CallSpec),
    /// `approve:` pauses the run until someone decides.
    Approve(ApproveSpec),
    /// `ask:` pauses the run until someone answers.
    Ask(AskSpec),
}

/// A command.
#[derive(Debug)]
pub struct ProcessSpec {
    /// What to start.
    pub program: Program,
    /// Added to the environment, each value rendered to one string.
    pub env: Vec<(String, Template)>,
    /// Working directory, relative to the run's; rendered.
    pub cwd: Option<Template>,
    /// Ends the state with `{"timeout":true}`.
    pub timeout: Option<Duration>,
    /// Children may outlive the state.
    pub detach: bool,
    /// Stdout lines become `message` events.
    pub emit_message: bool,
}

/// How a command is started.
#[derive(Debug)]
pub enum Program {
    /// Passed to `sh -c` exactly as written; never templated.
    Shell(String),
    /// Program and arguments; each element renders to exactly one argument.
    Exec(Vec<Template>),
}

/// A call of another playbook.
#[derive(Debug)]
pub struct CallSpec {
    /// Its name.
    pub playbook: String,
    /// Inputs for it; values of any JSON shape whose strings are templates.
    pub with: Vec<(String, TemplateValue)>,
}

/// A JSON value whose strings may be templates.
#[derive(Debug)]
pub enum TemplateValue {
    /// A string template; one that is exactly a single `{{ expression }}` keeps the type of its value.
    Text(Template),
    /// A value without templates.
    Plain(Value),
    /// A list.
    List(Vec<TemplateValue>),
    /// An object.
    Object(Vec<(String, TemplateValue)>),
}

/// An approval gate.
#[derive(Debug)]
pub struct ApproveSpec {
    /// The question.
    pub message: Template,
    /// Who may decide.
    pub by: ApprovedBy,
}

/// Who may decide an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovedBy {
    /// A person: console, command line or REST; never the `resume` tool.
    Human,
    /// An agent may.
    Agent,
}

/// A question.
#[derive(Debug)]
pub struct AskSpec {
    /// The question.
    pub message: Template,
    /// JSON Schema of the answer: an object with primitive properties.
    pub schema: Map<String, Value>,
}

/// Concurrent branches of a state.
#[derive(Debug)]
pub struct FanOut {
    /// What the branches are made over.
    pub over: Over,
    /// Branches at the same time; default: all, up to the number of processors.
    pub max_parallel: Option<usize>,
}

/// What branches are made over.
#[derive(Debug)]
pub enum Over {
    /// One branch per item of a list.
    Items(TemplateValue),
    /// `sample: N`: the same state N times.
    Sample(u32),
}

/// One row of the transition table.
#[derive(Debug)]
pub struct Gate {
    /// When it fires.
    pub when: Condition,
    /// What then.
    pub policy: Policy,
    /// Where to.
    pub to: Target,
}

/// What a gate does when it fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// `then: ok`.
    Ok,
    /// `then: fail`: the run halts with `gate-failed`.
    Fail,
    /// `repair: N`: run a state again, at most N times.
    Repair(u32),
    /// `escalate: true`: go on elsewhere; to `END` it halts with `escalated`.
    Escalate,
}

/// Where a gate leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Index of a state.
    State(usize),
    /// The end of the playbook.
    End,
    /// Not given: `ok` and `escalate` go to the next state in the file (`END` after the last), `repair` to this state.
    Default,
}

/// How stdout becomes `output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Parse {
    /// Text: the last 64 KiB.
    #[default]
    Text,
    /// JSON; a parse failure fails the state.
    Json,
}
