//! A data directory, and services that work on it as if each were a process of its own.

use std::{path::Path, sync::Arc, time::Duration};

use serde_json::{Map, Value};
use taffrail_mcp_core::{Record, RunFold, RunId, RunStatus, Start as From};
use taffrail_relay::{MemoryStore, Relay, Store};
use taffrail_runs::{Approve, Config, Hosts, Layout, LogQuery, Resume, RunsError, Service, Start, Until, Work};
use taffrail_store_sqlite::SqliteStore;
use taffrail_testutils::leases::MemoryLeases;
use tempfile::TempDir;

pub(crate) const SOON: Duration = Duration::from_secs(20);

/// One data directory with playbooks.
pub(crate) struct Ground {
    pub(crate) dir: TempDir,
    memory: Option<MemoryStore>,
    pub(crate) leases: Option<MemoryLeases>,
}

impl Ground {
    /// On a SQLite file. Playbooks are stored under the names in them.
    pub(crate) fn sqlite(playbooks: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("playbooks")).unwrap();
        for source in playbooks {
            let name = source.lines().find_map(|line| line.strip_prefix("playbook: ")).unwrap();
            std::fs::write(dir.path().join(format!("playbooks/{name}.yaml")), source).unwrap();
        }
        Self { dir, memory: None, leases: None }
    }

    /// In memory.
    pub(crate) fn memory(playbooks: &[&str]) -> Self {
        Self { memory: Some(MemoryStore::new()), ..Self::sqlite(playbooks) }
    }

    /// As several machines share a store: each service is a process on another one.
    pub(crate) fn machines(playbooks: &[&str]) -> Self {
        Self { leases: Some(MemoryLeases::new()), ..Self::memory(playbooks) }
    }

    /// One of each kind.
    pub(crate) fn each(playbooks: &[&str]) -> [Self; 3] {
        [Self::sqlite(playbooks), Self::memory(playbooks), Self::machines(playbooks)]
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn layout(&self) -> Layout {
        Layout::new(self.path())
    }

    /// Another process on this directory.
    pub(crate) fn service(&self) -> Service {
        self.service_on(self.store())
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match &self.memory {
            Some(memory) => Arc::new(memory.clone()),
            None => Arc::new(SqliteStore::open(self.layout().store(), Default::default()).unwrap()),
        }
    }

    pub(crate) fn service_on(&self, store: Arc<dyn Store>) -> Service {
        self.service_with(store, |_| {})
    }

    pub(crate) fn service_with(&self, store: Arc<dyn Store>, configure: impl FnOnce(&mut Config)) -> Service {
        let relay = Relay::start(store, Default::default()).unwrap();
        let mut config = Config::new(self.layout(), self.path().join("playbooks"), self.path().to_owned());
        config.grace = Duration::from_millis(500);
        if let Some(leases) = &self.leases {
            config.hosts = Hosts::Leases(Arc::new(leases.clone()));
        }
        configure(&mut config);
        Service::open(relay, config).unwrap()
    }
}

/// A request to start a playbook.
pub(crate) fn playbook(name: &str, inputs: Value) -> Start {
    Start { inputs: object(inputs), ..Start::new(Work::Playbook { name: name.into(), paths: false }) }
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

pub(crate) async fn begin(service: &Service, name: &str) -> RunId {
    service.start(playbook(name, Value::Null)).await.unwrap().run
}

/// Waits, not for ever.
pub(crate) async fn wait(service: &Service, run: &RunId, until: Until) -> RunFold {
    tokio::time::timeout(SOON, service.wait(run, until)).await.expect("waited too long").unwrap()
}

/// Starts and waits until it rests.
pub(crate) async fn run_to(service: &Service, name: &str, status: RunStatus) -> RunFold {
    let run = begin(service, name).await;
    let fold = wait(service, &run, Until::Settled).await;
    assert_eq!(fold.status, status, "{fold:?}");
    fold
}

pub(crate) fn resume(run: &RunId, inputs: Value) -> Resume {
    Resume { run: Some(run.to_string()), checkpoint: None, inputs: object(inputs), actor: "me".into(), human: false }
}

/// Resumes and waits until it rests.
pub(crate) async fn go_on(service: &Service, run: &RunId, inputs: Value) -> Result<RunFold, RunsError> {
    service.resume(resume(run, inputs)).await?;
    Ok(wait(service, run, Until::Settled).await)
}

/// A decision with all that is optional left out.
pub(crate) fn approve(run: &RunId, decision: taffrail_mcp_core::Decision) -> Approve {
    Approve {
        run: run.clone(),
        approval: None,
        decision,
        hash: None,
        seen_seq: None,
        content: None,
        inputs: Map::new(),
        actor: "somebody".into(),
    }
}

/// All records of a run.
pub(crate) async fn records(service: &Service, run: &RunId) -> Vec<Record> {
    let query = LogQuery { limit: usize::MAX, max_bytes: usize::MAX, start: From::Beginning, ..LogQuery::default() };
    let page = service.logs(run, query).await.unwrap();
    page.lines.iter().map(|line| Record::parse(line).unwrap()).collect()
}

/// The index is what the log says; gives the types of the records.
pub(crate) async fn check(service: &Service, run: &RunId) -> Vec<String> {
    let records = records(service, run).await;
    let stored = service.fold(run).await.unwrap();
    let mut fold = RunFold::new(run.clone(), stored.thread.clone());
    records.iter().for_each(|record| fold.apply_record(record));
    assert_eq!(stored, fold);
    records.iter().map(|record| record.event.kind().to_owned()).collect()
}

/// Text of its standard output.
pub(crate) fn output(records: &[Record]) -> Vec<String> {
    let texts = records.iter().filter_map(|record| match &record.event {
        taffrail_mcp_core::Event::Log(log) => log.text.clone(),
        _ => None,
    });
    texts.collect()
}
