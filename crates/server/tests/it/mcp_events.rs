//! `mcp`: a run's events as notifications, when they are asked for.

use serde_json::{Value, json};

use crate::{
    mcp_client::{Client, revisions},
    records::{of_type, states, types},
    redact::redact,
    world::World,
};

/// The records of notifications, in their order.
#[track_caller]
fn records(events: &[Value]) -> Vec<Value> {
    let record = |event: &Value| {
        assert_eq!(event["method"], "notifications/message", "{event}");
        assert_eq!(event["params"]["_meta"]["io.taffrail/seq"], event["params"]["data"]["seq"]);
        event["params"]["data"].clone()
    };
    events.iter().map(record).collect()
}

#[test]
fn nothing_is_sent_that_was_not_asked_for() {
    let world = World::new();
    for revision in revisions() {
        let mut client = Client::of(&world, revision);
        client.call("run", json!({"playbook": "small"}));
        client.assert_silent();
    }
}

#[test]
fn a_waiting_call_gets_every_record_in_order_before_its_answer() {
    let world = World::new();
    for revision in revisions() {
        let mut client = Client::of(&world, revision);
        client.ask_for_events("debug");
        let id = client.send_call("run", json!({"playbook": "small"}));
        let (events, answer) = client.read_until(id);
        let run = answer["result"]["structuredContent"]["run"].as_str().unwrap();
        let sent = records(&events);
        assert_eq!(sent, world.expect(0, &["logs", run, "--json"]).records(), "{revision}");
        assert_eq!((types(&sent)[0], *types(&sent).last().unwrap()), ("run-start", "run-finished"));
        assert_eq!(states(&sent), ["greet", "leave"]);
        client.assert_silent();
    }
}

#[test]
fn the_level_decides_what_is_sent() {
    let world = World::new();
    for revision in revisions() {
        let mut client = Client::of(&world, revision);
        client.ask_for_events("info");
        let id = client.send_call("run", json!({"playbook": "small"}));
        let sent = records(&client.read_until(id).0);
        assert_eq!((of_type(&sent, "log").len(), states(&sent).len()), (0, 2), "{revision}");
        client.ask_for_events("error");
        let id = client.send_call("run", json!({"playbook": "gate"}));
        let (events, answer) = client.read_until(id);
        assert_eq!(events, Vec::<Value>::new());
        let run = &answer["result"]["structuredContent"]["run"];
        let id = client.send_call("resume", json!({"run": run, "inputs": {"decision": "reject"}}));
        let (events, _) = client.read_until(id);
        assert_eq!(events[0]["params"]["level"], "error");
        assert_eq!(types(&records(&events)), ["run-finished"], "{revision}");
    }
}

#[test]
fn a_resume_sends_what_it_did_and_nothing_twice() {
    let world = World::new();
    let mut client = Client::modern(&world);
    client.ask_for_events("debug");
    let id = client.send_call("run", json!({"playbook": "gate"}));
    let (first, answer) = client.read_until(id);
    let run = answer["result"]["structuredContent"]["run"].as_str().unwrap().to_owned();
    let id = client.send_call("resume", json!({"run": run, "inputs": {"decision": "approve"}}));
    let (second, _) = client.read_until(id);
    let (first, second) = (records(&first), records(&second));
    let log = world.expect(0, &["logs", &run, "--json"]).records();
    // The decision and the claim are the caller's own doing; what follows is the run's.
    assert_eq!(types(&second)[0], "run-start");
    let between = log.len() - first.len() - second.len();
    assert_eq!(types(&log[first.len()..first.len() + between]), ["approval-resolved", "checkpoint-claimed"]);
    assert_eq!((&log[..first.len()], &log[first.len() + between..]), (&first[..], &second[..]));
}

#[test]
fn the_logger_has_the_name_that_the_operator_gave() {
    let world = World::new();
    let mut client = Client::raw(&world, &["--event-logger", "my.events"]);
    client.begin("2025-06-18");
    client.ask_for_events("info");
    let id = client.send_call("run", json!({"playbook": "small"}));
    let (events, _) = client.read_until(id);
    assert!(!events.is_empty() && events.iter().all(|event| event["params"]["logger"] == "my.events"));
}

#[test]
fn a_run_that_another_process_hosts_is_watched_live() {
    let world = World::new();
    let file = world.file("go");
    let mut other = Client::legacy(&world);
    let run =
        other.structured("run", json!({"playbook": "hold", "inputs": {"file": file}, "wait_s": 0}))["run"].clone();
    let mut client = Client::modern(&world);
    client.ask_for_events("debug");
    let id = client.send_call("run_status", json!({"run": run, "after": 1, "wait_s": 30}));
    let (mut events, _) = client.read_until(id);
    let mut sent = records(&events);
    while !types(&sent).contains(&"run-finished") {
        if sent.iter().any(|record| record["text"].as_str().is_some_and(|text| text.starts_with("holding "))) {
            std::fs::write(&file, "").unwrap();
        }
        let after = sent.last().map_or(json!(1), |record| record["seq"].clone());
        let id = client.send_call("run_status", json!({"run": run, "after": after, "wait_s": 1}));
        (events, _) = client.read_until(id);
        sent.extend(records(&events));
    }
    let log = world.expect(0, &["logs", run.as_str().unwrap(), "--json"]).records();
    assert_eq!(sent, log[1..]);
}

/// What a client that asks for everything is sent during one whole run, byte for byte.
#[test]
fn the_stream_of_a_whole_run() {
    let world = World::new();
    let mut client = Client::modern(&world);
    client.ask_for_events("debug");
    let id = client.send_call("run", json!({"playbook": "small"}));
    client.read_until(id);
    let lines: Vec<_> = client.proc.seen.iter().map(|(_, line)| line.as_str()).collect();
    let stream: String = lines.into_iter().filter(|line| line.contains("notifications/message")).collect();
    insta::assert_snapshot!("mcp_event_stream", redact(&stream, &world.data()));
}
