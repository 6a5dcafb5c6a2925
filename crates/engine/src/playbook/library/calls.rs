//! The calls of a playbook against the folder it lives in.

use std::{collections::HashMap, sync::Arc};

use crate::playbook::{
    diagnostic::{Position, Report, closest},
    model::{Action, CallSpec, Playbook},
    yaml::{self, NodeKind},
};

use super::{Library, LibraryError, MAX_CALL_DEPTH};

/// Tells of everything that is wrong with the calls of `playbook`, at the places where they are written.
pub(super) fn check(library: &Library, playbook: &Playbook, report: &mut Report) {
    let mut graph = Graph { library, known: HashMap::new() };
    for state in &playbook.states {
        let Action::Call(call) = &state.action else { continue };
        let at = position_of(&playbook.source, &["states", &state.name, "call"]);
        if call.playbook == playbook.name {
            inputs(playbook, call, playbook, &state.name, at, report);
            again(&[playbook.name.as_str(), playbook.name.as_str()], at, report);
            continue;
        }
        match library.load(&call.playbook) {
            Ok(loaded) => {
                inputs(playbook, call, &loaded.playbook, &state.name, at, report);
                let mut path = vec![playbook.name.clone()];
                match graph.walk(&call.playbook, &mut path) {
                    Walk::Fine(_) => {}
                    Walk::TooDeep(path) => report.error_help(
                        at,
                        format!("calls go deeper than {MAX_CALL_DEPTH}: {}", path.join(" → ")),
                        "call from fewer levels",
                    ),
                    Walk::Again(path) => {
                        again(&path.iter().map(String::as_str).collect::<Vec<_>>(), at, report);
                    }
                }
            }
            Err(LibraryError::NotFound { help, .. }) => {
                let message = format!("no playbook `{}` in {}", call.playbook, library.folder().display());
                match help {
                    Some(help) => report.error_help(at, message, help),
                    None => report.error(at, message),
                }
            }
            Err(LibraryError::Invalid { diagnostics }) => {
                let why = diagnostics.first().map(ToString::to_string).unwrap_or_default();
                report.error_help(at, format!("playbook `{}` cannot run", call.playbook), why);
            }
            Err(error) => report.error(at, error.to_string()),
        }
    }
}

fn again(path: &[&str], at: Position, report: &mut Report) {
    report.warn(
        at,
        format!("calls come back to where they started: {}", path.join(" → ")),
        format!("make sure that a gate ends this; calls deeper than {MAX_CALL_DEPTH} fail"),
    );
}

/// Compares what a call gives with what the called playbook declares.
fn inputs(caller: &Playbook, call: &CallSpec, callee: &Playbook, state: &str, at: Position, report: &mut Report) {
    let known: Vec<&str> = callee.inputs.iter().map(|input| input.name.as_str()).collect();
    for (name, _) in &call.with {
        if !known.contains(&name.as_str()) {
            let at = position_of(&caller.source, &["states", state, "with", name]);
            let message = format!("playbook `{}` has no input `{name}`", callee.name);
            match closest(name, &known) {
                Some(best) => report.error_help(at, message, format!("did you mean `{best}`?")),
                None => report.error(at, message),
            }
        }
    }
    for input in callee.inputs.iter().filter(|input| input.required && input.default.is_none()) {
        if !call.with.iter().any(|(name, _)| *name == input.name) {
            report.error_help(
                at,
                format!("playbook `{}` needs the input `{}`", callee.name, input.name),
                format!("add `with: {{ {}: … }}`", input.name),
            );
        }
    }
}

/// What lies below a playbook.
#[derive(Clone)]
enum Walk {
    /// Levels below it, itself included.
    Fine(usize),
    /// The chain that is too long.
    TooDeep(Vec<String>),
    /// The chain that comes back.
    Again(Vec<String>),
}

struct Graph<'l> {
    library: &'l Library,
    /// What lies below, where that is fine: a folder of many calls is walked once, not once a path.
    known: HashMap<String, usize>,
}

impl Graph<'_> {
    /// Recursion ends at [`MAX_CALL_DEPTH`].
    fn walk(&mut self, name: &str, path: &mut Vec<String>) -> Walk {
        if path.iter().any(|above| above == name) {
            let start = path.iter().position(|above| above == name).unwrap_or_default();
            let mut cycle = path.get(start..).unwrap_or_default().to_vec();
            cycle.push(name.to_owned());
            return Walk::Again(cycle);
        }
        if let Some(levels) = self.known.get(name)
            && path.len() + levels <= MAX_CALL_DEPTH
        {
            return Walk::Fine(*levels);
        }
        path.push(name.to_owned());
        if path.len() > MAX_CALL_DEPTH {
            return Walk::TooDeep(path.clone());
        }
        let mut levels = 0;
        for called in self.calls(name) {
            match self.walk(&called, path) {
                Walk::Fine(below) => levels = levels.max(below),
                bad => return bad,
            }
        }
        path.pop();
        self.known.insert(name.to_owned(), levels + 1);
        Walk::Fine(levels + 1)
    }

    /// Calls of a playbook further down; when it cannot be read, its own check says so.
    fn calls(&self, name: &str) -> Vec<String> {
        let Ok(loaded) = self.library.load(name) else { return Vec::new() };
        let playbook: Arc<Playbook> = loaded.playbook;
        let called = playbook.states.iter().filter_map(|state| match &state.action {
            Action::Call(call) => Some(call.playbook.clone()),
            _ => None,
        });
        called.collect()
    }
}

/// Where the value under a path of keys stands; the model does not keep positions, the source has them.
pub(super) fn position_of(source: &str, path: &[&str]) -> Position {
    let mut report = Report::new("");
    let Some(mut node) = yaml::read(source, &mut report) else { return Position::START };
    for name in path {
        let NodeKind::Map(entries) = &node.kind else { break };
        let Some((_, value)) = entries.iter().find(|(key, _)| key.text == *name) else { break };
        node = value.clone();
    }
    node.at
}
