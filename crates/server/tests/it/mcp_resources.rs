//! `mcp`: runs as resources, and news of them, also of runs that other processes host.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    mcp_client::{Client, revisions},
    world::{PATIENCE, World, until},
};

fn uri(run: &Value) -> String {
    format!("taffrail://runs/{}", run.as_str().unwrap())
}

/// The run, and whether news came before it.
fn read(client: &mut Client, run: &Value) -> (Value, bool) {
    let id = client.send("resources/read", json!({"uri": uri(run)}));
    let (before, answer) = client.read_until(id);
    let text = answer["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    (serde_json::from_str(text).unwrap(), !before.is_empty())
}

/// Asks for news of a run in the way of the revision, and reads what comes at once.
fn subscribe(client: &mut Client, revision: &str, run: &Value) {
    if revision < "2026-07-28" {
        let answer = client.request("resources/subscribe", json!({"uri": uri(run)}));
        assert_eq!(answer["result"], json!({}), "{answer}");
        return;
    }
    client.send("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": [uri(run)]}}));
    assert_eq!(client.read()["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(client.read()["method"], "notifications/resources/updated");
}

/// Reads news of the run, and the run after each, until it has this status.
fn told(client: &mut Client, run: &Value, status: &str) {
    let mut news = false;
    loop {
        if !news {
            let message = client.read();
            assert_eq!(message["method"], "notifications/resources/updated", "{message}");
            assert_eq!(message["params"]["uri"], uri(run));
        }
        let (snapshot, more) = read(client, run);
        if snapshot["status"] == status {
            return;
        }
        news = more;
    }
}

#[test]
fn every_revision_is_told_what_becomes_of_a_run_of_another_process() {
    let world = World::new();
    let mut host = Client::modern(&world);
    for revision in revisions() {
        let run = host.structured("run", json!({"playbook": "gate"}))["run"].clone();
        let mut client = Client::of(&world, revision);
        let listed = client.request("resources/list", json!({}))["result"]["resources"][0].clone();
        assert_eq!(listed["uri"], uri(&run), "the newest");
        assert!(listed["description"].as_str().unwrap().starts_with("gate: suspended at agree"), "{listed}");
        assert_eq!(read(&mut client, &run).0, client.structured("run_status", json!({"run": run})));
        subscribe(&mut client, revision, &run);
        host.structured("resume", json!({"run": run, "inputs": {"decision": "approve"}}));
        told(&mut client, &run, "done");
    }
}

#[test]
fn a_run_whose_host_is_killed_and_that_goes_on_elsewhere_is_followed_to_its_end() {
    let world = World::new();
    let file = world.file("go");
    let mut watchers: Vec<_> =
        ["2025-11-25", "2026-07-28"].map(|revision| (revision, Client::of(&world, revision))).into();
    let mut host = Client::modern(&world);
    let arguments = json!({"playbook": "hold", "inputs": {"file": file}, "wait_s": 0});
    let run = host.structured("run", arguments)["run"].clone();
    until("it holds", PATIENCE, || {
        let seen = host.structured("run_status", json!({"run": run}));
        (seen["state"] == "hold").then_some(())
    });
    for (revision, client) in &mut watchers {
        subscribe(client, revision, &run);
    }
    host.proc.signal(Signal::KILL);
    for (_, client) in &mut watchers {
        told(client, &run, "interrupted");
    }
    std::fs::write(file, "").unwrap();
    let mut other = Client::modern(&world);
    assert_eq!(other.structured("resume", json!({"run": run}))["status"], "done");
    for (_, client) in &mut watchers {
        told(client, &run, "done");
    }
}

#[test]
fn a_failure_can_be_explained_from_its_prompt_alone() {
    let world = World::new();
    world.expect(1, &["exec", "--name", "broken", "--", "sh", "-c", "echo looking; echo no such thing >&2; exit 1"]);
    let mut client = Client::modern(&world);
    let reference = json!({"type": "ref/prompt", "name": "explain-failure"});
    let params = json!({"ref": reference, "argument": {"name": "run", "value": ""}});
    let completion = client.request("completion/complete", params)["result"]["completion"].clone();
    let run = &completion["values"][0];
    let arguments = json!({"name": "explain-failure", "arguments": {"run": run}});
    let answer = client.request("prompts/get", arguments);
    let text = answer["result"]["messages"][0]["content"]["text"].as_str().unwrap();
    for words in ["status: halt", "err| no such thing", "out| looking", "exit={code=1}", "--- end of log ---"] {
        assert!(text.contains(words), "{words:?} in {text}");
    }
}
