//! Starts a command, waits for it and reads its log.
//!
//! ```sh
//! cargo run -p runs-start-wait-read
//! ```
//!
//! The data directory is one that goes away, and the store is in memory. With a `SqliteStore` at
//! `Layout::store` any number of processes share the runs, and each of them can wait, read and cancel.

#![expect(clippy::print_stdout, reason = "what the example shows")]

use std::{path::Path, sync::Arc};

use anyhow::Result;
use taffrail_mcp_core::RunStatus;
use taffrail_relay::{MemoryStore, Relay};
use taffrail_runs::{Config, Layout, LogQuery, Service, Start, Until, Work};

#[tokio::main]
async fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (status, output) = run(folder.path(), "echo hoisted; echo belayed >&2; exit 3").await?;
    print!("{output}");
    println!("→ {}", status.as_str());
    Ok(())
}

/// Runs a shell command and gives back how it ended and the records of its output.
async fn run(folder: &Path, command: &str) -> Result<(RunStatus, String)> {
    let relay = Relay::start(Arc::new(MemoryStore::new()), Default::default())?;
    let layout = Layout::new(folder.join("data"));
    let service = Service::open(relay, Config::new(layout, folder.join("playbooks"), folder.to_owned()))?;

    let argv = ["sh", "-c", command].map(str::to_owned).to_vec();
    let work = Work::Command { name: "example".to_owned(), argv, output_cap: None };
    // Back as soon as the run's first records are durable. From here on it lives by itself.
    let started = service.start(Start::new(work)).await?;

    let fold = service.wait(&started.run, Until::Settled).await?;
    let page = service.logs(&started.run, LogQuery { types: vec!["log".to_owned()], ..LogQuery::default() }).await?;
    service.close().await;
    Ok((fold.status, page.lines.iter().map(|line| String::from_utf8_lossy(line)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(command: &str, status: RunStatus, lines: usize) {
        let folder = tempfile::tempdir().unwrap();
        let (ended, output) = run(folder.path(), command).await.unwrap();
        assert_eq!((ended, output.lines().count()), (status, lines), "{output}");
    }

    #[tokio::test]
    async fn a_command_is_done_or_halts() {
        check("echo one; echo two", RunStatus::Done, 2).await;
        check("exit 3", RunStatus::Halt, 0).await;
    }
}
