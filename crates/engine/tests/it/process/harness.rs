//! What the tests of processes share: a sink that keeps everything and can be waited for, and ways to look at processes.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use rustix::process::{Pid, Signal};
use serde_json::Value;
use taffrail_engine::process::{Cancel, Command, Outcome, OutputBudget, Program, Scope, SpawnError, run};
use taffrail_mcp_core::{BoxFuture, Event, EventBatch, EventSink, Log};
use tokio::sync::Notify;

/// An awkward program of `tests/cases`, with its arguments.
pub(crate) fn case(name: &str, args: &[&str]) -> Command {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name);
    let words = [path.into_os_string()].into_iter().chain(args.iter().map(Into::into));
    command(Program::Exec(words.collect()))
}

/// A text for the shell.
pub(crate) fn shell(text: &str) -> Command {
    command(Program::Shell(text.to_owned()))
}

/// A program of the test's own choice.
pub(crate) fn command(program: Program) -> Command {
    Command::new(program, std::env::temp_dir(), "build")
}

/// Runs to the end with nothing special.
pub(crate) async fn finish(command: &Command) -> (Outcome, Arc<Kept>) {
    let kept = Kept::new();
    let outcome = start(command, &kept, &Cancel::new()).await.unwrap();
    (outcome, kept)
}

/// Runs into `kept`.
pub(crate) async fn start(command: &Command, kept: &Arc<Kept>, cancel: &Cancel) -> Result<Outcome, SpawnError> {
    let sink: Arc<dyn EventSink> = kept.clone();
    run(command, &sink, &OutputBudget::unlimited(), &Scope::new("test"), cancel).await
}

/// A sink that keeps all events.
#[derive(Default)]
pub(crate) struct Kept {
    events: Mutex<Vec<Value>>,
    news: Notify,
}

impl Kept {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn events(&self) -> Vec<Value> {
        self.events.lock().unwrap().clone()
    }

    pub(crate) fn of_type(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["type"] == kind).collect()
    }

    /// The lines of one stream.
    pub(crate) fn logs(&self, stream: &str) -> Vec<Log> {
        let logs = self.of_type("log").into_iter().filter(|event| event["stream"] == stream);
        logs.map(|event| serde_json::from_value(event).unwrap()).collect()
    }

    /// Their texts.
    pub(crate) fn texts(&self, stream: &str) -> Vec<String> {
        self.logs(stream).iter().map(|log| String::from_utf8_lossy(&log.data()).into_owned()).collect()
    }

    /// The bytes of a stream put together again.
    pub(crate) fn bytes(&self, stream: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        for log in self.logs(stream) {
            bytes.extend_from_slice(&log.data());
            if !log.more && log.eol != Some(false) {
                bytes.extend_from_slice(if log.crlf { b"\r\n" } else { b"\n" });
            }
        }
        bytes
    }

    /// Waits for a line of standard output that begins so, and gives the rest of it.
    pub(crate) async fn line(&self, start: &str) -> String {
        loop {
            let news = self.news.notified();
            let lines = self.texts("stdout");
            if let Some(rest) = lines.iter().find_map(|line| line.strip_prefix(start)) {
                return rest.trim().to_owned();
            }
            news.await;
        }
    }
}

impl EventSink for Kept {
    fn emit(&self, event: Event) {
        let mut batch = EventBatch::new();
        batch.push(event);
        self.keep(&mut batch);
    }

    fn send<'a>(&'a self, batch: &'a mut EventBatch) -> BoxFuture<'a, ()> {
        self.keep(batch);
        Box::pin(std::future::ready(()))
    }
}

impl Kept {
    fn keep(&self, batch: &mut EventBatch) {
        assert!(batch.size() <= 400 * 1024, "a batch of {} bytes", batch.size());
        let lines = batch.bodies().split(|&b| b == b'\n').filter(|line| !line.is_empty());
        let events = lines.map(|body| serde_json::from_slice(&[b"{", body].concat()).unwrap());
        self.events.lock().unwrap().extend(events);
        batch.clear();
        self.news.notify_waiters();
    }
}

/// Whether a process is there and not a zombie.
pub(crate) fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// Waits until a process that nobody here can await is gone; panics after 10 s.
pub(crate) async fn gone(pid: &str) {
    let looks = async {
        while is_alive(pid) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), looks).await.unwrap_or_else(|_| panic!("{pid} is still there"));
}

/// Signals a process that nobody here holds.
pub(crate) fn signal(pid: &str, signal: Signal) {
    let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// A folder of the test's own.
pub(crate) fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    (folder, path)
}
