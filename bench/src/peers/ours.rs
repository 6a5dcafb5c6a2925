//! `taffrail serve`.

use std::{
    net::{SocketAddr, TcpStream},
    path::Path,
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use memchr::memmem;
use rustix::process::Signal;
use serde_json::Value;

use super::{process, process::Memory, process::Server, scratch, taffrail};
use crate::load::{Check, Connection, Head, Protocol, Stream, Target};

/// Where it keeps its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Store {
    Memory,
    /// Acknowledged when it is on disk.
    Sqlite,
}

/// A running one.
#[derive(Debug)]
pub(crate) struct Ours {
    pub(crate) server: Server,
    addr: SocketAddr,
    _temporary: Option<tempfile::TempDir>,
}

/// A run whose events come from elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    addr: SocketAddr,
    run: String,
}

impl Ours {
    /// Starts one with nothing in it.
    pub(crate) fn start(store: Store) -> Result<Self> {
        let dir = tempfile::tempdir_in(scratch()?)?;
        let ours = Self::start_in(dir.path(), store)?;
        Ok(Self { _temporary: Some(dir), ..ours })
    }

    /// Starts one on a folder that may have been used before.
    pub(crate) fn start_in(dir: &Path, store: Store) -> Result<Self> {
        let addr = process::free_addr()?;
        let store = match store {
            Store::Memory => "memory:".into(),
            Store::Sqlite => format!("sqlite:{}", dir.join("bench.db").display()),
        };
        let mut command = Command::new(taffrail()?);
        // Without the access log, as nginx beside it.
        command.args(["--log", "warn", "--data-dir"]).arg(dir.join("data"));
        command.args(["serve", "--listen", &addr.to_string(), "--store", &store, "--no-auth"]);
        // The load comes from one address, whose rate is not what is measured.
        command.args(["--rate", "0"]);
        let mut server = Server::start(command, dir, Signal::TERM)?;
        server.ready(|| Connection::open(addr).and_then(|mut c| c.get("/readyz")?.success()).is_ok())?;
        Ok(Self { server, addr, _temporary: None })
    }

    /// Begins a run on a thread.
    pub(crate) fn run(&self, thread: &str) -> Result<Run> {
        let mut connection = Connection::open(self.addr)?;
        let path = format!("/api/v1/threads/{thread}/runs");
        let body = br#"{"external":true,"name":"bench"}"#;
        let snapshot: Value = connection.post(&path, "application/json", body)?.json().context("beginning a run")?;
        let run = snapshot["run"].as_str().context("a snapshot without a run")?.to_owned();
        Ok(Run { addr: self.addr, run })
    }

    /// One run on one thread.
    pub(crate) fn target(&self) -> Result<Target> {
        Ok(self.run("bench")?.target("bench"))
    }

    pub(crate) fn memory(&self) -> Result<Memory> {
        self.server.memory().context("memory of taffrail")
    }
}

impl Run {
    /// Its events go in here, and come out in the stream of the thread.
    pub(crate) fn target(&self, thread: &str) -> Target {
        Target {
            addr: self.addr,
            publish: format!("/api/v1/runs/{}/events", self.run),
            subscribe: format!("/api/v1/threads/{thread}/stream"),
            lines: true,
            check: Check::Ids,
        }
    }

    /// Its id.
    pub(crate) fn id(&self) -> &str {
        &self.run
    }

    /// A run that is there already, such as one of an earlier server on the same folder.
    pub(crate) fn on(&self, ours: &Ours) -> Self {
        Self { addr: ours.addr, run: self.run.clone() }
    }

    /// Position of its last event.
    pub(crate) fn head(&self) -> Result<u64> {
        let answer = Connection::open(self.addr)?.get(&format!("/api/v1/runs/{}/events?limit=1", self.run))?.json()?;
        answer["head"].as_u64().context("a page without a head")
    }
}

/// Pages of 200.
impl Protocol for Run {
    fn connect(&self) -> Result<Box<dyn Stream>> {
        Ok(Box::new(TcpStream::connect(self.addr)?))
    }

    fn request(&self, after: u64, out: &mut Vec<u8>) {
        let (run, addr) = (&self.run, self.addr);
        let request = format!("GET /api/v1/runs/{run}/events?after={after}&limit=200 HTTP/1.1\r\nHost: {addr}\r\n\r\n");
        out.extend_from_slice(request.as_bytes());
    }

    fn whole(&self, after: u64, answer: &[u8]) -> Result<bool> {
        let Some(head) = Head::read(answer)? else { return Ok(false) };
        let body = answer.get(head.len..).unwrap_or_default();
        ensure!(head.ok(), "status {}: {}", head.status, String::from_utf8_lossy(body));
        if body.len() < head.body.context("a page does not tell its length")? {
            return Ok(false);
        }
        // The page's own fields stand behind its records.
        let end = body.get(body.len().saturating_sub(300)..).unwrap_or(body);
        let next = format!("\"next\":{}", after + 200);
        ensure!(memmem::find(end, next.as_bytes()).is_some(), "the page after {after} does not have 200 records");
        Ok(true)
    }
}
