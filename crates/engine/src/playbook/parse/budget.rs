//! `budget:`.

use std::time::Duration;

use crate::playbook::{
    diagnostic::Report,
    fields::{self, Fields},
    keys,
    model::Budget,
    yaml::Node,
};

/// The budget of a playbook that says nothing.
impl Default for Budget {
    fn default() -> Self {
        Self { steps: 200, wall: Duration::from_secs(24 * 60 * 60), output_bytes: 1 << 30 }
    }
}

pub(super) fn budget(node: Option<&Node>, report: &mut Report) -> Budget {
    let mut budget = Budget::default();
    let Some(fields) = node.and_then(|node| Fields::of(node, "`budget`", &[keys::BUDGET], report)) else {
        return budget;
    };
    // More steps than this is no limit.
    const MAX_STEPS: u64 = 1_000_000_000;
    if let Some(steps) = fields.get("steps").and_then(|node| fields::count(node, "`steps`", MAX_STEPS, report)) {
        budget.steps = steps;
    }
    if let Some(wall) = fields.get("wall").and_then(|node| fields::duration(node, "`wall`", report)) {
        budget.wall = wall;
    }
    if let Some(bytes) = fields.get("output").and_then(|node| fields::bytes(node, "`output`", report)) {
        budget.output_bytes = bytes;
    }
    budget
}
