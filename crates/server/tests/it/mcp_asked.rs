//! `mcp`: a person is asked through their client, and tasks.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    asked::Server,
    mcp_client::{Client, LEGACY, MODERN},
    records::{assert_whole, of_type, states, texts},
    world::{PATIENCE, World, until},
};

const TASKS: &str = "io.modelcontextprotocol/tasks";

fn asks() -> Value {
    json!({"elicitation": {"form": {}}})
}

fn speaks_tasks() -> Value {
    json!({"elicitation": {"form": {}}, "extensions": {TASKS: {}}})
}

fn log(world: &World, run: &str) -> Vec<Value> {
    world.expect(0, &["logs", run, "--json"]).records()
}

/// Calls a tool that asks, answers with `content`, and gives the result.
#[track_caller]
fn answered(client: &mut Client, tool: &str, arguments: &Value, content: &Value) -> Value {
    let asked = client.request("tools/call", json!({"name": tool, "arguments": arguments}))["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let responses = json!({"q1": {"action": "accept", "content": content}});
    let params = json!({
        "name": tool, "arguments": arguments, "requestState": asked["requestState"], "inputResponses": responses,
    });
    client.request("tools/call", params)["result"]["structuredContent"].clone()
}

#[test]
fn a_person_decides_a_gate_through_their_client() {
    let world = World::new();
    let mut client = Client::able(&world, MODERN, &asks());
    let arguments = json!({"playbook": "person"});
    let end = answered(&mut client, "run", &arguments, &json!({"decision": "approve"}));
    assert_eq!(end["status"], "done", "{end}");
    let records = log(&world, end["run"].as_str().unwrap());
    assert_whole(&records, "done");
    assert_eq!(states(&records), ["build", "agree", "deploy"]);
    let resolved = of_type(&records, "approval-resolved");
    assert_eq!((resolved.len(), &resolved[0]["decision"]), (1, &json!("approve")));
    assert_eq!(resolved[0]["actor"], "mcp:stdio (a person was asked)");
    assert_eq!(resolved[0]["hash"], of_type(&records, "approval-requested")[0]["hash"]);
    let end = answered(&mut client, "run", &arguments, &json!({"decision": "reject"}));
    assert_eq!((&end["status"], &end["error"]), (&json!("halt"), &json!("approval-rejected")));
    // An answer to a question, and a secret that the call itself brings again.
    let end = answered(&mut client, "run", &json!({"playbook": "question"}), &json!({"region": "us"}));
    assert_eq!(texts(&log(&world, end["run"].as_str().unwrap()), "stdout"), ["to us"]);
    let vault = json!({"playbook": "vault", "inputs": {"key": "four"}});
    let end = answered(&mut client, "run", &vault, &json!({"decision": "approve"}));
    assert_eq!(end["status"], "done", "{end}");
    assert_eq!(texts(&log(&world, end["run"].as_str().unwrap()), "stdout"), ["4"]);
    assert_eq!(world.expect(0, &["runs", "--json"]).records().len(), 4, "each call started one run");
}

#[test]
fn a_person_of_an_older_client_is_asked_while_the_call_waits() {
    let world = World::new();
    for revision in &LEGACY[2..] {
        let mut client = Client::able(&world, revision, &asks());
        let id = client.send_call("run", json!({"playbook": "question"}));
        let request = client.read();
        assert_eq!(request["method"], "elicitation/create", "{request}");
        assert_eq!(request["params"]["requestedSchema"]["properties"]["region"]["enum"], json!(["eu", "us"]));
        let result = json!({"action": "accept", "content": {"region": "eu"}});
        client.write(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string());
        let (_, answer) = client.read_until(id);
        let end = &answer["result"]["structuredContent"];
        assert_eq!(end["status"], "done", "{answer}");
        assert_eq!(texts(&log(&world, end["run"].as_str().unwrap()), "stdout"), ["to eu"]);
    }
}

#[test]
fn who_is_first_decides() {
    let world = World::new();
    let mut client = Client::able(&world, MODERN, &asks());
    let arguments = json!({"playbook": "person"});
    let asked = client.request("tools/call", json!({"name": "run", "arguments": arguments}))["result"].clone();
    let run = world.only_run();
    world.expect(1, &["approve", &run, "--reject"]);
    let responses = json!({"q1": {"action": "accept", "content": {"decision": "approve"}}});
    let params = json!({
        "name": "run", "arguments": arguments, "requestState": asked["requestState"], "inputResponses": responses,
    });
    let end = client.request("tools/call", params)["result"]["structuredContent"].clone();
    assert_eq!((&end["run"], &end["status"]), (&json!(run), &json!("halt")), "{end}");
    assert_eq!(of_type(&log(&world, &run), "approval-resolved").len(), 1);
}

fn task(client: &mut Client, id: &str) -> Value {
    client.request("tasks/get", json!({"taskId": id}))["result"].clone()
}

#[test]
fn a_task_is_polled_from_any_process_and_survives_its_own() {
    let world = World::new();
    let mut host = Client::able(&world, MODERN, &speaks_tasks());
    let arguments = json!({"playbook": "hold", "inputs": {"file": world.file("free")}});
    let created = host.request("tools/call", json!({"name": "run", "arguments": arguments}))["result"].clone();
    assert_eq!((&created["resultType"], &created["status"]), (&json!("task"), &json!("working")), "{created}");
    assert_eq!((&created["ttlMs"], &created["pollIntervalMs"]), (&Value::Null, &json!(2000)));
    let id = created["taskId"].as_str().unwrap().to_owned();
    assert_eq!(world.only_run(), id);
    let mut other = Client::able(&world, MODERN, &speaks_tasks());
    until("it holds", PATIENCE, || {
        let seen = task(&mut other, &id);
        assert_eq!(seen["status"], "working", "{seen}");
        seen["statusMessage"].as_str().unwrap().starts_with("hold (step 2): holding ").then_some(())
    });
    // The process that ran it is gone: the task has failed, and the run can go on.
    host.proc.signal(Signal::KILL);
    let failed = until("it is seen to be interrupted", PATIENCE, || {
        Some(task(&mut other, &id)).filter(|seen| seen["status"] == "failed")
    });
    assert!(failed["error"]["message"].as_str().unwrap().contains("resume"), "{failed}");
    world.write("free", "");
    let resumed = other.request("tools/call", json!({"name": "resume", "arguments": {"run": id}}))["result"].clone();
    assert_eq!((&resumed["resultType"], &resumed["taskId"]), (&json!("task"), &json!(id)), "{resumed}");
    let done =
        until("it is done", PATIENCE, || Some(task(&mut other, &id)).filter(|seen| seen["status"] == "completed"));
    assert_eq!(done["result"]["structuredContent"]["status"], "done", "{done}");
    assert_whole(&log(&world, &id), "done");
}

#[test]
fn a_person_decides_through_a_task_and_a_task_is_cancelled() {
    let world = World::new();
    let mut client = Client::able(&world, MODERN, &speaks_tasks());
    let start = |client: &mut Client, arguments: Value| {
        let params = json!({"name": "run", "arguments": arguments});
        client.request("tools/call", params)["result"]["taskId"].as_str().unwrap().to_owned()
    };
    let id = start(&mut client, json!({"playbook": "person"}));
    let waits =
        until("it waits", PATIENCE, || Some(task(&mut client, &id)).filter(|seen| seen["status"] == "input_required"));
    let (key, request) = waits["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert!(request["params"]["message"].as_str().unwrap().starts_with("Deploy?"), "{waits}");
    let responses = json!({key: {"action": "accept", "content": {"decision": "approve"}}});
    let ack = client.request("tasks/update", json!({"taskId": id, "inputResponses": responses}));
    assert_eq!(ack["result"]["resultType"], "complete", "{ack}");
    until("it is done", PATIENCE, || Some(()).filter(|()| task(&mut client, &id)["status"] == "completed"));
    let id = start(&mut client, json!({"playbook": "hold", "inputs": {"file": "/no/such"}}));
    client.request("tasks/cancel", json!({"taskId": id}));
    until("it is cancelled", PATIENCE, || Some(()).filter(|()| task(&mut client, &id)["status"] == "cancelled"));
}

/// A client of `serve`, of 2026-07-28.
struct Remote {
    server: Server,
    capabilities: Value,
}

impl Remote {
    #[track_caller]
    fn request(&self, method: &str, name: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        });
        let token = format!("authorization: Bearer {}", self.server.token());
        let headers = [
            token.as_str(),
            "content-type: application/json",
            "accept: application/json, text/event-stream",
            "mcp-protocol-version: 2026-07-28",
            &format!("mcp-method: {method}"),
            &format!("mcp-name: {name}"),
        ];
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let answer = self.server.ask("POST", "/mcp", &headers, &body);
        // A message that came alone, or the one of a stream.
        let message = answer.body.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let message = message.into_iter().find(|line| line.starts_with('{'));
        serde_json::from_str(message.unwrap_or_else(|| panic!("{answer:?}"))).unwrap()
    }

    /// The same after a restart.
    fn again(self, world: &World) -> Self {
        self.server.proc.signal(Signal::TERM);
        assert_eq!(self.server.proc.end().code, Some(0));
        Self { server: Server::start(world, &[]), capabilities: self.capabilities }
    }
}

#[test]
fn a_task_of_a_server_goes_on_after_it_has_started_again() {
    let world = World::new();
    let client = Remote { server: Server::start(&world, &[]), capabilities: speaks_tasks() };
    let created = client.request("tools/call", "run", json!({"name": "run", "arguments": {"playbook": "person"}}));
    let id = created["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned();
    let get = |client: &Remote| client.request("tasks/get", &id, json!({"taskId": id}))["result"].clone();
    until("it waits", PATIENCE, || Some(()).filter(|()| get(&client)["status"] == "input_required"));
    let client = client.again(&world);
    let waits = get(&client);
    let (key, _) = waits["inputRequests"].as_object().unwrap().iter().next().unwrap();
    let responses = json!({key: {"action": "accept", "content": {"decision": "approve"}}});
    client.request("tasks/update", &id, json!({"taskId": id, "inputResponses": responses}));
    until("it is done", PATIENCE, || Some(()).filter(|()| get(&client)["status"] == "completed"));
    // Without the token there is no task.
    let refused = client.server.ask("POST", "/mcp", &["content-type: application/json"], "{}");
    assert_eq!(refused.status, 401, "{refused:?}");
}

#[test]
fn what_one_server_asked_another_one_hears() {
    let world = World::new();
    let client = Remote { server: Server::start(&world, &[]), capabilities: asks() };
    let mut call = json!({"name": "run", "arguments": {"playbook": "person"}});
    let asked = client.request("tools/call", "run", call.clone())["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let client = client.again(&world);
    call["requestState"] = asked["requestState"].clone();
    call["inputResponses"] = json!({"q1": {"action": "accept", "content": {"decision": "approve"}}});
    let answer = client.request("tools/call", "run", call);
    let end = &answer["result"]["structuredContent"];
    assert_eq!((&end["status"], &end["run"]), (&json!("done"), &json!(world.only_run())), "{answer}");
}

#[test]
fn nobody_is_asked_for_a_run_that_lives_elsewhere() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let run = server.post("/api/v1/threads/t/runs", &json!({"external": true, "name": "away"})).json();
    let run = run["run"].as_str().unwrap().to_owned();
    let usage = json!({
        "steps": 1, "wall_ms": 1, "log_lines": 0, "log_bytes": 0, "clipped_lines": 0, "clipped_bytes": 0,
    });
    let events = [
        json!({"type": "approval-requested", "approval": "a1", "state": "s", "message": "Go?", "hash": "00",
            "by": "human"}),
        json!({"type": "run-finished", "machine": "away", "depth": 0, "status": "suspended", "error": null,
            "at": "s", "usage": usage}),
    ];
    let body = events.map(|event| event.to_string()).join("\n");
    let token = format!("authorization: Bearer {}", server.token());
    let path = format!("/api/v1/runs/{run}/events");
    let sent = server.ask("POST", &path, &[&token, "content-type: application/x-ndjson"], &body);
    assert_eq!(sent.status, 200, "{sent:?}");
    let client = Remote { server, capabilities: speaks_tasks() };
    let task = client.request("tasks/get", &run, json!({"taskId": run}))["result"].clone();
    assert_eq!(task["status"], "working", "{task}");
    let resumed = client.request("tools/call", "resume", json!({"name": "resume", "arguments": {"run": run}}));
    assert_eq!(resumed["result"]["isError"], true, "{resumed}");
    assert!(resumed["result"]["content"][0]["text"].as_str().unwrap().contains("elsewhere"), "{resumed}");
}
