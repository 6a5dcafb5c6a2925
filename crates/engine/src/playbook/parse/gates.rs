//! `gates:`, the transition table.

use crate::playbook::{
    diagnostic::Report,
    fields::{self, Fields},
    keys,
    model::{Gate, Policy, Target},
    yaml::Node,
};

use super::{Names, refs};

/// Most repairs of one gate; a higher number is no limit.
const MAX_REPAIRS: u64 = 1_000_000;

pub(super) fn gates(
    node: Option<&Node>,
    subject: refs::Subject,
    known: &Names<'_>,
    report: &mut Report,
) -> Option<Vec<Gate>> {
    let Some(node) = node else { return Some(Vec::new()) };
    let items = fields::list(node, "`gates`", report)?;
    let gates: Vec<Option<Gate>> = items.iter().map(|item| gate(item, subject, known, report)).collect();
    let otherwise = gates.iter().position(|gate| gate.as_ref().is_some_and(|gate| gate.when.is_otherwise()));
    if let Some(otherwise) = otherwise {
        for item in items.iter().skip(otherwise + 1) {
            report.warn(item.at, "this gate never fires: it stands after `otherwise`", "move `otherwise` to the end");
        }
    }
    gates.into_iter().collect()
}

fn gate(node: &Node, subject: refs::Subject, known: &Names<'_>, report: &mut Report) -> Option<Gate> {
    let fields = Fields::of(node, "a gate", &[keys::GATE], report)?;
    let when = match fields.get("when") {
        Some(node) => refs::condition(node, subject, known, report),
        None => {
            report.error_help(node.at, "the gate has no condition", "add `when: CONDITION` or `when: otherwise`");
            None
        }
    };
    let policy = policy(node, &fields, report);
    let to = match fields.get("to") {
        Some(node) => target(node, known, report),
        None => Some(Target::Default),
    };
    if let (Some(policy), Some(to), Some((key, _))) = (policy, to, fields.entry("to")) {
        match policy {
            Policy::Fail => {
                report.warn(
                    key.at,
                    "`to` means nothing here: `then: fail` halts the run",
                    "leave `to` out, or use `escalate: true`",
                );
            }
            Policy::Repair(_) if to == Target::End => {
                report.error_help(
                    key.at,
                    "`repair` runs a state again; `END` is not a state",
                    "leave `to` out to run this state again",
                );
            }
            _ => {}
        }
    }
    Some(Gate { when: when?, policy: policy?, to: to? })
}

fn policy(node: &Node, fields: &Fields<'_>, report: &mut Report) -> Option<Policy> {
    const HELP: &str = "a gate has exactly one of `then: ok`, `then: fail`, `repair: N`, `escalate: true`";
    let found: Vec<&str> =
        ["then", "repair", "escalate"].into_iter().filter(|name| fields.get(name).is_some()).collect();
    match found.as_slice() {
        [] => {
            report.error_help(node.at, "the gate does not say what to do", HELP);
            None
        }
        ["then"] => fields::word(fields.get("then")?, "`then`", &[("ok", Policy::Ok), ("fail", Policy::Fail)], report),
        ["repair"] => {
            let times = fields::count(fields.get("repair")?, "`repair`", MAX_REPAIRS, report)?;
            u32::try_from(times).ok().map(Policy::Repair)
        }
        ["escalate"] => {
            let node = fields.get("escalate")?;
            if fields::boolean(node, "`escalate`", report)? {
                return Some(Policy::Escalate);
            }
            report.error_help(node.at, "`escalate` can only be `true`", HELP);
            None
        }
        many => {
            let list = many.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ");
            report.error_help(node.at, format!("the gate has more than one policy: {list}"), HELP);
            None
        }
    }
}

fn target(node: &Node, known: &Names<'_>, report: &mut Report) -> Option<Target> {
    let wanted = fields::text(node, "`to`", report)?;
    if wanted == keys::END {
        return Some(Target::End);
    }
    let found = known.states.iter().position(|state| *state == wanted);
    if found.is_none() {
        let names = known.states.iter().copied().chain([keys::END]);
        report.unknown(node.at, format!("unknown state `{wanted}`"), wanted, names);
    }
    found.map(Target::State)
}
