//! The parser: from text to a checked [`Playbook`], or to everything that is wrong with it.
//!
//! It reads in three passes over one tree: names first (inputs, outputs, states), because everything may refer to what
//! stands further down; then each part, going on after an error; then the flow between the states.

mod action;
mod ask;
mod budget;
mod fan_out;
mod flow;
mod gates;
mod inputs;
mod refs;
mod state;
#[cfg(test)]
mod tests;

use std::rc::Rc;

use super::{
    diagnostic::{Diagnostic, Report},
    fields::{self, Fields},
    keys,
    model::{Playbook, State},
    names,
    yaml::{self, Key, Node, NodeKind},
};

pub(crate) use inputs::{KINDS, fits};

/// What reading a source gave.
#[derive(Debug)]
pub struct Parsed {
    /// The playbook; `None` exactly when there is an error among the diagnostics.
    pub playbook: Option<Playbook>,
    /// All problems, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a playbook from YAML (or JSON) text. `origin` names the source in messages: its path, mostly.
///
/// Never panics and never stops at the first problem, whatever the text. Costs time and memory in proportion to the
/// text, of at most 1 MiB.
///
/// ```
/// use taffrail_engine::playbook::parse;
/// let parsed = parse("playbook: hello\nstates:\n  greet: { run: echo hello, timeout: 10 }\n", "hello.yaml");
/// assert!(parsed.playbook.is_none());
/// assert_eq!(
///     parsed.diagnostics[0].to_string().lines().next(),
///     Some("hello.yaml:3:38: error: `timeout` is not a duration: `10`"),
/// );
/// ```
#[must_use]
pub fn parse(source: &str, origin: &str) -> Parsed {
    let mut report = Report::new(origin);
    let playbook = yaml::read(source, &mut report).and_then(|root| playbook(&root, source, &mut report));
    let playbook = playbook.filter(|_| !report.has_errors());
    Parsed { playbook, diagnostics: report.into_diagnostics() }
}

/// What the parts need to know of each other.
struct Names<'n> {
    inputs: Vec<&'n str>,
    /// Names under `ctx`.
    outputs: Vec<&'n str>,
    states: Vec<&'n str>,
}

fn playbook(root: &Node, source: &str, report: &mut Report) -> Option<Playbook> {
    let fields = Fields::of(root, "a playbook", &[keys::PLAYBOOK], report)?;
    let name = match fields.get("playbook") {
        Some(node) => fields::string(node, "`playbook`", report).filter(|name| {
            fields::name(node.at, name, "a playbook", names::is_kebab, "use kebab-case: `deploy-one`", report)
        }),
        None => {
            report.error_help(root.at, "the playbook has no name", "add `playbook: NAME`");
            None
        }
    };
    let description = fields.get("description").and_then(|node| fields::string(node, "`description`", report));
    let known = collect_names(&fields);
    let inputs = fields.get("inputs").map_or_else(Vec::new, |node| inputs::inputs(node, report));
    let budget = budget::budget(fields.get("budget"), report);

    let Some(states_node) = fields.get("states") else {
        report.error_help(root.at, "the playbook has no states", "add `states:` with at least one state");
        return None;
    };
    let entries = fields::map(states_node, "`states`", report)?;
    if entries.is_empty() {
        report.error(states_node.at, "`states` has no state in it");
        return None;
    }
    let entry = entry(&fields, &known, report);
    let states: Vec<Option<State>> = entries
        .iter()
        .map(|(key, node)| {
            state_name(key, report);
            state::state(key, node, &inputs, &known, report)
        })
        .collect();
    // A state that could not be read may lead anywhere: what it leads to is then not known to be unreachable.
    let states: Vec<State> = states.into_iter().collect::<Option<_>>()?;
    let entry = entry?;
    flow::check(entries, &states, entry, report);
    Some(Playbook {
        name: name?.to_owned(),
        description: description.unwrap_or_default().trim().to_owned(),
        inputs,
        budget,
        entry,
        states,
        source: source.into(),
    })
}

fn entry(fields: &Fields<'_>, known: &Names<'_>, report: &mut Report) -> Option<usize> {
    let Some(node) = fields.get("entry") else { return Some(0) };
    let wanted = fields::string(node, "`entry`", report)?;
    let found = known.states.iter().position(|state| *state == wanted);
    if found.is_none() {
        report.unknown(node.at, format!("`entry` is not a state: `{wanted}`"), wanted, known.states.iter().copied());
    }
    found
}

fn state_name(key: &Key, report: &mut Report) {
    if key.text == keys::END {
        report.error_help(key.at, "a state cannot be called `END`", "`END` is where a playbook ends");
    } else {
        let form = "use lower-case letters, digits, `-` and `_`: `run-tests`";
        fields::name(key.at, &key.text, "a state", names::is_state, form, report);
    }
}

/// The first pass. Looks at shapes only; what is wrong with them is told later.
fn collect_names<'n>(fields: &Fields<'n>) -> Names<'n> {
    let entries = |node: &'n Node| -> &'n [(Key, Rc<Node>)] {
        match &node.kind {
            NodeKind::Map(entries) => entries,
            _ => &[],
        }
    };
    let of = |name: &str| fields.get(name).map_or(&[][..], entries);
    let outputs = of("states").iter().flat_map(|(_, state)| entries(state)).filter(|(key, _)| key.text == "output");
    Names {
        inputs: of("inputs").iter().map(|(key, _)| key.text.as_str()).collect(),
        outputs: outputs
            .filter_map(|(_, node)| match &node.kind {
                NodeKind::Scalar { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect(),
        states: of("states").iter().map(|(key, _)| key.text.as_str()).collect(),
    }
}
