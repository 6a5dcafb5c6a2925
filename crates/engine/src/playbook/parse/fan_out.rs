//! `over:`, `sample:`, `max_parallel:`.

use crate::playbook::{
    diagnostic::Report,
    fields::{self, Fields},
    model::{FanOut, Over, TemplateValue},
    yaml::{Node, NodeKind},
};

use super::{Names, refs};

/// Most branches of one state: each is a process.
const MAX_BRANCHES: u64 = 10_000;

pub(super) fn is_fan_out(fields: &Fields<'_>) -> bool {
    fields.get("over").is_some() || fields.get("sample").is_some()
}

/// Reads the fan-out of a state; the outer `None` is an error, the inner one "runs once".
pub(super) fn fan_out(fields: &Fields<'_>, known: &Names<'_>, report: &mut Report) -> Option<Option<FanOut>> {
    let max_parallel = match fields.get("max_parallel") {
        None => None,
        Some(node) => {
            let count = fields::count(node, "`max_parallel`", MAX_BRANCHES, report);
            if !is_fan_out(fields) {
                report.error_help(
                    node.at,
                    "`max_parallel` means nothing without branches",
                    "add `over: LIST` or `sample: N` to the state",
                );
            }
            Some(usize::try_from(count?).ok()?)
        }
    };
    let over = match (fields.entry("over"), fields.entry("sample")) {
        (None, None) => return Some(None),
        (Some(_), Some((key, _))) => {
            report.error_help(key.at, "a state has `over` or `sample`, not both", "leave one of them out");
            return None;
        }
        (Some((_, node)), None) => Over::Items(items(node, known, report)?),
        (None, Some((_, node))) => {
            Over::Sample(u32::try_from(fields::count(node, "`sample`", MAX_BRANCHES, report)?).ok()?)
        }
    };
    Some(Some(FanOut { over, max_parallel }))
}

fn items(node: &Node, known: &Names<'_>, report: &mut Report) -> Option<TemplateValue> {
    const HELP: &str = "write a list, or exactly one template: over: \"{{ inputs.targets }}\"";
    match &node.kind {
        NodeKind::List(items) if items.is_empty() => {
            report.error(node.at, "`over` is an empty list: the state would never run");
            None
        }
        NodeKind::List(items) if u64::try_from(items.len()).is_ok_and(|items| items > MAX_BRANCHES) => {
            report.error(node.at, format!("`over` has {} items; the limit is {MAX_BRANCHES}", items.len()));
            None
        }
        NodeKind::List(_) => refs::value(node, refs::Place::Over, known, report),
        NodeKind::Map(_) => {
            report.error_help(node.at, "`over` must be a list, not a mapping", HELP);
            None
        }
        NodeKind::Scalar { .. } => {
            let template = refs::template(node, "`over`", refs::Place::Over, known, report)?;
            if !template.is_expression() {
                report.error_help(node.at, format!("`over` must give a list, not {}", node.describe()), HELP);
                return None;
            }
            Some(TemplateValue::Text(template))
        }
    }
}
