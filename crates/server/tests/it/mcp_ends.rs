//! `mcp`: what ends with its client, and what does not.

use std::{
    io::Write as _,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    mcp_client::{Client, MODERN},
    proc::Proc,
    records::assert_whole,
    world::{PATIENCE, World, is_alive, until},
};

/// Starts a run in the background, and waits until it says that it is there; its id and its process.
fn started(client: &mut Client, arguments: Value, word: &str) -> (String, i32) {
    let run = client.structured("run", arguments)["run"].clone();
    let pid = until("it runs", PATIENCE, || {
        let text = client.text("run_logs", json!({"run": run, "grep": word, "wait_s": 5}));
        text.lines().find_map(|line| line.split_once(word)?.1.trim().parse().ok())
    });
    (run.as_str().unwrap().to_owned(), pid)
}

fn hold() -> Value {
    json!({"playbook": "hold", "inputs": {"file": "/no/such"}, "wait_s": 0})
}

/// The run was interrupted, in good order, and can go on.
#[track_caller]
fn assert_interrupted(world: &World, run: &str, pid: i32) {
    until("the run is interrupted", Duration::from_secs(5), || (world.status(run) == "interrupted").then_some(()));
    until("its process is gone", Duration::from_secs(5), || (!is_alive(pid)).then_some(()));
    world.until_empty(Duration::from_secs(5));
    assert_whole(&world.expect(0, &["logs", run, "--json"]).records(), "interrupted");
    let snapshot = world.expect(0, &["status", run, "--json"]).json();
    assert!(snapshot["checkpoint"].is_string(), "{snapshot}");
}

#[test]
fn the_end_of_its_input_is_the_end_of_the_server() {
    let world = World::new();
    let mut client = Client::modern(&world);
    let (run, pid) = started(&mut client, hold(), "holding ");
    let waiting = client.send_call("run_status", json!({"run": run, "wait_s": 60}));
    let start = Instant::now();
    client.hang_up();
    let (_, answer) = client.read_until(waiting);
    assert_eq!(answer["result"]["structuredContent"]["status"], "running", "what is known by then");
    let done = client.proc.end();
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_interrupted(&world, &run, pid);
}

#[test]
fn a_run_that_was_interrupted_goes_on_in_another_server() {
    let world = World::new();
    let file = world.file("go");
    let mut client = Client::legacy(&world);
    let arguments = json!({"playbook": "hold", "inputs": {"file": file}, "wait_s": 0});
    let (run, pid) = started(&mut client, arguments, "holding ");
    client.proc.signal(Signal::KILL);
    assert_eq!(client.proc.end().code, None);
    assert_interrupted(&world, &run, pid);
    std::fs::write(file, "").unwrap();
    let mut client = Client::modern(&world);
    assert_eq!(client.structured("resume", json!({"run": run}))["status"], "done");
    assert_whole(&world.expect(0, &["logs", &run, "--json"]).records(), "done");
}

#[test]
fn what_ignores_the_end_is_killed_in_time() {
    let world = World::new();
    let mut client = Client::modern(&world);
    let arguments = json!({"playbook": "stubborn", "wait_s": 0});
    let (run, pid) = started(&mut client, arguments, "stubborn: ready ");
    let start = Instant::now();
    client.hang_up();
    let done = client.proc.end();
    // Two seconds are promised; a busy machine has some more, but not the five of a run that is cancelled.
    assert!(start.elapsed() < Duration::from_millis(3500), "{:?}", start.elapsed());
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_interrupted(&world, &run, pid);
}

#[test]
fn a_term_ends_it_as_well() {
    let world = World::new();
    let mut client = Client::modern(&world);
    let (run, pid) = started(&mut client, hold(), "holding ");
    client.proc.signal(Signal::TERM);
    assert_eq!(client.proc.end().code, Some(0));
    assert_interrupted(&world, &run, pid);
}

/// A host that is killed does not close its server's input: a shell in between is killed, and the pipes stay open.
#[test]
fn the_end_of_its_parent_is_the_end_of_the_server() {
    let world = World::new();
    let mut command = world.program("sh");
    command.args(["-c", r#"exec 3<&0; "$0" mcp <&3 3<&- & wait"#]).arg(env!("CARGO_BIN_EXE_taffrail"));
    let mut client = Client::over(command);
    client.begin(MODERN);
    let (run, pid) = started(&mut client, hold(), "holding ");
    let server = world.processes().into_iter().find(|pid| is_server(*pid)).unwrap();
    let start = Instant::now();
    client.proc.signal(Signal::KILL);
    until("the server goes", Duration::from_secs(2), || (!is_alive(server)).then_some(()));
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert_interrupted(&world, &run, pid);
}

fn is_server(pid: i32) -> bool {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    words.split(|byte| *byte == 0).nth(1) == Some(b"mcp")
}

#[test]
fn a_call_that_is_cancelled_ends_no_run() {
    let world = World::new();
    let mut client = Client::legacy(&world);
    let file = world.file("go");
    let id = client.send_call("run", json!({"playbook": "hold", "inputs": {"file": file}, "wait_s": 60}));
    let run = until("the run is there", PATIENCE, || {
        Some(world.expect(0, &["runs", "--json"]).records().first()?["run"].as_str()?.to_owned())
    });
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    client.write(&cancel.to_string());
    client.assert_silent();
    assert_eq!(client.structured("run_status", json!({"run": run}))["status"], "running");
    std::fs::write(file, "").unwrap();
    assert_eq!(client.structured("run_status", json!({"run": run, "wait_s": 30}))["status"], "done");
}

#[test]
fn a_server_that_is_never_spoken_to_goes_quietly() {
    let world = World::new();
    let mut proc = Proc::start(world.command(&["mcp"]));
    let mut stdin = proc.stdin();
    stdin.write_all(b"\n").unwrap();
    drop(stdin);
    let done = proc.end_within(Duration::from_secs(10));
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (Some(0), "", ""));
}
