//! A run that waits for a person: asked by an answer that asks, by a request of the server, or not at all.

use serde_json::{Value, json};

use crate::client::Client;

fn asks() -> Value {
    json!({"elicitation": {"form": {}}})
}

/// A call of `run` that was answered with a question: the question and the state.
fn asked(client: &mut Client, tool: &str, arguments: &Value) -> (Value, Value) {
    let result = client.call(tool, arguments.clone());
    assert_eq!(result["resultType"], "input_required", "{result}");
    let requests = result["inputRequests"].as_object().unwrap();
    let (name, request) = requests.iter().next().unwrap();
    assert_eq!((requests.len(), name.as_str()), (1, "q1"));
    (request["params"].clone(), result["requestState"].clone())
}

fn retry(client: &mut Client, tool: &str, arguments: &Value, state: &Value, response: Value) -> Value {
    client.request(
        "tools/call",
        json!({"name": tool, "arguments": arguments, "requestState": state, "inputResponses": {"q1": response}}),
    )
}

fn accept(decision: &str) -> Value {
    json!({"action": "accept", "content": {"decision": decision}})
}

#[test]
fn a_gate_is_asked_by_an_answer_and_the_run_goes_on_with_the_decision() {
    for (decision, end) in [("approve", "done"), ("reject", "halt")] {
        let mut client = Client::able("2026-07-28", &asks());
        let arguments = json!({"playbook": "gate"});
        let (question, state) = asked(&mut client, "run", &arguments);
        assert_eq!(question["message"], "Deploy 1.2?\n\n(gate waits at agree, run run-1)");
        let decisions = &question["requestedSchema"]["properties"]["decision"]["oneOf"];
        assert_eq!((&decisions[0]["const"], &decisions[1]["const"]), (&json!("approve"), &json!("reject")));
        let answer = retry(&mut client, "run", &arguments, &state, accept(decision));
        assert_eq!(answer["result"]["structuredContent"]["status"], end, "{answer}");
        // It was the same run.
        assert_eq!(answer["result"]["structuredContent"]["run"], "run-1");
        assert_eq!(client.fake.status("run-2"), "none");
        // Once more: it was decided, and is as it is.
        let answer = retry(&mut client, "run", &arguments, &state, accept("approve"));
        assert_eq!(answer["result"]["structuredContent"]["status"], end, "{answer}");
    }
}

#[test]
fn declining_and_closing_decide_nothing() {
    for action in ["decline", "cancel"] {
        let mut client = Client::able("2026-07-28", &asks());
        let arguments = json!({"playbook": "gate"});
        let (_, state) = asked(&mut client, "run", &arguments);
        let answer = retry(&mut client, "run", &arguments, &state, json!({"action": action}));
        assert_eq!(answer["result"]["structuredContent"]["status"], "suspended");
        assert_eq!(client.fake.status("run-1"), "suspended");
        // Resuming without a decision asks again.
        let (question, state) = asked(&mut client, "resume", &json!({"run": "run-1"}));
        assert!(question["message"].as_str().unwrap().starts_with("Deploy 1.2?"));
        let answer = retry(&mut client, "resume", &json!({"run": "run-1"}), &state, accept("approve"));
        assert_eq!(answer["result"]["structuredContent"]["status"], "done");
    }
}

#[test]
fn what_is_wrong_with_a_retry_decides_nothing() {
    let mut client = Client::able("2026-07-28", &asks());
    let arguments = json!({"playbook": "gate"});
    let (_, state) = asked(&mut client, "run", &arguments);
    let tampered = json!(format!("{}x", state.as_str().unwrap()));
    for (arguments, state, response, what) in [
        (&arguments, &tampered, accept("approve"), "requestState"),
        (&json!({"playbook": "gate", "thread": "t"}), &state, accept("approve"), "requestState"),
        (&arguments, &state, accept("perhaps"), "none of the choices"),
        (&arguments, &state, json!({"action": "accept", "content": {}}), "missing"),
        (&arguments, &state, json!({"action": "agree"}), "inputResponses.q1"),
    ] {
        let refused = retry(&mut client, "run", arguments, state, response);
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(what), "{refused}");
    }
    assert_eq!(client.fake.status("run-1"), "suspended");
    assert_eq!(client.fake.status("run-2"), "none");
    // Left open, it is asked again.
    let again = client.request("tools/call", json!({"name": "run", "arguments": arguments, "requestState": state}));
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
}

#[test]
fn several_questions_in_one_call_each_get_their_own_answer() {
    let mut client = Client::able("2026-07-28", &asks());
    let arguments = json!({"playbook": "twice"});
    let (_, first) = asked(&mut client, "run", &arguments);
    let result = retry(&mut client, "run", &arguments, &first, accept("approve"));
    let requests = &result["result"]["inputRequests"];
    assert!(requests["q1"].is_null() && requests["q2"].is_object(), "{result}");
    assert!(requests["q2"]["params"]["message"].as_str().unwrap().starts_with("Which region?"));
    let (state, eu) = (&result["result"]["requestState"], json!({"action": "accept", "content": {"region": "eu"}}));
    let answer = client.request(
        "tools/call",
        json!({"name": "run", "arguments": arguments, "requestState": state, "inputResponses": {"q2": eu}}),
    );
    assert_eq!(answer["result"]["structuredContent"]["status"], "done", "{answer}");
}

#[test]
fn a_client_of_a_session_is_asked_while_it_waits() {
    for revision in ["2025-06-18", "2025-11-25"] {
        let mut client = Client::able(revision, &asks());
        let id = client.send_call("run", json!({"playbook": "gate"}));
        let request = client.read();
        assert_eq!(request["method"], "elicitation/create", "{request}");
        assert!(request["params"]["message"].as_str().unwrap().starts_with("Deploy 1.2?"));
        let response = json!({"jsonrpc": "2.0", "id": request["id"], "result": accept("approve")});
        client.write(&response.to_string());
        let (before, answer) = client.read_until(id);
        assert_eq!(before, Vec::<Value>::new());
        assert_eq!(answer["result"]["structuredContent"]["status"], "done", "{answer}");
    }
}

#[test]
fn a_session_that_refuses_or_fails_to_ask_gets_the_suspended_run() {
    let mut client = Client::able("2025-11-25", &asks());
    for (number, reply) in [
        json!({"result": {"action": "decline"}}),
        json!({"result": {"action": "cancel"}}),
        json!({"result": {"tools": []}}),
        json!({"error": {"code": -32601, "message": "what?"}}),
    ]
    .into_iter()
    .enumerate()
    {
        let id = client.send_call("run", json!({"playbook": "gate"}));
        let request = client.read();
        let mut response = json!({"jsonrpc": "2.0", "id": request["id"]});
        response.as_object_mut().unwrap().extend(reply.as_object().cloned().unwrap());
        client.write(&response.to_string());
        let (_, answer) = client.read_until(id);
        let snapshot = &answer["result"]["structuredContent"];
        assert_eq!(snapshot["status"], "suspended", "{answer}");
        assert_eq!(client.fake.status(&format!("run-{}", number + 1)), "suspended");
    }
}

#[test]
fn a_call_that_is_cancelled_withdraws_its_question() {
    let mut client = Client::able("2025-11-25", &asks());
    let id = client.send_call("run", json!({"playbook": "gate"}));
    let request = client.read();
    client.write(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}).to_string(),
    );
    let withdrawn = client.read();
    assert_eq!(withdrawn["method"], "notifications/cancelled", "{withdrawn}");
    assert_eq!(withdrawn["params"]["requestId"], request["id"]);
    assert_eq!(client.fake.status("run-1"), "suspended");
}

#[test]
fn a_question_that_is_decided_elsewhere_is_withdrawn_and_its_call_answered() {
    let mut client = Client::able("2025-11-25", &asks());
    let id = client.send_call("run", json!({"playbook": "gate"}));
    let request = client.read();
    client.fake.finish("run-1", "halt");
    let (before, answer) = client.read_until(id);
    assert_eq!(answer["result"]["structuredContent"]["status"], "halt", "{answer}");
    let withdrawn = before.first().cloned().unwrap_or_else(|| client.read());
    assert_eq!(withdrawn["method"], "notifications/cancelled", "{withdrawn}");
    assert_eq!(withdrawn["params"]["requestId"], request["id"]);
}

#[test]
fn a_checkpoint_asks_as_its_run_does() {
    let mut client = Client::able("2026-07-28", &asks());
    let arguments = json!({"playbook": "gate"});
    asked(&mut client, "run", &arguments);
    let arguments = json!({"checkpoint": "cp-1"});
    let (_, state) = asked(&mut client, "resume", &arguments);
    let answer = retry(&mut client, "resume", &arguments, &state, accept("approve"));
    assert_eq!(answer["result"]["structuredContent"]["status"], "done", "{answer}");
}

#[test]
fn an_answer_counts_also_when_its_client_speaks_tasks_by_now() {
    let mut client = Client::able("2026-07-28", &asks());
    let arguments = json!({"playbook": "gate"});
    let (_, state) = asked(&mut client, "run", &arguments);
    client.able_to(&json!({"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}}));
    let answer = retry(&mut client, "run", &arguments, &state, accept("approve"));
    assert_eq!(answer["result"]["structuredContent"]["status"], "done", "{answer}");
}

#[test]
fn each_revision_is_asked_in_its_own_words() {
    for (revision, names) in [("2025-06-18", true), ("2025-11-25", false)] {
        let mut client = Client::able(revision, &json!({"elicitation": {}}));
        let id = client.send_call("run", json!({"playbook": "gate"}));
        let request = client.read();
        let decision = &request["params"]["requestedSchema"]["properties"]["decision"];
        assert_eq!(decision["enumNames"].is_array(), names, "{decision}");
        assert_eq!(decision["enum"] == json!(["approve", "reject"]), names, "{decision}");
        assert_eq!(decision["oneOf"].is_array(), !names, "{decision}");
        client.write(&json!({"jsonrpc": "2.0", "id": request["id"], "result": accept("approve")}).to_string());
        assert_eq!(client.read_until(id).1["result"]["structuredContent"]["status"], "done");
    }
    // Before that there was no such request.
    let mut client = Client::able("2025-03-26", &json!({"elicitation": {}}));
    assert_eq!(client.call("run", json!({"playbook": "gate"}))["structuredContent"]["status"], "suspended");
}

#[test]
fn who_asks_by_urls_only_is_not_sent_a_form() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let mut client = Client::able(revision, &json!({"elicitation": {"url": {}}}));
        assert_eq!(client.call("run", json!({"playbook": "gate"}))["structuredContent"]["status"], "suspended");
    }
}

#[test]
fn who_cannot_be_asked_gets_the_suspended_run_and_the_other_ways() {
    for mut client in [Client::legacy(), Client::modern()] {
        let result = client.call("run", json!({"playbook": "gate"}));
        let snapshot = &result["structuredContent"];
        assert_eq!(snapshot["status"], "suspended");
        assert!(snapshot["next"].as_str().unwrap().contains("person"), "{snapshot}");
    }
}
