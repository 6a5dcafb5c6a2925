//! `mcp`: several servers, and commands beside them, on one data directory.

use serde_json::json;

use crate::{
    mcp_client::Client,
    records::assert_whole,
    world::{PATIENCE, World, is_alive, until},
};

#[test]
fn another_server_sees_a_run_live_and_cancels_it() {
    let world = World::new();
    let (mut host, mut other) = (Client::modern(&world), Client::legacy(&world));
    let run =
        host.structured("run", json!({"playbook": "hold", "inputs": {"file": "/no/such"}, "wait_s": 0}))["run"].clone();
    let pid = until("it holds", PATIENCE, || {
        let text = other.text("run_logs", json!({"run": run, "grep": "^holding", "wait_s": 5}));
        text.lines().find_map(|line| line.split_once("hold out| holding ")?.1.parse::<i32>().ok())
    });
    let seen = other.structured("run_status", json!({"run": run}));
    assert_eq!((&seen["status"], &seen["state"]), (&"running".into(), &"hold".into()));
    assert_eq!(other.structured("list_runs", json!({"status": "running"}))["runs"][0]["run"], run);
    // The host waits for the end, and the other one makes it.
    let waiting = host.send_call("run_status", json!({"run": run, "wait_s": 60}));
    let cancelled = other.structured("run_cancel", json!({"run": run}));
    assert_eq!(cancelled["status"], "cancelled");
    assert!(!is_alive(pid));
    let (_, answer) = host.read_until(waiting);
    assert_eq!(answer["result"]["structuredContent"]["status"], "cancelled");
    let mut log = world.expect(0, &["logs", run.as_str().unwrap(), "--json"]).records();
    assert_whole(&log, "cancelled");
    log.retain(|record| record["type"] == "cancel-requested");
    assert_eq!(log.len(), 1);
    // Both go on serving.
    for client in [&mut host, &mut other] {
        assert_eq!(client.structured("run", json!({"playbook": "small"}))["status"], "done");
    }
}

#[test]
fn a_client_that_stops_reading_changes_nothing_for_the_run() {
    const LINES: u64 = 60_000;
    let world = World::new();
    // Its standard output is a pipe that nobody reads.
    let mut child = world.command(&["mcp"]);
    let (reader, writer) = std::io::pipe().unwrap();
    let mut child =
        child.stdin(std::process::Stdio::piped()).stdout(writer).stderr(std::process::Stdio::null()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/logLevel": "debug",
    });
    let arguments = json!({"playbook": "flood", "inputs": {"lines": LINES}, "wait_s": 120});
    let params = json!({"name": "run", "arguments": arguments, "_meta": meta});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    std::io::Write::write_all(&mut stdin, format!("{call}\n").as_bytes()).unwrap();
    let run = until("the run is there", PATIENCE, || {
        Some(world.expect(0, &["runs", "--json"]).records().first()?["run"].as_str()?.to_owned())
    });
    let end = world.expect(0, &["status", &run, "--wait", "--json"]).json();
    assert_eq!(end["status"], "done");
    assert_eq!((&end["usage"]["log_lines"], &end["usage"]["clipped_lines"]), (&LINES.into(), &0.into()));
    let log = world.expect(0, &["logs", &run, "--json", "--types", "log"]).stdout;
    assert_eq!(log.lines().count() as u64, LINES);
    // The server is as alive as before, and goes with its client.
    assert!(child.try_wait().unwrap().is_none());
    drop((stdin, reader));
    until("the server goes", PATIENCE, || child.try_wait().unwrap());
}

#[test]
fn commands_and_servers_write_at_the_same_time() {
    let world = World::new();
    let mut client = Client::modern(&world);
    let calls: Vec<_> = (0..4)
        .map(|_| client.send_call("run", json!({"playbook": "flood", "inputs": {"lines": 300}, "thread": "busy"})))
        .collect();
    let commands: Vec<_> =
        (0..4).map(|_| world.start(&["run", "flood", "-i", "lines=300", "--thread", "busy", "--json"])).collect();
    for command in commands {
        assert_eq!(command.end().code, Some(0));
    }
    let mut left = calls;
    while !left.is_empty() {
        let answer = client.read();
        assert_eq!(answer["result"]["structuredContent"]["status"], "done", "{answer}");
        left.retain(|id| answer["id"] != *id);
    }
    let runs = world.expect(0, &["runs", "--json"]).records();
    assert_eq!(runs.len(), 8);
    let mut seqs = Vec::new();
    for run in &runs {
        let records = world.expect(0, &["logs", run["run"].as_str().unwrap(), "--json"]).records();
        assert_eq!(records.iter().filter(|record| record["type"] == "log").count(), 300);
        seqs.extend(records.iter().map(|record| record["seq"].as_u64().unwrap()));
    }
    seqs.sort_unstable();
    assert!(seqs.into_iter().eq(1..=8 * 305), "one log, dense, without doubles");
}
