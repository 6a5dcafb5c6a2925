//! Tasks: views of runs, for clients that declare the extension.

use serde_json::{Value, json};

use crate::client::Client;

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A client that speaks tasks, and may be able to ask its person.
fn client(asks: bool) -> Client {
    let mut capabilities = json!({"extensions": {TASKS: {}}});
    if asks {
        capabilities["elicitation"] = json!({"form": {}});
    }
    Client::able("2026-07-28", &capabilities)
}

fn get(client: &mut Client, id: &str) -> Value {
    client.request("tasks/get", json!({"taskId": id}))["result"].clone()
}

#[test]
fn a_run_is_a_task_whose_id_is_the_runs() {
    let mut client = client(false);
    let created = client.call("run", json!({"playbook": "slow"}));
    let at = "2026-11-30T12:00:00.000000Z";
    let expected = json!({
        "resultType": "task", "taskId": "run-1", "status": "working", "statusMessage": "started",
        "createdAt": at, "lastUpdatedAt": at, "ttlMs": null, "pollIntervalMs": 2000,
    });
    let mut seen = created.clone();
    seen.as_object_mut().unwrap().remove("_meta");
    assert_eq!(seen, expected);
    client.fake.enter("run-1", "build");
    client.fake.log("run-1", "compiling\tcore");
    let task = get(&mut client, "run-1");
    assert_eq!(
        (&task["status"], &task["statusMessage"]),
        (&json!("working"), &json!("build (step 1): compiling core"))
    );
    assert!(task.get("result").is_none() && task.get("inputRequests").is_none(), "{task}");
    client.fake.finish("run-1", "done");
    let task = get(&mut client, "run-1");
    assert_eq!((&task["resultType"], &task["status"]), (&json!("complete"), &json!("completed")));
    let status = client.call("run_status", json!({"run": "run-1"}));
    assert_eq!(task["result"]["structuredContent"], status["structuredContent"]);
    assert_eq!(task["result"]["content"], status["content"]);
}

#[test]
fn a_run_that_failed_is_a_completed_task_and_one_that_was_cancelled_a_cancelled_one() {
    let mut client = client(false);
    for (number, (end, status)) in
        [("halt", "completed"), ("cancelled", "cancelled"), ("interrupted", "failed")].into_iter().enumerate()
    {
        let id = format!("run-{}", number + 1);
        assert_eq!(client.call("run", json!({"playbook": "slow"}))["taskId"], id.as_str());
        client.fake.finish(&id, end);
        let task = get(&mut client, &id);
        assert_eq!(task["status"], status, "{task}");
        assert_eq!(task.get("result").is_some(), status == "completed");
        assert_eq!(task.get("error").is_some(), status == "failed");
        // Of a task that is over neither changes anything.
        let cancelled = client.request("tasks/cancel", json!({"taskId": id}));
        let updated = client.request("tasks/update", json!({"taskId": id, "inputResponses": {}}));
        assert_eq!(cancelled["result"]["resultType"], "complete", "{cancelled}");
        assert_eq!(updated["result"]["resultType"], "complete", "{updated}");
        assert_eq!(client.fake.status(&id), end);
    }
    let task = get(&mut client, "run-3");
    assert!(task["error"]["message"].as_str().unwrap().contains("resume"), "{task}");
}

#[test]
fn cancelling_a_task_cancels_the_run() {
    let mut client = client(false);
    client.call("run", json!({"playbook": "slow"}));
    let ack = client.request("tasks/cancel", json!({"taskId": "run-1"}))["result"].clone();
    assert_eq!(ack["resultType"], "complete");
    assert!(ack.get("taskId").is_none() && ack.get("status").is_none(), "{ack}");
    assert_eq!(get(&mut client, "run-1")["status"], "cancelled");
}

#[test]
fn a_person_is_asked_through_the_task() {
    let mut client = client(true);
    client.call("run", json!({"playbook": "gate"}));
    let task = get(&mut client, "run-1");
    assert_eq!(task["status"], "input_required", "{task}");
    let request = &task["inputRequests"]["ap-1"];
    assert_eq!(request["method"], "elicitation/create");
    assert!(request["params"]["message"].as_str().unwrap().starts_with("Deploy 1.2?"));
    let mut update =
        |responses: Value| client.request("tasks/update", json!({"taskId": "run-1", "inputResponses": responses}));
    // Neither of these decides anything.
    for responses in [json!({}), json!({"ap-0": {"action": "accept", "content": {"decision": "approve"}}})] {
        assert_eq!(update(responses)["result"]["resultType"], "complete");
    }
    for (response, what) in [
        (json!({"action": "accept", "content": {"decision": "perhaps"}}), "approve"),
        (json!({"action": "accept"}), "approve"),
        (json!({"action": "agree"}), "action"),
        (json!(7), "action"),
    ] {
        let refused = update(json!({"ap-1": response}));
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(what), "{refused}");
    }
    assert_eq!(client.fake.status("run-1"), "suspended");
    let accept = json!({"action": "accept", "content": {"decision": "approve"}});
    let ack = client.request("tasks/update", json!({"taskId": "run-1", "inputResponses": {"ap-1": accept}}));
    assert_eq!(ack["result"]["resultType"], "complete");
    assert_eq!(get(&mut client, "run-1")["status"], "completed");
}

#[test]
fn a_person_who_declines_is_not_asked_again_until_the_run_is_resumed() {
    for action in ["decline", "cancel"] {
        let mut client = client(true);
        client.call("run", json!({"playbook": "gate"}));
        assert_eq!(get(&mut client, "run-1")["status"], "input_required");
        let update = json!({"taskId": "run-1", "inputResponses": {"ap-1": {"action": action}}});
        assert_eq!(client.request("tasks/update", update)["result"]["resultType"], "complete");
        let task = get(&mut client, "run-1");
        assert_eq!((&task["status"], client.fake.status("run-1")), (&json!("working"), "suspended"));
        assert!(task["statusMessage"].as_str().unwrap().starts_with("waits at agree: Deploy 1.2?"), "{task}");
        client.call("resume", json!({"run": "run-1"}));
        assert_eq!(get(&mut client, "run-1")["status"], "input_required");
        let accept = json!({"action": "accept", "content": {"decision": "approve"}});
        client.request("tasks/update", json!({"taskId": "run-1", "inputResponses": {"ap-1": accept}}));
        assert_eq!(get(&mut client, "run-1")["status"], "completed");
    }
}

/// What nobody may answer through a task is not asked through it.
#[test]
fn a_run_that_needs_its_secrets_again_says_how_to_decide_it() {
    let mut client = client(true);
    let created = client.call("run", json!({"playbook": "vault"}));
    let task = get(&mut client, "run-1");
    for told in [&created, &task] {
        assert_eq!(told["status"], "working", "{told}");
        assert!(told["statusMessage"].as_str().unwrap().contains("taffrail approve run-1 -i key=…"), "{told}");
    }
}

#[test]
fn a_task_begins_as_what_the_run_is() {
    let mut client = client(true);
    assert_eq!(client.call("run", json!({"playbook": "quick"}))["status"], "completed");
    let waits = client.call("run", json!({"playbook": "gate"}));
    assert_eq!(waits["status"], "input_required");
    assert!(waits.get("inputRequests").is_none() && waits.get("result").is_none(), "{waits}");
}

#[test]
fn who_asks_by_urls_only_is_not_sent_forms() {
    let urls = json!({"extensions": {TASKS: {}}, "elicitation": {"url": {}}});
    let mut client = Client::able("2026-07-28", &urls);
    client.call("run", json!({"playbook": "gate"}));
    assert_eq!(get(&mut client, "run-1")["status"], "working");
}

#[test]
fn who_cannot_ask_sees_what_the_run_waits_for() {
    let mut client = client(false);
    client.call("run", json!({"playbook": "gate"}));
    let task = get(&mut client, "run-1");
    assert_eq!(task["status"], "working");
    assert!(task["statusMessage"].as_str().unwrap().starts_with("waits at agree: Deploy 1.2?"), "{task}");
}

#[test]
fn going_on_with_a_run_is_the_same_task() {
    let mut client = client(false);
    client.call("run", json!({"playbook": "gate"}));
    let task = client.call("resume", json!({"run": "run-1"}));
    assert_eq!((&task["resultType"], &task["taskId"]), (&json!("task"), &json!("run-1")));
}

#[test]
fn unknown_tasks_and_undeclared_extensions_are_refused() {
    let mut speaks = client(false);
    for (method, more) in
        [("tasks/get", json!({})), ("tasks/cancel", json!({})), ("tasks/update", json!({"inputResponses": {}}))]
    {
        let mut params = more.clone();
        params["taskId"] = json!("run-9");
        let refused = speaks.request(method, params.clone());
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("run-9"), "{refused}");
        assert_eq!(speaks.request(method, more)["error"]["code"], -32602, "without an id");
        assert_eq!(Client::modern().request(method, params)["error"]["code"], -32021);
    }
    assert_eq!(speaks.request("tasks/list", json!({}))["error"]["code"], -32601);
    // Who does not declare it gets results.
    assert_eq!(Client::modern().call("run", json!({"playbook": "quick"}))["resultType"], "complete");
    let mut old = Client::able("2025-11-25", &json!({"extensions": {TASKS: {}}}));
    assert_eq!(old.request("tasks/get", json!({"taskId": "run-1"}))["error"]["code"], -32601);
    assert_eq!(old.call("run", json!({"playbook": "quick"}))["structuredContent"]["status"], "done");
}
