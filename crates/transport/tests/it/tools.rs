//! The tools' list and their results.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Client;

#[test]
fn the_list_of_tools() {
    let mut client = Client::legacy();
    let answer = client.request("tools/list", json!({}));
    let text = answer.to_string();
    assert!(!text.contains("uint"), "TypeScript clients warn of unsigned formats");
    assert!(!text.contains("$schema") && !text.contains("$ref"));
    insta::assert_json_snapshot!(answer["result"]["tools"]);
}

#[test]
fn run_waits_for_the_end_and_tells_it_twice() {
    let mut client = Client::legacy();
    let result = client.call("run", json!({"playbook": "quick", "inputs": {"a": 1}, "thread": "t"}));
    insta::assert_json_snapshot!(result["structuredContent"]);
    insta::assert_snapshot!(result["content"][0]["text"].as_str().unwrap(), @r#"
    run: run-1
    thread: run-1
    playbook: quick
    status: done
    state: build
    step: 1
    head: 6
    started_at: 2026-11-30T12:00:00.000000Z
    elapsed_ms: 1500
    usage: clipped_bytes=0 clipped_lines=0 log_bytes=20 log_lines=2 steps=1 wall_ms=1500
    spool: /spool/run-1.jsonl
    next: Nothing more to do; run_logs {"run":"run-1"} reads what it did.
    "#);
    assert_eq!(result["isError"], false);
}

#[test]
fn run_returns_at_once_or_after_its_wait_and_the_run_goes_on() {
    let mut client = Client::legacy();
    let text = client.text("run", json!({"playbook": "slow", "wait_s": 0}));
    assert!(text.contains("status: running"), "{text}");
    assert!(text.ends_with(r#"next: It goes on by itself: wait with run_status {"run":"run-1","after":1,"wait_s":25}, or read its output with run_logs {"run":"run-1"}."#), "{text}");
    let start = Instant::now();
    client.call("run", json!({"playbook": "slow", "wait_s": 0.2}));
    assert!(start.elapsed() >= Duration::from_millis(200));
    assert_eq!(client.fake.status("run-2"), "running");
}

#[test]
fn the_same_idempotency_key_is_the_same_run() {
    let mut client = Client::legacy();
    let run = |client: &mut Client, key: &str| {
        let result = client.call("run", json!({"playbook": "quick", "idempotency_key": key}));
        result["structuredContent"]["run"].clone()
    };
    assert_eq!(run(&mut client, "a"), "run-1");
    assert_eq!(run(&mut client, "a"), "run-1");
    assert_eq!(run(&mut client, "b"), "run-2");
}

#[test]
fn a_gate_is_told_and_only_a_person_decides_it() {
    let mut client = Client::legacy();
    let text = client.text("run", json!({"playbook": "gate"}));
    insta::assert_snapshot!(text, @r#"
    run: run-1
    thread: run-1
    playbook: gate
    status: suspended
    state: agree
    step: 1
    head: 2
    started_at: 2026-11-30T12:00:00.000000Z
    elapsed_ms: 1500
    approval: approval=ap-1 by=human hash=00ff message="Deploy 1.2?" state=agree
    checkpoint: cp-1
    usage: clipped_bytes=0 clipped_lines=0 log_bytes=20 log_lines=2 steps=1 wall_ms=1500
    spool: /spool/run-1.jsonl
    next: A person must decide; tell them, then wait with run_status {"run":"run-1","after":2,"wait_s":25}.
    "#);
    let refused = client.call("resume", json!({"run": "run-1", "inputs": {"decision": "approve"}}));
    assert_eq!(refused["isError"], true);
    insta::assert_snapshot!(refused["content"][0]["text"].as_str().unwrap(), @"Not allowed: the gate of run-1 is for a person; tell them to decide");
    let resumed = client.call("resume", json!({"checkpoint": "cp-1"}));
    assert_eq!(resumed["structuredContent"]["status"], "done");
}

#[test]
fn run_status_answers_now_or_at_the_next_change_of_state() {
    let mut client = Client::legacy();
    client.call("run", json!({"playbook": "slow", "wait_s": 0}));
    let now = client.call("run_status", json!({"run": "run-1"}));
    assert_eq!(now["structuredContent"]["status"], "running");
    let id = client.send_call("run_status", json!({"run": "run-1", "after": 1, "wait_s": 20}));
    client.fake.log("run-1", "no change of state");
    client.fake.enter("run-1", "test");
    let (_, answer) = client.read_until(id);
    assert_eq!(answer["result"]["structuredContent"]["state"], "test");
    let id = client.send_call("run_status", json!({"run": "run-1", "wait_s": 20}));
    client.fake.finish("run-1", "halt");
    let (_, answer) = client.read_until(id);
    assert_eq!(answer["result"]["structuredContent"]["status"], "halt");
    // A wait on a finished run ends at once.
    client.call("run_status", json!({"run": "run-1", "after": 99, "wait_s": 300}));
}

#[test]
fn run_cancel_ends_the_run() {
    let mut client = Client::legacy();
    client.call("run", json!({"playbook": "slow", "wait_s": 0}));
    let result = client.call("run_cancel", json!({"run": "run-1", "reason": "enough"}));
    assert_eq!(result["structuredContent"]["status"], "cancelled");
}

#[test]
fn a_cancelled_request_ends_the_wait_and_not_the_run() {
    let mut client = Client::legacy();
    let id = client.send_call("run", json!({"playbook": "slow", "wait_s": 300}));
    client.fake.until_started(1);
    client.write(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}).to_string(),
    );
    client.assert_silent();
    assert_eq!(client.fake.status("run-1"), "running");
}

#[test]
fn lists_and_checks() {
    let mut client = Client::legacy();
    assert_eq!(
        client.text("list_runs", json!({})),
        "No runs. Start one with `run`; `list_playbooks` shows what there is."
    );
    client.call("run", json!({"playbook": "quick"}));
    client.call("run", json!({"playbook": "slow", "wait_s": 0}));
    insta::assert_snapshot!(client.text("list_runs", json!({})), @"
    run-2  playbook=slow  status=running  started_at=2026-11-30T12:00:00.000000Z  elapsed_ms=1500  head=1
    run-1  playbook=quick  status=done  state=build  started_at=2026-11-30T12:00:00.000000Z  elapsed_ms=1500  head=6
    end of list
    ");
    insta::assert_snapshot!(client.text("list_runs", json!({"limit": 1})), @r#"
    run-2  playbook=slow  status=running  started_at=2026-11-30T12:00:00.000000Z  elapsed_ms=1500  head=1
    more: call again with {"before":"run-2"}
    "#);
    assert_eq!(client.call("list_runs", json!({"status": "done"}))["structuredContent"]["runs"][0]["run"], "run-1");
    insta::assert_snapshot!(client.text("list_playbooks", json!({})), @"
    quick - Says hello.
    release (targets?: array, version: string) - Build and deploy.
    ");
    insta::assert_snapshot!(client.text("list_playbooks", json!({"name": "release"})), @r#"
    release (targets?: array, version: string) - Build and deploy.
    inputs: [{"default":["linux"],"name":"targets","required":false,"type":"array"},{"name":"version","required":true,"type":"string"}]
    states: [{"name":"build"},{"name":"agree"}]
    "#);
    insta::assert_snapshot!(client.text("check_playbook", json!({"name": "release"})), @"release is fine.");
    let checked = client.call("check_playbook", json!({"source": "gates"}));
    assert_eq!(checked["isError"], false);
    insta::assert_snapshot!(checked["content"][0]["text"].as_str().unwrap(), @"
    release cannot run:
    warning at 3:5: state `b` is never reached
    error at 7:9: unknown key `gatez`; did you mean `gates`?
    ");
    insta::assert_snapshot!(checked["structuredContent"], @r#"{"errors":[{"column":9,"line":7,"message":"unknown key `gatez`; did you mean `gates`?"}],"ok":false,"playbook":"release","warnings":[{"column":5,"line":3,"message":"state `b` is never reached"}]}"#);
}

#[test]
fn bad_arguments_say_what_is_wrong_and_what_to_do() {
    let mut client = Client::legacy();
    let mut check = |tool: &str, arguments: Value| {
        let result = client.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    };
    insta::assert_snapshot!(check("run", json!({})), @"Bad arguments: missing field `playbook`. Correct the arguments and call again; the tool's input schema lists them.");
    insta::assert_snapshot!(check("run", json!({"playbook": "quick", "wait": 5})), @"Bad arguments: unknown field `wait`, expected one of `playbook`, `inputs`, `thread`, `idempotency_key`, `wait_s`. Correct the arguments and call again; the tool's input schema lists them.");
    insta::assert_snapshot!(check("run", json!({"playbook": "nope"})), @"Not found: no playbook nope; list_playbooks shows what there is");
    insta::assert_snapshot!(check("run", json!({"playbook": "quick", "wait_s": -1})), @"Bad arguments: `wait_s` must be 0 (return at once) to 300 seconds. Correct the arguments and call again; the tool's input schema lists them.");
    insta::assert_snapshot!(check("resume", json!({})), @"Bad arguments: give `run` or `checkpoint`. Correct the arguments and call again; the tool's input schema lists them.");
    insta::assert_snapshot!(check("run_status", json!({"run": "run-9"})), @"Not found: no run run-9; list_runs shows the runs there are");
    insta::assert_snapshot!(check("run_logs", json!({"run": "run-9", "cursor": -1})), @"Bad arguments: `cursor`: invalid value: integer `-1`, expected u64. Correct the arguments and call again; the tool's input schema lists them.");
    insta::assert_snapshot!(check("list_runs", json!({"status": "ok"})), @"Bad arguments: `status`: unknown variant `ok`, expected one of `running`, `suspended`, `done`, `halt`, `cancelled`, `interrupted`. Correct the arguments and call again; the tool's input schema lists them.");
    insta::assert_snapshot!(check("check_playbook", json!({"name": "a", "source": "b"})), @"Bad arguments: give exactly one of `name`, `path` and `source`. Correct the arguments and call again; the tool's input schema lists them.");
}
