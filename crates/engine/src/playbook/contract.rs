//! What a playbook promises its callers, without how it keeps it.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{
    keys::END,
    model::{Action, Gate, InputSpec, Playbook, Policy, State, Target},
};

/// A playbook as its callers see it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Contract {
    /// Its name.
    pub name: String,
    /// What it is for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What a run can be given.
    pub inputs: Vec<InputContract>,
    /// What ends a run whatever it does.
    pub budget: BudgetContract,
    /// The first state.
    pub entry: String,
    /// The states, in the order of the file.
    pub states: Vec<StateContract>,
    /// Whether a run can wait for a person or an agent (`approve`, `ask`). What called playbooks do is not known here.
    pub pauses: bool,
    /// Playbooks it calls, sorted, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
}

/// One input.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct InputContract {
    /// Its name.
    pub name: String,
    /// Its JSON type.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Whether a run cannot start without it.
    pub required: bool,
    /// The value when none is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The only values allowed; empty means any.
    #[serde(rename = "enum", skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<Value>,
    /// What it is for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Never stored.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
}

/// The budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BudgetContract {
    /// Most states started.
    pub steps: u64,
    /// Longest time, in milliseconds.
    pub wall_ms: u64,
    /// Most bytes of output kept.
    pub output_bytes: u64,
}

/// One state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StateContract {
    /// Its name.
    pub name: String,
    /// `run`, `call`, `approve` or `ask`.
    pub kind: &'static str,
    /// The playbook it calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Whether it runs in concurrent branches.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fan_out: bool,
    /// Where it can lead: states and `END`, in the order of its gates, each once.
    pub next: Vec<String>,
}

impl Contract {
    /// Describes a playbook.
    #[must_use]
    pub fn of(playbook: &Playbook) -> Self {
        let mut calls: Vec<String> =
            playbook.states.iter().filter_map(|state| called(state).map(str::to_owned)).collect();
        calls.sort();
        calls.dedup();
        Self {
            name: playbook.name.clone(),
            description: playbook.description.clone(),
            inputs: playbook.inputs.iter().map(InputContract::of).collect(),
            budget: BudgetContract {
                steps: playbook.budget.steps,
                wall_ms: u64::try_from(playbook.budget.wall.as_millis()).unwrap_or(u64::MAX),
                output_bytes: playbook.budget.output_bytes,
            },
            entry: playbook.states.get(playbook.entry).map_or_else(String::new, |state| state.name.clone()),
            states: playbook
                .states
                .iter()
                .enumerate()
                .map(|(index, state)| StateContract {
                    name: state.name.clone(),
                    kind: kind(&state.action),
                    call: called(state).map(str::to_owned),
                    fan_out: state.fan_out.is_some(),
                    next: next(playbook, state, index),
                })
                .collect(),
            pauses: playbook.states.iter().any(|state| matches!(state.action, Action::Approve(_) | Action::Ask(_))),
            calls,
        }
    }
}

impl InputContract {
    fn of(spec: &InputSpec) -> Self {
        let InputSpec { name, kind, required, default, description, allowed, secret } = spec;
        Self {
            name: name.clone(),
            kind: kind.name(),
            required: *required,
            // A default that may not be stored may not be shown either.
            default: default.clone().filter(|_| !secret),
            allowed: allowed.clone(),
            description: description.clone(),
            secret: *secret,
        }
    }
}

fn called(state: &State) -> Option<&str> {
    match &state.action {
        Action::Call(call) => Some(&call.playbook),
        _ => None,
    }
}

fn kind(action: &Action) -> &'static str {
    match action {
        Action::Process(_) => "run",
        Action::Call(_) => "call",
        Action::Approve(_) => "approve",
        Action::Ask(_) => "ask",
    }
}

fn next(playbook: &Playbook, state: &State, index: usize) -> Vec<String> {
    let name = |index: usize| playbook.states.get(index).map_or(END, |state| state.name.as_str());
    let target = |gate: &Gate| match (gate.policy, gate.to) {
        (Policy::Fail, _) => None,
        (_, Target::End) => Some(END),
        (_, Target::State(to)) => Some(name(to)),
        (Policy::Repair(_), Target::Default) => Some(name(index)),
        (Policy::Ok | Policy::Escalate, Target::Default) => Some(name(index + 1)),
    };
    let all: Vec<&str> =
        if state.gates.is_empty() { vec![name(index + 1)] } else { state.gates.iter().filter_map(target).collect() };
    let mut next: Vec<String> = Vec::new();
    for name in all {
        if !next.iter().any(|known| known == name) {
            next.push(name.to_owned());
        }
    }
    next
}
