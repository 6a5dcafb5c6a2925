//! `mcp`: gates and questions, by whom they may be decided, and how a client gets past them.

use serde_json::{Value, json};

use crate::{
    mcp_client::{Client, revisions},
    records::{assert_whole, of_type, states, texts},
    world::World,
};

fn log(world: &World, run: &Value) -> Vec<Value> {
    world.expect(0, &["logs", run.as_str().unwrap(), "--json"]).records()
}

#[test]
fn an_agent_decides_what_it_may() {
    let world = World::new();
    for (revision, decision) in revisions().zip(["approve", "reject", "approve", "reject", "approve"]) {
        let mut client = Client::of(&world, revision);
        let waiting = client.structured("run", json!({"playbook": "gate"}));
        assert_eq!((&waiting["status"], &waiting["at"]), (&"suspended".into(), &"agree".into()));
        assert_eq!((&waiting["approval"]["by"], &waiting["approval"]["message"]), (&"agent".into(), &"Deploy?".into()));
        assert!(waiting["next"].as_str().unwrap().contains("resume"), "{waiting}");
        let run = &waiting["run"];
        // Neither nothing nor nonsense is a decision.
        for inputs in [json!({}), json!({"decision": "maybe"})] {
            let text = client.refused("resume", json!({"run": run, "inputs": inputs}));
            assert!(text.contains("decision") && text.contains("approve"), "{text}");
        }
        assert_eq!(client.structured("run_status", json!({"run": run}))["status"], "suspended");
        let end = client.structured("resume", json!({"run": run, "inputs": {"decision": decision}}));
        let records = log(&world, run);
        if decision == "approve" {
            assert_eq!(end["status"], "done");
            assert_eq!(states(&records), ["build", "agree", "deploy"]);
        } else {
            assert_eq!((&end["status"], &end["error"]), (&"halt".into(), &"approval-rejected".into()));
            assert_eq!(states(&records), ["build", "agree"]);
        }
        let resolved = of_type(&records, "approval-resolved");
        assert_eq!((resolved.len(), &resolved[0]["actor"]), (1, &"mcp:stdio".into()));
        assert_eq!(resolved[0]["hash"], waiting["approval"]["hash"]);
        // Over is over.
        let text = client.refused("resume", json!({"run": run}));
        assert!(text.starts_with("Conflict: "), "{text}");
    }
}

#[test]
fn a_gate_for_a_person_is_refused_with_the_way_out() {
    let world = World::new();
    let mut client = Client::modern(&world);
    let waiting = client.structured("run", json!({"playbook": "person"}));
    let run = waiting["run"].as_str().unwrap();
    assert!(waiting["next"].as_str().unwrap().contains(&format!("taffrail approve {run}")), "{waiting}");
    for arguments in [
        json!({"run": run}),
        json!({"run": run, "inputs": {"decision": "approve"}}),
        json!({"checkpoint": waiting["checkpoint"], "inputs": {"decision": "approve"}}),
    ] {
        let text = client.refused("resume", arguments);
        assert!(text.starts_with("Not allowed: ") && text.contains(&format!("taffrail approve {run}")), "{text}");
    }
    let before = log(&world, &waiting["run"]);
    assert_whole(&before, "suspended");
    // While the client waits, the person decides in a terminal, and the run goes on there.
    let id = client.send_call("run_status", json!({"run": run, "after": waiting["head"], "wait_s": 30}));
    world.expect(0, &["approve", run]);
    let (_, answer) = client.read_until(id);
    assert!(answer["result"]["structuredContent"]["head"].as_u64() > waiting["head"].as_u64(), "{answer}");
    assert_eq!(client.structured("run_status", json!({"run": run, "wait_s": 30}))["status"], "done");
    assert_whole(&log(&world, &waiting["run"]), "done");
}

#[test]
fn what_a_person_decided_an_agent_may_carry_out() {
    let world = World::new();
    let mut client = Client::legacy(&world);
    let run = client.structured("run", json!({"playbook": "person"}))["run"].as_str().unwrap().to_owned();
    world.expect(0, &["approve", &run, "--decide-only"]);
    let decided = client.structured("run_status", json!({"run": run}));
    assert!(decided["next"].as_str().unwrap().starts_with("Decided: call resume"), "{decided}");
    assert_eq!(client.structured("resume", json!({"run": run}))["status"], "done");
    let resolved = log(&world, &json!(run)).into_iter().find(|record| record["type"] == "approval-resolved").unwrap();
    assert_eq!(resolved["actor"], "cli:tester");
}

#[test]
fn a_question_is_answered_through_resume() {
    let world = World::new();
    let mut client = Client::modern(&world);
    let waiting = client.structured("run", json!({"playbook": "question"}));
    let run = &waiting["run"];
    assert_eq!(waiting["approval"]["schema"]["properties"]["region"]["enum"], json!(["eu", "us"]));
    for inputs in [json!({}), json!({"region": "mars"}), json!({"place": "eu"}), json!({"region": 1})] {
        let text = client.refused("resume", json!({"run": run, "inputs": inputs}));
        assert!(text.contains("answer") || text.contains("region"), "{text}");
    }
    let unchanged = client.structured("run_status", json!({"run": run}));
    assert_eq!((&unchanged["status"], &unchanged["head"]), (&"suspended".into(), &waiting["head"]));
    assert_eq!(client.structured("resume", json!({"run": run, "inputs": {"region": "us"}}))["status"], "done");
    assert_eq!(texts(&log(&world, run), "stdout"), ["to us"]);
}

#[test]
fn a_checkpoint_is_used_once_over_all_servers() {
    let world = World::new();
    let (mut one, mut two) = (Client::modern(&world), Client::legacy(&world));
    let waiting = one.structured("run", json!({"playbook": "gate"}));
    let arguments = json!({"checkpoint": waiting["checkpoint"], "inputs": {"decision": "approve"}});
    let (first, second) = (one.send_call("resume", arguments.clone()), two.send_call("resume", arguments.clone()));
    let (first, second) = (one.read_until(first).1, two.read_until(second).1);
    let failed = [&first, &second].map(|answer| answer["result"]["isError"] == true);
    assert!(failed[0] != failed[1], "{first}\n{second}");
    let loser = if failed[0] { &first } else { &second };
    let text = loser["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("Conflict: ") && text.contains("used up"), "{text}");
    assert_whole(&log(&world, &waiting["run"]), "done");
    let text = one.refused("resume", arguments);
    assert!(text.contains("used up"), "{text}");
}
