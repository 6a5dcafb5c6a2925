//! The flow between the states.

use std::rc::Rc;

use crate::playbook::{
    diagnostic::Report,
    model::{Gate, Policy, State, Target},
    yaml::{Key, Node},
};

/// Warns of states that no path from the entry leads to.
pub(super) fn check(entries: &[(Key, Rc<Node>)], states: &[State], entry: usize, report: &mut Report) {
    let mut reached = vec![false; states.len()];
    let mut pending = vec![entry];
    while let Some(index) = pending.pop() {
        match reached.get_mut(index) {
            Some(seen) if !*seen => *seen = true,
            _ => continue,
        }
        pending.extend(states.get(index).into_iter().flat_map(|state| successors(state, index, states.len())));
    }
    for ((key, _), _) in entries.iter().zip(reached).filter(|(_, reached)| !reached) {
        report.warn(
            key.at,
            format!("state `{}` is never reached", key.text),
            "no gate leads to it: add one, or remove it",
        );
    }
}

/// The states that may come after one, in the order of its gates.
fn successors(state: &State, index: usize, count: usize) -> Vec<usize> {
    let next = (index + 1 < count).then_some(index + 1);
    if state.gates.is_empty() {
        return next.into_iter().collect();
    }
    state.gates.iter().filter_map(|gate| successor(gate, index, next)).collect()
}

fn successor(gate: &Gate, index: usize, next: Option<usize>) -> Option<usize> {
    match (gate.policy, gate.to) {
        (Policy::Fail, _) | (_, Target::End) => None,
        (_, Target::State(to)) => Some(to),
        (Policy::Repair(_), Target::Default) => Some(index),
        (Policy::Ok | Policy::Escalate, Target::Default) => next,
    }
}
