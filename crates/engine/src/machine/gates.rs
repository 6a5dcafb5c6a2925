//! The transition table: which gate fires, and what follows from it. Pure functions over one state.

use std::collections::BTreeMap;

use taffrail_mcp_core as core;
use taffrail_mcp_core::Reason;

use super::frame::Failure;
use crate::playbook::{Gate, Playbook, Policy, Scope, Target};

/// What follows from a state.
#[derive(Debug, PartialEq)]
pub(super) struct Verdict {
    /// The condition that fired, as written.
    pub(super) gate: Option<String>,
    pub(super) policy: core::Policy,
    pub(super) next: Next,
}

/// Where to.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// A state, by its index.
    State(usize),
    /// A state, because a `repair` gate says so.
    Repair(usize),
    /// The end of the playbook.
    End,
    /// The playbook halts.
    Halt(Failure),
}

impl Verdict {
    /// The playbook halts, and no gate said so.
    pub(super) fn halt(failure: Failure) -> Self {
        Self { gate: None, policy: core::Policy::FAIL, next: Next::Halt(failure) }
    }
}

/// Asks the gates of the state `at` in order; the first that is true fires. `failure` says why the state counts as
/// failed; `repairs` counts how often each `repair` gate has fired in this run of the playbook, and is never reset.
pub(super) fn judge(
    playbook: &Playbook,
    at: usize,
    scope: &Scope,
    failure: Option<Failure>,
    repairs: &mut BTreeMap<(usize, usize), u32>,
) -> Verdict {
    let gates = playbook.states.get(at).map(|state| state.gates.as_slice()).unwrap_or_default();
    if gates.is_empty() {
        return match failure {
            None => Verdict { gate: None, policy: core::Policy::OK, next: following(playbook, at) },
            Some(failure) => Verdict::halt(failure),
        };
    }
    let why = |fallback: &str| failure.as_ref().map_or_else(|| fallback.to_owned(), |failure| failure.detail.clone());
    for (index, gate) in gates.iter().enumerate() {
        match gate.when.eval(scope) {
            Ok(false) => {}
            Ok(true) => {
                let used = repairs.entry((at, index)).or_insert(0);
                let text = gate.when.text();
                let rejected = failure.as_ref().is_some_and(|failure| failure.reason == Reason::APPROVAL_REJECTED);
                // Who waits for the run wants to know that somebody said no, whichever gate passed it on.
                let failed = if rejected { Reason::APPROVAL_REJECTED } else { Reason::GATE_FAILED };
                return fire(playbook, at, gate, used, failed, |what| {
                    format!("{what} at the gate `{text}`: {}", why("success"))
                });
            }
            Err(error) => {
                return Verdict::halt(Failure { reason: Reason::CONDITION_ERROR, detail: error.to_string() });
            }
        }
    }
    let detail = format!("no gate was true: {}", why("success"));
    let halt = Next::Halt(Failure { reason: Reason::NO_GATE_MATCHED, detail });
    Verdict { gate: None, policy: core::Policy::NO_GATE_MATCHED, next: halt }
}

fn fire(
    playbook: &Playbook,
    at: usize,
    gate: &Gate,
    used: &mut u32,
    failed: Reason,
    detail: impl Fn(&str) -> String,
) -> Verdict {
    let target = match gate.to {
        Target::State(index) => Next::State(index),
        Target::End => Next::End,
        Target::Default => following(playbook, at),
    };
    let halt = |reason: Reason, what: &str| Next::Halt(Failure { reason, detail: detail(what) });
    let (policy, next) = match gate.policy {
        Policy::Ok => (core::Policy::OK, target),
        Policy::Fail => (core::Policy::FAIL, halt(failed, "failed")),
        Policy::Escalate if target == Next::End => (core::Policy::ESCALATE, halt(Reason::ESCALATED, "escalated")),
        Policy::Escalate => (core::Policy::ESCALATE, target),
        Policy::Repair(most) if *used >= most => {
            (core::Policy::REPAIR, halt(Reason::REPAIR_EXHAUSTED, &format!("repaired {most} times in vain")))
        }
        Policy::Repair(_) => {
            *used += 1;
            // There is nothing to repair at the end, so `END` means what absence means: this state.
            let again = if let Target::State(index) = gate.to { index } else { at };
            (core::Policy::REPAIR, Next::Repair(again))
        }
    };
    Verdict { gate: Some(gate.when.text().to_owned()), policy, next }
}

/// The next state in the file.
fn following(playbook: &Playbook, at: usize) -> Next {
    if at + 1 < playbook.states.len() { Next::State(at + 1) } else { Next::End }
}
