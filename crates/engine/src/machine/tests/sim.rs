//! A world in which a machine runs: processes end as the script says, checkpoints are kept as the log would keep them.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value, json};
use taffrail_mcp_core::{ApprovalRequested, Decision, Event, Exit};

use super::super::{
    Books, Effect, Ended, Fact, IdSource, Machine, Reading, Resolution, ResumeData, ResumeError, Setup, Stop, Task,
    TaskId, language,
};
use crate::{playbook::Playbook, process::Program};

/// One thing that happens.
#[derive(Debug, Clone)]
pub(crate) enum Do {
    /// The process with this number exits with this code and has printed this.
    Exit(u64, i32, &'static str),
    /// The process ends in another way.
    Ends(u64, Exit),
    /// The process does not start.
    NoSpawn(u64),
    /// The code around the process panicked.
    Lost(u64),
    /// From outside.
    Stop(Stop),
    /// So much wall time has gone by.
    Wall(u64),
    /// Resume with a decision.
    Decide(Decision, Option<Value>),
    /// Resume as after an interruption.
    Again,
}

pub(crate) struct Sim {
    pub(crate) machine: Machine,
    ids: Arc<dyn IdSource>,
    pub(crate) reading: Reading,
    /// All events of all sessions.
    pub(crate) events: Vec<Event>,
    /// What the tests show.
    pub(crate) lines: Vec<String>,
    pub(crate) running: BTreeMap<TaskId, Task>,
    /// The step that started last when a task was started: with the branch, it names what is done.
    pub(crate) step_of: BTreeMap<TaskId, u64>,
    pub(crate) ended: Option<Ended>,
    pub(crate) inputs: Map<String, Value>,
}

pub(crate) fn playbook(source: &str) -> Arc<Playbook> {
    Arc::new(language::parse(source).unwrap_or_else(|error| panic!("{error}\n{source}")))
}

/// The first source is the playbook; it may call the others.
pub(crate) fn books(sources: &[&str]) -> (Arc<Playbook>, Books) {
    let all: Vec<_> = sources.iter().map(|source| playbook(source)).collect();
    let find = |name: &str| {
        all.iter().find(|book| book.name == name).cloned().ok_or_else(|| format!("there is no playbook `{name}`"))
    };
    (Arc::clone(&all[0]), Books::collect(&all[0], find))
}

fn counting() -> Arc<dyn IdSource> {
    let next = AtomicU64::new(1);
    Arc::new(move || format!("id-{}", next.fetch_add(1, Ordering::Relaxed)))
}

impl Sim {
    pub(crate) fn start(sources: &[&str], inputs: Value) -> Self {
        let (top, books) = books(sources);
        let ids = counting();
        let inputs = inputs.as_object().cloned().unwrap_or_default();
        let setup = Setup { books, cwd: PathBuf::from("/base"), parallel: 2, ids: Arc::clone(&ids) };
        let mut sim = Self {
            machine: Machine::new(&top, &inputs, setup),
            ids,
            reading: Reading::default(),
            events: Vec::new(),
            lines: Vec::new(),
            running: BTreeMap::new(),
            step_of: BTreeMap::new(),
            ended: None,
            inputs,
        };
        sim.settle();
        sim
    }

    /// Takes effects until there are none.
    pub(crate) fn settle(&mut self) {
        while let Some(effect) = self.machine.poll(&self.reading) {
            assert!(self.ended.is_none(), "an effect after the end: {effect:?}");
            match effect {
                Effect::Emit(event) => {
                    self.lines.push(line(&event));
                    self.events.push(event);
                }
                Effect::Run(task) => {
                    self.lines.push(format!("> {}", command(&task)));
                    self.step_of.insert(task.id, self.machine.steps);
                    assert!(self.running.insert(task.id, *task).is_none(), "a task id was used twice");
                }
                Effect::EndTasks => self.lines.push("> end tasks".to_owned()),
                Effect::End(ended) => self.ended = Some(ended),
            }
        }
    }

    pub(crate) fn fact(&mut self, fact: Fact) {
        if let Fact::Exited { task, .. } | Fact::SpawnFailed { task, .. } | Fact::Lost { task, .. } = &fact {
            self.running.remove(task);
        }
        self.machine.handle(fact);
        self.settle();
    }

    pub(crate) fn act(&mut self, what: &Do) {
        match what.clone() {
            Do::Exit(task, code, out) => self.exit(TaskId(task), Exit::Code(code), out),
            Do::Ends(task, exit) => self.exit(TaskId(task), exit, ""),
            Do::NoSpawn(task) => {
                self.fact(Fact::SpawnFailed { task: TaskId(task), code: 127, detail: "no such program".to_owned() });
            }
            Do::Lost(task) => self.fact(Fact::Lost { task: TaskId(task), detail: "it panicked".to_owned() }),
            Do::Stop(stop) => self.fact(Fact::Stop(stop)),
            Do::Wall(seconds) => {
                self.reading.wall += Duration::from_secs(seconds);
                self.settle();
            }
            Do::Decide(decision, content) => {
                let resolution = self.resolution(decision, content);
                self.resume(Some(resolution)).unwrap();
            }
            Do::Again => self.resume(None).unwrap(),
        }
    }

    pub(crate) fn exit(&mut self, task: TaskId, exit: Exit, out: &str) {
        self.fact(Fact::Exited { task, exit, stdout: out.as_bytes().to_vec(), truncated: false });
    }

    pub(crate) fn requested(&self) -> &ApprovalRequested {
        let asked = self.events.iter().rev().find_map(|event| match event {
            Event::ApprovalRequested(event) => Some(event),
            _ => None,
        });
        asked.expect("something was asked")
    }

    pub(crate) fn resolution(&self, decision: Decision, content: Option<Value>) -> Resolution {
        let ApprovalRequested { approval, hash, .. } = self.requested().clone();
        Resolution { approval, hash, decision, content }
    }

    /// The checkpoints, as the log has them.
    pub(crate) fn checkpoints(&self) -> Vec<Value> {
        let resume =
            |event: &Event| if let Event::Checkpoint(event) = event { Some(event.resume.clone()) } else { None };
        self.events.iter().filter_map(resume).collect()
    }

    /// Goes on from the last checkpoint, as another process would.
    pub(crate) fn resume(&mut self, resolution: Option<Resolution>) -> Result<(), ResumeError> {
        let checkpoints = self.checkpoints();
        let data = ResumeData::read(&checkpoints[0], checkpoints.last().unwrap())?;
        self.resume_from(data, resolution)
    }

    pub(crate) fn resumed(&self, data: ResumeData, resolution: Option<Resolution>) -> Result<Machine, ResumeError> {
        let (inputs, ids) = (self.inputs.clone(), Arc::clone(&self.ids));
        Machine::resume(data, resolution, inputs, PathBuf::from("/elsewhere"), 2, ids)
    }

    pub(crate) fn resume_from(&mut self, data: ResumeData, resolution: Option<Resolution>) -> Result<(), ResumeError> {
        self.machine = self.resumed(data, resolution)?;
        self.lines.push("---".to_owned());
        (self.ended, self.running) = (None, BTreeMap::new());
        self.settle();
        Ok(())
    }
}

/// Runs a script and shows everything.
pub(crate) fn run(sources: &[&str], inputs: Value, script: &[Do]) -> String {
    let mut sim = Sim::start(sources, inputs);
    script.iter().for_each(|what| sim.act(what));
    if sim.ended.is_none() {
        sim.lines.push("(goes on)".to_owned());
    }
    sim.lines.join("\n")
}

/// An event on one line, indented by its depth, without what is the same everywhere.
pub(crate) fn line(event: &Event) -> String {
    let mut value = serde_json::to_value(event).unwrap();
    let fields = value.as_object_mut().unwrap();
    let depth = fields.remove("depth").and_then(|depth| depth.as_u64()).unwrap_or(0);
    for absent in ["type", "usage", "resume", "hash"] {
        fields.remove(absent);
    }
    fields.retain(|_, value| !value.is_null() && *value != json!("") && *value != json!(false));
    let mut words: Vec<String> = fields
        .iter()
        .map(|(name, value)| match value {
            Value::String(text) => format!("{name}={text}"),
            other => format!("{name}={other}"),
        })
        .collect();
    words.sort();
    format!("{}{} {}", "  ".repeat(depth as usize), event.kind(), words.join(" "))
}

fn command(task: &Task) -> String {
    let command = &task.command;
    let what = match &command.program {
        Program::Shell(script) => format!("sh {script:?}"),
        Program::Exec(words) => format!("{words:?}"),
    };
    let index = command.index.map(|index| format!("[{index}]")).unwrap_or_default();
    let env: Vec<_> = command.env.iter().skip(1).map(|(name, value)| format!(" {name}={value}")).collect();
    format!("{} {}{index} {what} in {}{}", task.id.0, command.state, command.cwd.display(), env.concat())
}
