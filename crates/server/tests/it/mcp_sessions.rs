//! `mcp`: how a session begins, in every revision, and what it offers.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    mcp_client::{Client, LEGACY, MODERN, revisions},
    world::{World, here},
};

const TOOLS: [&str; 8] =
    ["run", "resume", "run_status", "run_logs", "run_cancel", "list_runs", "list_playbooks", "check_playbook"];

#[test]
fn every_revision_begins_lists_its_tools_and_runs_a_playbook() {
    let world = World::new();
    for revision in revisions() {
        let start = Instant::now();
        let mut client = Client::raw(&world, &[]);
        let first = client.begin(revision);
        assert!(start.elapsed() < Duration::from_secs(2), "{revision}: {:?}", start.elapsed());
        match revision {
            MODERN => assert!(first["supportedVersions"].as_array().unwrap().contains(&json!(MODERN)), "{first}"),
            legacy => assert_eq!(first["protocolVersion"], legacy),
        }
        assert!(first["instructions"].as_str().is_some_and(|text| text.contains("run_status")), "{first}");
        let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
        let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, TOOLS, "{revision}");
        let snapshot = client.structured("run", json!({"playbook": "small", "inputs": {"who": revision}}));
        assert_eq!(snapshot["status"], "done", "{revision}");
        let logs = client.text("run_logs", json!({"run": snapshot["run"]}));
        assert!(logs.contains(&format!("greet out| hello {revision}\n")), "{logs}");
        client.assert_silent();
        client.hang_up();
        let done = client.proc.end_within(Duration::from_secs(10));
        assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{revision}");
    }
}

#[test]
fn results_fit_the_schemas_of_their_tools() {
    let world = World::new();
    let mut client = Client::legacy(&world);
    let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
    let run = client.structured("run", json!({"playbook": "question"}))["run"].clone();
    let calls = [
        ("run", json!({"playbook": "small"})),
        ("run_status", json!({"run": run})),
        ("resume", json!({"run": run, "inputs": {"region": "eu"}})),
        ("run_cancel", json!({"run": run})),
        ("list_runs", json!({})),
        ("list_playbooks", json!({})),
        ("check_playbook", json!({"name": "small"})),
    ];
    for (name, arguments) in calls {
        let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
        for schema in ["inputSchema", "outputSchema"] {
            assert!(jsonschema::meta::is_valid(&tool[schema]), "{name} {schema}");
        }
        let given = jsonschema::validator_for(&tool["inputSchema"]).unwrap();
        assert!(given.is_valid(&arguments), "{name}");
        assert!(!given.is_valid(&json!({"no-such-argument": 1})), "{name}");
        let output = jsonschema::validator_for(&tool["outputSchema"]).unwrap();
        let result = client.structured(name, arguments);
        assert!(output.is_valid(&result), "{name}: {result}");
    }
}

#[test]
fn the_snapshot_of_a_tool_is_that_of_the_command() {
    let world = World::new();
    let mut client = Client::modern(&world);
    let snapshot = client.structured("run", json!({"playbook": "person"}));
    let run = snapshot["run"].as_str().unwrap();
    assert_eq!(snapshot["status"], "suspended");
    assert_eq!(world.expect(0, &["status", run, "--json"]).json(), snapshot);
    assert_eq!(client.structured("run_status", json!({"run": run})), snapshot);
    assert_eq!(client.structured("list_runs", json!({}))["runs"][0]["run"], run);
}

#[test]
fn the_folder_it_is_started_in_need_not_matter() {
    let world = World::new();
    let mut command = world.command(&["mcp"]);
    command.current_dir("/");
    let mut client = Client::over(command);
    client.begin(LEGACY[2]);
    let path = here("tests/playbooks/small.yaml");
    let snapshot = client.structured("run", json!({"playbook": path}));
    assert_eq!(snapshot["status"], "done");
    // Relative folders are relative to it.
    let mut command = world.command(&["mcp", "--playbooks", "tests/playbooks"]);
    command.current_dir(here("."));
    let mut client = Client::over(command);
    client.begin(MODERN);
    assert_eq!(client.structured("run", json!({"playbook": "small"}))["status"], "done");
}

#[test]
fn an_empty_folder_of_playbooks_is_no_failure() {
    let mut world = World::new();
    world.playbooks = world.file("nowhere");
    let mut client = Client::legacy(&world);
    assert_eq!(client.structured("list_playbooks", json!({}))["playbooks"], json!([]));
    let text = client.refused("run", json!({"playbook": "small"}));
    assert!(text.starts_with("Not found: no playbook `small`"), "{text}");
}

#[test]
fn only_the_protocol_is_on_standard_output() {
    let world = World::new();
    let mut client = Client::raw(&world, &["--log", "debug"]);
    client.begin(MODERN);
    client.call("run", json!({"playbook": "small"}));
    client.write("rubbish");
    assert_eq!(client.read()["error"]["code"], -32700);
    client.hang_up();
    let done = client.proc.end();
    assert!(done.stdout.lines().all(|line| serde_json::from_str::<Value>(line).is_ok_and(|m| m["jsonrpc"] == "2.0")));
    assert!(!done.stderr.contains("hello world"), "what commands print is no diagnostic: {}", done.stderr);
}
