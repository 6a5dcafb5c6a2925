//! One state.

use crate::playbook::{
    diagnostic::Report,
    fields::{self, Fields},
    keys::{self, names as key_names},
    model::{InputSpec, Parse, State},
    names,
    yaml::{Key, Node},
};

use super::{Names, action, fan_out, gates, refs};

pub(super) fn state(
    key: &Key,
    node: &Node,
    inputs: &[InputSpec],
    known: &Names<'_>,
    report: &mut Report,
) -> Option<State> {
    let what = format!("state `{}`", key.text);
    let fields = Fields::of(node, &what, &[keys::ACTIONS, keys::STATE], report)?;
    let kind = kind(key, &fields, report);
    if let Some(kind) = kind {
        belongs(&fields, kind, report);
    }
    let place = if fan_out::is_fan_out(&fields) { refs::Place::Branch } else { refs::Place::Once };
    // Each part is read whatever became of the others, so that all problems are told at once.
    let action = kind.and_then(|kind| action::action(kind, &fields, place, inputs, known, report));
    let fan_out = fan_out::fan_out(&fields, known, report);
    let subject = refs::Subject { fan_out: place == refs::Place::Branch, action: kind.unwrap_or("run") };
    let gates = gates::gates(fields.get("gates"), subject, known, report);
    let output = fields.get("output").and_then(|node| {
        let name = fields::string(node, "`output`", report)?;
        let form = "use letters, digits and `_`, not a digit first: `test_results`";
        fields::name(node.at, name, "an output", names::is_identifier, form, report).then(|| name.to_owned())
    });
    let parse = fields
        .get("parse")
        .and_then(|node| fields::word(node, "`parse`", &[("text", Parse::Text), ("json", Parse::Json)], report));
    Some(State {
        name: key.text.clone(),
        action: action?,
        fan_out: fan_out?,
        gates: gates?,
        output,
        parse: parse.unwrap_or_default(),
    })
}

/// The one action the state has.
fn kind(key: &Key, fields: &Fields<'_>, report: &mut Report) -> Option<&'static str> {
    let found: Vec<&'static str> = key_names(keys::ACTIONS).filter(|name| fields.get(name).is_some()).collect();
    match found.as_slice() {
        [one] => Some(one),
        [] => {
            report.error_help(
                key.at,
                format!("state `{}` does nothing", key.text),
                "give it one of `run`, `exec`, `call`, `approve`, `ask`",
            );
            None
        }
        many => {
            let list = many.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ");
            report.error_help(
                key.at,
                format!("state `{}` does more than one thing: {list}", key.text),
                "a state does one thing; make it several states",
            );
            None
        }
    }
}

/// Tells of keys that mean nothing with this action.
fn belongs(fields: &Fields<'_>, kind: &str, report: &mut Report) {
    for (name, kinds) in keys::BELONGS {
        let Some((key, _)) = fields.entry(name).filter(|_| !kinds.contains(&kind)) else { continue };
        let list = kinds.iter().map(|kind| format!("`{kind}`")).collect::<Vec<_>>().join(", ");
        report.error_help(
            key.at,
            format!("`{name}` does not go with `{kind}`"),
            format!("it belongs to states with {list}"),
        );
    }
}
