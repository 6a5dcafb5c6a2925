//! `mcp`: starting, waiting for, cancelling, listing and checking.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    mcp_client::Client,
    records::assert_whole,
    world::{PATIENCE, World, is_alive, until},
};

fn log(world: &World, run: &Value) -> Vec<Value> {
    world.expect(0, &["logs", run.as_str().unwrap(), "--json"]).records()
}

#[test]
fn a_call_that_does_not_wait_returns_at_once_and_status_tells_the_rest() {
    let world = World::new();
    let mut client = Client::modern(&world);
    let file = world.file("go");
    let arguments = json!({"playbook": "hold", "inputs": {"file": file}, "wait_s": 0});
    let snapshot = client.structured("run", arguments);
    assert_eq!(snapshot["status"], "running");
    let run = &snapshot["run"];
    assert!(snapshot["next"].as_str().unwrap().contains("run_status"), "{snapshot}");
    // It changes until it holds; then a wait runs into its limit.
    let holds = until("it holds", PATIENCE, || {
        let seen = client.structured("run_status", json!({"run": run, "after": snapshot["head"], "wait_s": 5}));
        (seen["state"] == "hold").then_some(seen)
    });
    let start = Instant::now();
    let same = client.structured("run_status", json!({"run": run, "after": holds["head"], "wait_s": 1}));
    assert!(start.elapsed() >= Duration::from_millis(900), "{:?}", start.elapsed());
    assert_eq!((&same["status"], &same["state"]), (&"running".into(), &"hold".into()));
    // And one that is not over when the run changes ends with the change.
    let id = client.send_call("run_status", json!({"run": run, "after": same["head"], "wait_s": 30}));
    std::fs::write(file, "").unwrap();
    let (_, answer) = client.read_until(id);
    assert!(answer["result"]["structuredContent"]["head"].as_u64() > same["head"].as_u64(), "{answer}");
    let end = client.structured("run_status", json!({"run": run, "wait_s": 30}));
    assert_eq!(end["status"], "done");
    // A wait on a finished run ends at once.
    let start = Instant::now();
    client.structured("run_status", json!({"run": run, "after": end["head"], "wait_s": 30}));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn a_cancel_returns_when_everything_is_dead() {
    let world = World::new();
    let mut client = Client::legacy(&world);
    let run = client.structured("run", json!({"playbook": "stubborn", "wait_s": 0}))["run"].clone();
    let pid = until("it is ready", PATIENCE, || {
        let text = client.text("run_logs", json!({"run": run, "grep": "ready", "wait_s": 5}));
        text.lines().find_map(|line| line.split_once("stubborn: ready ")?.1.parse::<i32>().ok())
    });
    // Others are served meanwhile.
    let cancel = client.send_call("run_cancel", json!({"run": run, "reason": "enough"}));
    let status = client.send_call("run_status", json!({"run": run}));
    let (_, answer) = client.read_until(status);
    assert_eq!(answer["result"]["structuredContent"]["status"], "running");
    let (_, answer) = client.read_until(cancel);
    assert!(!is_alive(pid));
    assert_eq!(answer["result"]["structuredContent"]["status"], "cancelled", "{answer}");
    let records = log(&world, &run);
    assert_whole(&records, "cancelled");
    let request = records.iter().find(|record| record["type"] == "cancel-requested").unwrap();
    assert_eq!((&request["reason"], &request["actor"]), (&"enough".into(), &"mcp:stdio".into()));
    // On a finished run it changes nothing.
    assert_eq!(client.structured("run_cancel", json!({"run": run}))["status"], "cancelled");
    assert_eq!(log(&world, &run).len(), records.len());
}

#[test]
fn a_key_starts_a_run_once_also_from_another_server() {
    let world = World::new();
    let (mut one, mut two) = (Client::modern(&world), Client::legacy(&world));
    let arguments = json!({"playbook": "small", "idempotency_key": "k", "thread": "t"});
    let first = one.structured("run", arguments.clone());
    assert_eq!(first["thread"], "t");
    for client in [&mut one, &mut two] {
        assert_eq!(client.structured("run", arguments.clone()), first);
        let text = client.refused("run", json!({"playbook": "gate", "idempotency_key": "k"}));
        assert!(text.starts_with("Conflict: ") && text.contains(first["run"].as_str().unwrap()), "{text}");
    }
    assert_eq!(one.structured("list_runs", json!({}))["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn what_is_wrong_with_a_call_is_told_with_the_way_out() {
    let world = World::new();
    let mut client = Client::modern(&world);
    let mut check = |tool: &str, arguments: Value, words: &[&str]| {
        let text = client.refused(tool, arguments);
        words.iter().for_each(|word| assert!(text.contains(word), "{word:?} in {text}"));
    };
    check("run", json!({"playbook": "smal"}), &["Not found", "did you mean `small`"]);
    check("run", json!({"playbook": "small", "inputs": {"whom": "x"}}), &["whom", "did you mean `who`"]);
    check("run", json!({"playbook": "hold"}), &["file", "required"]);
    check("run", json!({"playbook": "typed", "inputs": {"word": "x", "count": "many"}}), &["count", "whole number"]);
    check("run", json!({"playbook": "small", "wait_s": -1}), &["wait_s"]);
    check("run_status", json!({"run": "nope"}), &["Not found", "no run nope", "list"]);
    check("run_logs", json!({"run": "nope"}), &["no run nope"]);
    check("run_cancel", json!({"run": "nope"}), &["no run nope"]);
    check("resume", json!({"run": "nope"}), &["no run nope"]);
    check("check_playbook", json!({}), &["exactly one"]);
    assert_eq!(client.structured("list_runs", json!({}))["runs"], json!([]));
}

#[test]
fn lists_are_filtered_and_go_on() {
    let world = World::new();
    let mut client = Client::legacy(&world);
    let runs: Vec<_> = ["small", "gate", "small"]
        .iter()
        .map(|playbook| client.structured("run", json!({"playbook": playbook}))["run"].clone())
        .collect();
    let ids = |list: &Value| list["runs"].as_array().unwrap().iter().map(|run| run["run"].clone()).collect::<Vec<_>>();
    let all = client.structured("list_runs", json!({}));
    assert_eq!(ids(&all), [runs[2].clone(), runs[1].clone(), runs[0].clone()]);
    assert_eq!(all.get("before"), None);
    let page = client.structured("list_runs", json!({"limit": 2}));
    assert_eq!((ids(&page).len(), &page["before"]), (2, &runs[1]));
    let rest = client.structured("list_runs", json!({"limit": 2, "before": page["before"]}));
    assert_eq!((ids(&rest), rest.get("before")), (vec![runs[0].clone()], None));
    let suspended = client.structured("list_runs", json!({"status": "suspended"}));
    assert_eq!(ids(&suspended), [runs[1].clone()]);
    let text = client.text("list_runs", json!({"status": "suspended"}));
    assert!(text.contains(runs[1].as_str().unwrap()) && text.contains("gate") && text.contains("suspended"), "{text}");
}

#[test]
fn playbooks_are_checked_with_their_places() {
    let world = World::new();
    let mut client = Client::modern(&world);
    assert_eq!(client.structured("check_playbook", json!({"name": "small"}))["ok"], true);
    let source = "playbook: x\nstates:\n  one:\n    run: echo\n    tiemout: 5s\n  two:\n    exec: [a]\n    gates:\n      - { when: exit.code ==, then: ok }\n";
    let path = world.write("x.yaml", source);
    for arguments in [json!({"source": source}), json!({"path": path})] {
        let report = client.structured("check_playbook", arguments);
        assert_eq!(report["ok"], false);
        let places: Vec<_> = report["errors"].as_array().unwrap().iter().map(|e| (&e["line"], &e["column"])).collect();
        assert_eq!(places, [(&5.into(), &5.into()), (&9.into(), &17.into())], "{report}");
        assert!(report["errors"][0]["message"].as_str().unwrap().contains("did you mean `timeout`"), "{report}");
    }
    let text = client.text("check_playbook", json!({"source": source}));
    assert!(text.contains("error at 5:5: ") && text.contains("error at 9:17: "), "{text}");
    let unused = "playbook: x\ninputs: { a: { type: string } }\nstates: { one: { run: \"true\" } }\n";
    let report = client.structured("check_playbook", json!({"source": unused}));
    assert_eq!((&report["ok"], &report["errors"]), (&true.into(), &json!([])), "{report}");
    let contract = client.structured("list_playbooks", json!({"name": "question"}))["playbooks"][0].clone();
    assert_eq!(contract["name"], "question");
    let text = client.refused("list_playbooks", json!({"name": "questoin"}));
    assert!(text.contains("did you mean `question`"), "{text}");
}
