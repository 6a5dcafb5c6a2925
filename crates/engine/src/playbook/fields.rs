//! Reading a mapping with known keys, and scalars of known types, telling what does not fit.

use std::{rc::Rc, time::Duration};

use serde_json::Value;

use super::{
    diagnostic::{Position, Report},
    keys::KeyDoc,
    units,
    yaml::{Key, Node, NodeKind},
};

/// A mapping whose keys have been checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'n> {
    entries: &'n [(Key, Rc<Node>)],
}

impl<'n> Fields<'n> {
    /// Takes a mapping and tells of keys it should not have. `what` is what it is: "a gate".
    pub(crate) fn of(node: &'n Node, what: &str, tables: &[&'static [KeyDoc]], report: &mut Report) -> Option<Self> {
        let entries = map(node, what, report)?;
        let known: Vec<&str> = tables.iter().flat_map(|table| table.iter().map(|(name, _)| *name)).collect();
        for (key, _) in entries {
            if !known.contains(&key.text.as_str()) {
                report.unknown(
                    key.at,
                    format!("unknown key `{}` in {what}", key.text),
                    &key.text,
                    known.iter().copied(),
                );
            }
        }
        Some(Self { entries })
    }

    /// The value of a key.
    pub(crate) fn get(&self, name: &str) -> Option<&'n Node> {
        self.entry(name).map(|(_, node)| node)
    }

    /// A key with its value.
    pub(crate) fn entry(&self, name: &str) -> Option<(&'n Key, &'n Node)> {
        self.entries.iter().find(|(key, _)| key.text == name).map(|(key, node)| (key, &**node))
    }
}

/// The entries of a mapping.
pub(crate) fn map<'n>(node: &'n Node, what: &str, report: &mut Report) -> Option<&'n [(Key, Rc<Node>)]> {
    match &node.kind {
        NodeKind::Map(entries) => Some(entries),
        _ => wrong(node, what, "a mapping", report),
    }
}

/// The items of a list.
pub(crate) fn list<'n>(node: &'n Node, what: &str, report: &mut Report) -> Option<&'n [Rc<Node>]> {
    match &node.kind {
        NodeKind::List(items) => Some(items),
        _ => wrong(node, what, "a list", report),
    }
}

/// A string.
pub(crate) fn string<'n>(node: &'n Node, what: &str, report: &mut Report) -> Option<&'n str> {
    match &node.kind {
        NodeKind::Scalar { value: Value::String(text), .. } => Some(text),
        NodeKind::Scalar { text, value } if !value.is_null() => {
            let message = format!("{what} must be a string, not {}", node.describe());
            report.error_help(node.at, message, format!("put quotes around it: \"{text}\""));
            None
        }
        _ => wrong(node, what, "a string", report),
    }
}

/// A scalar as it was written: where text is wanted, `8080` and `1.10` are text.
pub(crate) fn text<'n>(node: &'n Node, what: &str, report: &mut Report) -> Option<&'n str> {
    match &node.kind {
        NodeKind::Scalar { value, text } if !value.is_null() => Some(text),
        _ => wrong(node, what, "a string", report),
    }
}

/// `true` or `false`.
pub(crate) fn boolean(node: &Node, what: &str, report: &mut Report) -> Option<bool> {
    match &node.kind {
        NodeKind::Scalar { value: Value::Bool(answer), .. } => Some(*answer),
        _ => wrong(node, what, "`true` or `false`", report),
    }
}

/// A whole number from `1` to `max`.
pub(crate) fn count(node: &Node, what: &str, max: u64, report: &mut Report) -> Option<u64> {
    match &node.kind {
        NodeKind::Scalar { value: Value::Number(number), text } => match number.as_u64() {
            Some(count) if (1..=max).contains(&count) => Some(count),
            _ => {
                report.error(node.at, format!("{what} must be a whole number from 1 to {max}, not {text}"));
                None
            }
        },
        _ => wrong(node, what, "a whole number", report),
    }
}

/// One of a few words.
pub(crate) fn word<T: Copy>(node: &Node, what: &str, words: &[(&'static str, T)], report: &mut Report) -> Option<T> {
    let given = text(node, what, report)?;
    if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == given) {
        return Some(*meaning);
    }
    let known = words.iter().map(|(word, _)| *word);
    let list = known.clone().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or ");
    report.unknown(node.at, format!("{what} must be {list}, not `{given}`"), given, known);
    None
}

/// A duration such as `10m`.
pub(crate) fn duration(node: &Node, what: &str, report: &mut Report) -> Option<Duration> {
    const HELP: &str = "write a number and a unit, `ms`, `s`, `m`, `h` or `d`: `500ms`, `10s`, `1h30m`";
    let given = text(node, what, report)?;
    let read = units::duration(given);
    if read.is_none() {
        report.error_help(node.at, format!("{what} is not a duration: `{given}`"), HELP);
    }
    read
}

/// A size such as `64MiB`.
pub(crate) fn bytes(node: &Node, what: &str, report: &mut Report) -> Option<u64> {
    const HELP: &str = "write a whole number of bytes or a number and a unit, such as `KB`, `MiB`, `GiB`: `64MiB`";
    let given = text(node, what, report)?;
    let read = units::bytes(given);
    if read.is_none() {
        report.error_help(node.at, format!("{what} is not a size: `{given}`"), HELP);
    }
    read
}

/// A name that has to look a certain way.
pub(crate) fn name(
    at: Position,
    text: &str,
    what: &str,
    good: fn(&str) -> bool,
    form: &str,
    report: &mut Report,
) -> bool {
    let fits = good(text);
    if !fits {
        report.error_help(at, format!("{what} cannot be called `{text}`"), form);
    }
    fits
}

fn wrong<T>(node: &Node, what: &str, wanted: &str, report: &mut Report) -> Option<T> {
    report.error(node.at, format!("{what} must be {wanted}, not {}", node.describe()));
    None
}
