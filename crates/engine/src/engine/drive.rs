//! One session of a run: the loop between the machine and the world.

use std::{any::Any, future, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt;
use taffrail_mcp_core::{Event, EventSink};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{Job, door::Door, outlet::Outlet};
use crate::{
    machine::{Effect, Ended, Fact, Machine, Reading, Stop, Task},
    process::{self, Cancel, OutputBudget, Scope},
};

/// Effects carried out before other tasks of the runtime get a turn: a playbook may loop without ever waiting.
const EFFECTS_PER_TURN: u32 = 128;

/// How a run begins, where somebody took that out before it was driven.
#[derive(Default)]
pub(super) struct Opening {
    /// What was taken.
    events: Vec<Event>,
    /// What comes next, when it is no event.
    next: Option<Effect>,
}

impl Opening {
    /// Polls the machine up to its first checkpoint, or to the end of the run.
    pub(super) fn take(machine: &mut Machine, used: &Reading) -> Self {
        let mut opening = Self::default();
        while opening.next.is_none() && !opening.events.last().is_some_and(is_enough) {
            match machine.poll(used) {
                Some(Effect::Emit(event)) => opening.events.push(event),
                next @ Some(_) => opening.next = next,
                None => break,
            }
        }
        opening
    }

    pub(super) fn events(&self) -> &[Event] {
        &self.events
    }
}

fn is_enough(event: &Event) -> bool {
    matches!(event, Event::Checkpoint(_)) || is_last(event)
}

fn is_last(event: &Event) -> bool {
    matches!(event, Event::RunFinished(end) if end.depth == 0)
}

pub(super) struct Session {
    machine: Machine,
    door: Arc<Door>,
    env: Vec<(String, String)>,
    cancel: Cancel,
    shutdown: Cancel,
    /// Ends the processes; a cancel of the run reaches them by itself.
    end_tasks: Cancel,
    scope: Scope,
    output: OutputBudget,
    /// What earlier sessions used.
    used: Reading,
    began: Instant,
    tasks: JoinSet<Fact>,
    stopped: bool,
}

impl Session {
    pub(super) fn new(machine: Machine, job: Job, used: Reading) -> Self {
        let Job { run, thread, inputs: _, cwd: _, env, usage: _, sink, cancel, shutdown, ids: _ } = job;
        let own = [("TAFFRAIL_RUN", run.as_str()), ("TAFFRAIL_THREAD", thread.as_str())];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        // What is clipped is everything after one moment, also when that was in an earlier session.
        let kept = if used.clipped_bytes > 0 { u64::MAX } else { used.log_bytes };
        let output = OutputBudget::new(machine.budget().output_bytes).already_used(kept);
        Self {
            machine,
            door: Arc::new(Door::new(sink)),
            env: own.into_iter().chain(env).collect(),
            end_tasks: cancel.child(),
            cancel,
            shutdown,
            scope: Scope::new(run.as_str()),
            output,
            used,
            began: Instant::now(),
            tasks: JoinSet::new(),
            stopped: false,
        }
    }

    /// Drives the machine to its end, through anything.
    pub(super) async fn drive(mut self, name: String, opening: Opening) -> Ended {
        let mut outlet = Outlet::new(self.sink(), name);
        let Opening { events, next } = opening;
        for event in &events {
            outlet.note(event);
        }
        if events.last().is_some_and(is_last) {
            self.door.close();
        }
        match AssertUnwindSafe(self.run(&mut outlet, next)).catch_unwind().await {
            Ok(ended) => ended,
            Err(panic) => outlet.fail(text_of(&*panic)),
        }
    }

    async fn run(&mut self, outlet: &mut Outlet, mut next: Option<Effect>) -> Ended {
        let mut turn = 0;
        loop {
            // A process that was cancelled must not look like one that ended by itself, so this comes before its fact.
            self.look_for_stop();
            let reading = self.reading();
            outlet.note_usage(reading.usage(0));
            match next.take().or_else(|| self.machine.poll(&reading)) {
                Some(Effect::Emit(event)) => outlet.emit(event),
                Some(Effect::Run(task)) => self.launch(*task),
                Some(Effect::EndTasks) => self.end_tasks.cancel(),
                Some(Effect::End(ended)) => return ended,
                None => {
                    let fact = self.next_fact().await;
                    self.look_for_stop();
                    if let Some(fact) = fact {
                        self.machine.handle(fact);
                    }
                }
            }
            turn += 1;
            if turn % EFFECTS_PER_TURN == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    fn look_for_stop(&mut self) {
        if self.stopped {
            return;
        }
        let stop = if self.cancel.is_cancelled() {
            Stop::Cancel
        } else if self.shutdown.is_cancelled() {
            Stop::Shutdown
        } else {
            return;
        };
        self.stopped = true;
        self.machine.handle(Fact::Stop(stop));
    }

    /// Waits for the next thing that happens; `None` when it is time to look at the clock or at a request to stop.
    async fn next_fact(&mut self) -> Option<Fact> {
        let left = self.machine.budget().wall.saturating_sub(self.reading().wall);
        let due = Instant::now().checked_add(left).filter(|_| !left.is_zero());
        tokio::select! {
            biased;
            () = self.cancel.cancelled(), if !self.stopped => None,
            () = self.shutdown.cancelled(), if !self.stopped => None,
            () = self.shutdown.killed(), if !self.end_tasks.is_killed() => {
                self.end_tasks.kill();
                None
            }
            Some(ended) = self.tasks.join_next() => match ended {
                Ok(fact) => Some(fact),
                // Panics are caught inside; this is a runtime that shuts down.
                Err(_) => future::pending().await,
            },
            () = at(due) => None,
        }
    }

    fn launch(&mut self, task: Task) {
        let Task { id, mut command } = task;
        command.env.splice(0..0, self.env.iter().cloned());
        let (sink, output, scope) = (self.sink(), self.output.clone(), self.scope.clone());
        let cancel = self.end_tasks.clone();
        self.tasks.spawn(async move {
            let run = process::run(&command, &sink, &output, &scope, &cancel);
            match AssertUnwindSafe(run).catch_unwind().await {
                Ok(Ok(outcome)) => {
                    let process::Outcome { exit, cancelled: _, stdout, truncated } = outcome;
                    Fact::Exited { task: id, exit, stdout, truncated }
                }
                Ok(Err(error)) => Fact::SpawnFailed { task: id, code: error.exit_code(), detail: explain(&error) },
                Err(panic) => Fact::Lost { task: id, detail: text_of(&*panic) },
            }
        });
    }

    fn reading(&self) -> Reading {
        let wall = self.used.wall.saturating_add(self.began.elapsed());
        Reading { wall, ..self.door.add_to(self.used) }
    }

    fn sink(&self) -> Arc<dyn EventSink> {
        Arc::clone(&self.door) as Arc<dyn EventSink>
    }
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => future::pending().await,
    }
}

/// An error and what caused it, in one line.
pub(super) fn explain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the engine panicked: {}", text.unwrap_or("no message"))
}
