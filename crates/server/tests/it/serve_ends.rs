//! How a server ends.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::json;

use crate::{
    asked::Server,
    world::{PATIENCE, World, is_alive, until},
};

/// Starts a run that waits, and gives it with the process that it waits in.
fn held(world: &World, server: &Server) -> (String, i32) {
    let body = json!({"playbook": "hold", "inputs": {"file": world.file("never")}});
    let run = server.post("/api/v1/threads/t/runs", &body).json()["run"].as_str().unwrap().to_owned();
    let page = server.get(&format!("/api/v1/runs/{run}/events?grep=%5Eholding&wait_ms=30000")).json();
    let text = page["records"][0]["text"].as_str().unwrap();
    (run.clone(), text.rsplit(' ').next().unwrap().parse().unwrap())
}

#[test]
fn told_to_end_it_answers_what_waits_and_leaves_a_run_that_can_go_on() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let (run, pid) = held(&world, &server);
    let token = format!("authorization: Bearer {}", server.token());
    let mut waiting = TcpStream::connect(server.addr).unwrap();
    waiting.set_read_timeout(Some(PATIENCE)).unwrap();
    let path = format!("/api/v1/runs/{run}/events?grep=nothing&wait_ms=30000");
    write!(waiting, "GET {path} HTTP/1.1\r\nhost: {}\r\n{token}\r\n\r\n", server.addr).unwrap();
    // Its answer says that the one before was read.
    server.get("/api/v1/runs");
    let begun = Instant::now();
    server.proc.signal(Signal::TERM);
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"matched\":0"), "{answer}");
    let done = server.proc.end();
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(!is_alive(pid));
    assert_eq!(world.status(&run), "interrupted");
    // Another server goes on with it.
    let next = Server::start(&world, &[]);
    let resumed = next.post(&format!("/api/v1/runs/{run}/resume"), &json!({}));
    assert_eq!((resumed.status, &resumed.json()["status"]), (200, &json!("running")));
    let cancelled = next.post(&format!("/api/v1/runs/{run}/cancel"), &json!({"kill": true}));
    assert_eq!(cancelled.json()["status"], "cancelled");
}

#[test]
fn told_twice_it_ends_at_once() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let run = server.run("stubborn");
    server.get(&format!("/api/v1/runs/{run}/events?types=log&wait_ms=30000"));
    // A request that never ends of itself.
    let mut half = TcpStream::connect(server.addr).unwrap();
    let token = format!("authorization: Bearer {}", server.token());
    write!(half, "POST /mcp HTTP/1.1\r\nhost: {}\r\n{token}\r\ncontent-length: 9\r\n\r\n{{", server.addr).unwrap();
    server.get("/api/v1/runs");
    let begun = Instant::now();
    server.proc.signal(Signal::INT);
    until("it has begun to end", PATIENCE, || TcpStream::connect(server.addr).is_err().then_some(()));
    server.proc.signal(Signal::INT);
    let done = server.proc.end();
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    world.until_empty(Duration::from_secs(5));
    assert_eq!(world.status(&run), "interrupted");
}

#[test]
fn a_killed_server_leaves_runs_that_the_next_one_ends_or_goes_on_with() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let (run, pid) = held(&world, &server);
    server.proc.signal(Signal::KILL);
    server.proc.end();
    until("what it ran is gone", Duration::from_secs(10), || (!is_alive(pid)).then_some(()));
    let next = Server::start(&world, &[]);
    until("the run is interrupted", Duration::from_secs(5), || {
        (next.get(&format!("/api/v1/runs/{run}")).json()["status"] == "interrupted").then_some(())
    });
}
