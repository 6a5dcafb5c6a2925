//! From a state's command to a process to run: everything rendered, everything decided.

use std::{ffi::OsString, path::Path};

use serde_json::Value;

use super::{
    Effect, Machine, Task, TaskId,
    frame::{BranchEnd, LaneId, Shown, StateResult},
    step::{Place, Work},
};
use crate::{
    playbook::{self, Parse, ProcessSpec, Scope, TemplateError},
    process::{self, Command},
};

/// Bytes of the end of a text output that are kept.
pub(super) const OUTPUT_BYTES: usize = 64 * 1024;

/// Renders a command.
pub(super) fn render(state: &str, spec: &ProcessSpec, scope: &Scope, base: &Path) -> Result<Command, TemplateError> {
    let program = match &spec.program {
        playbook::Program::Shell(script) => process::Program::Shell(script.clone()),
        playbook::Program::Exec(words) => process::Program::Exec(
            words.iter().map(|word| word.render(scope).map(OsString::from)).collect::<Result<_, _>>()?,
        ),
    };
    let cwd = match &spec.cwd {
        Some(template) => base.join(template.render(scope)?),
        None => base.to_owned(),
    };
    let mut command = Command::new(program, cwd, state);
    command.env.push(("TAFFRAIL_STATE".to_owned(), state.to_owned()));
    match &scope.item {
        Some(Value::String(text)) => command.env.push(("ITEM".to_owned(), text.clone())),
        Some(other) => command.env.push(("ITEM".to_owned(), other.to_string())),
        None => {}
    }
    command.env.extend(scope.index.map(|index| ("INDEX".to_owned(), index.to_string())));
    for (name, value) in &spec.env {
        command.env.push((name.clone(), value.render(scope)?));
    }
    command.timeout = spec.timeout;
    command.detach = spec.detach;
    command.emit_message = spec.emit_message;
    command.index = scope.index;
    Ok(command)
}

impl Machine {
    /// Starts a rendered process.
    pub(super) fn launch(&mut self, mut command: Command, place: Place) {
        let id = TaskId(self.next_task);
        self.next_task += 1;
        command.index = command.index.or_else(|| self.lanes.get(&place.lane)?.index);
        self.tasks.insert(id, place);
        self.effect(Effect::Run(Box::new(Task { id, command })));
    }

    /// A process, or what stood for it, has ended.
    pub(super) fn task_ended(&mut self, place: Place, end: impl FnOnce(Parse, usize) -> BranchEnd) {
        let Some(frame) = self.top(place.lane) else { return };
        let parse = frame.state().map(|state| state.parse).unwrap_or_default();
        let keep = frame.fan.as_ref().map_or(OUTPUT_BYTES, |fan| fan.keep_bytes);
        let end = end(parse, keep);
        match place.branch {
            Some(branch) => self.branch_ended(place.lane, branch, end),
            None => self.alone_ended(place.lane, end, Shown::Process),
        }
    }

    /// What a state without fan-out does has ended.
    pub(super) fn alone_ended(&mut self, lane: LaneId, end: BranchEnd, shown: Shown) {
        let BranchEnd { item: _, exit, output, failure, truncated } = end;
        let result = StateResult {
            exit: Some((exit, shown)),
            output: Some(output),
            failure,
            truncated,
            ..StateResult::default()
        };
        self.later(Work::Settle(lane, Box::new(result)));
    }
}
