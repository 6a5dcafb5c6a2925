//! The server as a client sees it: lines of JSON over pipes, compared pair by pair.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    io::{BufRead as _, BufReader, Lines, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Instant,
};

use serde_json::{Value, json};

struct Client {
    server: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

/// One progress notification.
struct Seen {
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
}

impl Client {
    fn start() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_progress-only"));
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = server.stdin.take();
        let output = BufReader::new(server.stdout.take().unwrap()).lines();
        let mut client = Self { server, input, output };
        let info = json!({"name": "test", "version": "1"});
        client.send(&json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info},
        }));
        assert_eq!(client.receive()["id"], 0);
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    fn receive(&mut self) -> Value {
        serde_json::from_str(&self.output.next().unwrap().unwrap()).unwrap()
    }

    fn ask(&mut self, id: u64, tool: &str, meta: Value) {
        let params = json!({"name": tool, "arguments": {}, "_meta": meta});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }

    /// Everything up to the response with `id`, which is checked, and what came of it under `token`.
    fn watch(&mut self, id: u64, token: &Value) -> Vec<Seen> {
        let mut seen = Vec::new();
        loop {
            let message = self.receive();
            if message["id"] == id {
                assert_ne!(message["result"]["isError"], true, "{message}");
                assert!(message["result"]["content"].is_array(), "{message}");
                return seen;
            }
            assert_eq!(message["method"], "notifications/progress", "{message}");
            let params = &message["params"];
            assert_eq!(&params["progressToken"], token);
            seen.push(Seen {
                progress: params["progress"].as_f64().unwrap(),
                total: params["total"].as_f64(),
                message: params["message"].as_str().map(str::to_owned),
            });
        }
    }

    /// Closes the input; nothing but the end of the output may follow.
    fn end(mut self) {
        drop(self.input.take());
        assert!(self.output.next().is_none(), "nothing comes after the last response");
        assert!(self.server.wait().unwrap().success());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Has ended, unless the test has failed.
        let _ = self.server.kill();
    }
}

#[track_caller]
fn check(seen: &[Seen], total: f64, last: &str, asked: Instant) {
    for pair in seen.windows(2) {
        assert!(pair[0].progress < pair[1].progress, "{} then {}", pair[0].progress, pair[1].progress);
    }
    assert!(seen.iter().all(|one| one.total == Some(total) && one.progress.is_finite()));
    let (end, before) = seen.split_last().unwrap();
    assert_eq!((end.progress, end.message.as_deref()), (total, Some(last)));
    assert!(before.iter().all(|one| one.progress < total), "complete only in the end");
    // Two a second, and the last. All of them were sent within this time, however late they were read.
    let most = 1.0 + asked.elapsed().as_secs_f64() / 0.5;
    assert!(before.len() as f64 <= most, "{} in {:?}", before.len(), asked.elapsed());
}

#[test]
fn a_count_arrives_in_order_and_whole_before_the_response() {
    let mut client = Client::start();
    let asked = Instant::now();
    client.ask(1, "count", json!({"progressToken": "c"}));
    let seen = client.watch(1, &json!("c"));
    assert_eq!((seen[0].progress, seen[0].message.as_deref()), (1.0, Some("one")));
    check(&seen, 3.0, "three", asked);
    client.end();
}

#[test]
fn sixty_four_branches_on_eight_threads_are_one_increasing_stream() {
    let mut client = Client::start();
    for round in 1..=3 {
        let asked = Instant::now();
        client.ask(round, "fan_out", json!({"progressToken": round}));
        let seen = client.watch(round, &json!(round));
        assert!(seen.len() >= 3, "it takes 1.6 s: {}", seen.len());
        check(&seen, 1.0, "step 100", asked);
    }
    client.end();
}

#[test]
fn without_a_token_there_is_only_the_response() {
    let mut client = Client::start();
    client.ask(1, "count", json!({}));
    assert!(client.watch(1, &Value::Null).is_empty());
    client.end();
}
