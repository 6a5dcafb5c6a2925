//! What the tests of runs share: a folder with playbooks, and a sink that keeps everything.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value};
use taffrail_engine::{
    Ended, Engine, Job, ResumeData,
    playbook::{Library, Playbook},
    process::Cancel,
};
use taffrail_mcp_core::{BoxFuture, Event, EventBatch, EventSink, RunId, Usage};
use tempfile::TempDir;
use tokio::sync::Notify;

/// A folder, an engine over the playbooks in it, and the log of one run.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) log: Arc<Log>,
    pub(crate) cancel: Cancel,
    pub(crate) shutdown: Cancel,
}

impl World {
    /// Playbooks are stored under the names in them.
    pub(crate) fn new(playbooks: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for source in playbooks {
            let name = source.lines().find_map(|line| line.strip_prefix("playbook: ")).unwrap();
            std::fs::write(folder.path().join(format!("{name}.yaml")), source).unwrap();
        }
        let grace = Duration::from_millis(500);
        let cancel = Cancel::new().with_grace(grace);
        Self { folder, log: Arc::default(), cancel, shutdown: Cancel::new().with_grace(grace) }
    }

    pub(crate) fn engine(&self) -> Engine {
        Engine::new(Library::new(self.folder.path())).with_parallel(4)
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn playbook(&self, name: &str) -> Arc<Playbook> {
        Library::new(self.folder.path()).load(name).unwrap().playbook
    }

    pub(crate) fn job(&self) -> Job {
        let run = RunId::new("run-1").unwrap();
        let next = AtomicU64::new(1);
        Job {
            thread: run.clone().into(),
            run,
            inputs: Map::new(),
            cwd: self.folder.path().to_owned(),
            env: Vec::new(),
            usage: Usage::default(),
            sink: self.log.clone(),
            cancel: self.cancel.clone(),
            shutdown: self.shutdown.clone(),
            ids: Arc::new(move || format!("id-{}", next.fetch_add(1, Ordering::Relaxed))),
        }
    }

    pub(crate) async fn run(&self, name: &str) -> Ended {
        self.engine().start(&self.playbook(name), self.job()).await
    }

    /// What a resume needs, as another process would read it from the log.
    pub(crate) fn resume_data(&self) -> ResumeData {
        let checkpoints = self.log.of_type("checkpoint");
        let (first, last) = (&checkpoints[0], checkpoints.last().unwrap());
        ResumeData::read(&first["resume"], &last["resume"]).unwrap()
    }
}

/// A sink that keeps all events.
#[derive(Default)]
pub(crate) struct Log {
    events: Mutex<Vec<Value>>,
    news: Notify,
}

impl Log {
    pub(crate) fn events(&self) -> Vec<Value> {
        self.events.lock().unwrap().clone()
    }

    pub(crate) fn of_type(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["type"] == kind).collect()
    }

    pub(crate) fn kinds(&self) -> Vec<String> {
        self.events().iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }

    /// Lines of standard output, in order. What shells have to say about signals is theirs.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.of_type("log")
            .iter()
            .filter(|event| event["stream"] == "stdout")
            .map(|event| event["text"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Waits for a line of process output.
    pub(crate) async fn line(&self, text: &str) {
        loop {
            let news = self.news.notified();
            if self.texts().iter().any(|line| line == text) {
                return;
            }
            news.await;
        }
    }

    fn keep(&self, batch: &mut EventBatch) {
        let lines = batch.bodies().split(|&b| b == b'\n').filter(|line| !line.is_empty());
        let events = lines.map(|body| serde_json::from_slice(&[b"{", body].concat()).unwrap());
        self.events.lock().unwrap().extend(events);
        batch.clear();
        self.news.notify_waiters();
    }
}

impl EventSink for Log {
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
