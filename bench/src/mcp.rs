//! MCP over stdio: the first answer, and events to a client.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    time::Instant,
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::{peers, report};

const LINES: u64 = 50_000;

pub(crate) fn bench(rounds: usize) -> Result<()> {
    let (mut initialized, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (ms, rate) = round()?;
        initialized.push(ms);
        rates.push(rate);
    }
    let (initialized, rate) = (report::median(&mut initialized), report::median(&mut rates));
    report::below("mcp: milliseconds to the first answer", initialized, 100.0);
    report::at_least("mcp: events a second", rate, 5000.0);
    report::figure(
        "mcp",
        &[("initialize_ms", report::round(initialized).into()), ("events_per_s", report::round(rate).into())],
    );
    Ok(())
}

struct Client {
    server: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Client {
    fn send(&mut self, message: &Value) -> Result<()> {
        let stdin = self.server.stdin.as_mut().context("no stdin")?;
        writeln!(stdin, "{message}")?;
        Ok(())
    }

    fn next(&mut self) -> Result<Value> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }

    fn answer(&mut self, id: u64) -> Result<Value> {
        loop {
            let message = self.next()?;
            if message["id"] == id {
                return Ok(message);
            }
        }
    }
}

fn round() -> Result<(f64, f64)> {
    let dir = tempfile::tempdir_in(peers::scratch()?)?;
    let playbooks = dir.path().join("playbooks");
    std::fs::create_dir(&playbooks)?;
    std::fs::write(
        playbooks.join("count.yaml"),
        format!("playbook: count\nstates: {{ go: {{ run: 'seq {LINES}' }} }}\n"),
    )?;
    let begin = Instant::now();
    let mut server = Command::new(peers::taffrail()?)
        .arg("--data-dir")
        .arg(dir.path().join("data"))
        .arg("--playbooks")
        .arg(&playbooks)
        .arg("mcp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let lines = BufReader::new(server.stdout.take().context("no stdout")?);
    let mut client = Client { server, lines };
    client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" } } }))?;
    client.answer(1)?;
    let initialized = begin.elapsed().as_secs_f64() * 1e3;
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
    client.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "logging/setLevel", "params": { "level": "debug" } }))?;
    client.answer(2)?;
    let begin = Instant::now();
    client.send(&json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call",
        "params": { "name": "run", "arguments": { "playbook": "count", "wait_s": 60 } } }))?;
    let (mut events, mut last) = (0u64, 0);
    loop {
        let message = client.next()?;
        if message["id"] == 3 {
            break;
        }
        let seq = message["params"]["data"]["seq"].as_u64().context("an event without seq")?;
        anyhow::ensure!(seq == last + 1, "seq {seq} came after {last}");
        last = seq;
        events += 1;
    }
    let rate = events as f64 / begin.elapsed().as_secs_f64();
    anyhow::ensure!(events > LINES, "{events} events of more than {LINES}");
    drop(client.server.stdin.take());
    client.server.wait()?;
    Ok((initialized, rate))
}
