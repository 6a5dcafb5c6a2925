//! The shapes that other programs rely on, one named snapshot each.

use serde_json::{Value, json};

use crate::{mcp_client::Client, redact::redact, world::World};

/// The text as a model sees it, and the structured part.
fn pretty(world: &World, result: &Value) -> String {
    assert_eq!(result["content"].as_array().map(Vec::len), Some(1));
    let text = result["content"][0]["text"].as_str().unwrap();
    let structured = serde_json::to_string_pretty(&result["structuredContent"]).unwrap();
    redact(&format!("{text}\n---\n{structured}"), &world.data())
}

#[test]
fn the_records_of_a_run() {
    let world = World::new();
    let run = world.expect(0, &["run", "small", "--json"]);
    insta::assert_snapshot!("run_json", redact(&run.stdout, &world.data()));
    let id = run.records()[0]["run"].as_str().unwrap().to_owned();
    let logs = world.expect(0, &["logs", &id, "--json"]);
    assert_eq!(logs.stdout, run.stdout);
    insta::assert_snapshot!("logs_json", redact(&logs.stdout, &world.data()));
    let spool = std::fs::read_to_string(world.data().join("spool").join(format!("{id}.jsonl"))).unwrap();
    let first: Vec<_> = spool.lines().take(3).collect();
    insta::assert_snapshot!("spool_first_lines", redact(&first.join("\n"), &world.data()));
}

#[test]
fn the_records_of_a_command_that_failed() {
    let world = World::new();
    let exec = world.expect(3, &["exec", "--json", "--", "sh", "-c", "echo a; exit 3"]);
    insta::assert_snapshot!("exec_json", redact(&exec.stdout, &world.data()));
}

#[test]
fn the_records_of_an_approval() {
    let world = World::new();
    let run = world.expect(3, &["run", "person", "--json"]).records()[0]["run"].as_str().unwrap().to_owned();
    world.expect(0, &["approve", &run]);
    let logs = world.expect(0, &["logs", &run, "--json"]).stdout;
    insta::assert_snapshot!("approval_json", redact(&logs, &world.data()));
}

#[test]
fn the_results_of_tools() {
    let world = World::new();
    let mut client = Client::legacy(&world);
    let done = client.call("run", json!({"playbook": "small"}));
    insta::assert_snapshot!("tool_run", pretty(&world, &done));
    let waiting = client.call("run", json!({"playbook": "question"}));
    insta::assert_snapshot!("tool_run_suspended", pretty(&world, &waiting));
    let run = &done["structuredContent"]["run"];
    insta::assert_snapshot!("tool_run_status", pretty(&world, &client.call("run_status", json!({"run": run}))));
    let text = client.text("run_logs", json!({"run": run}));
    insta::assert_snapshot!("tool_run_logs", redact(&text, &world.data()));
    let page = client.call("run_logs", json!({"run": run, "format": "json", "stream": "stdout"}));
    insta::assert_snapshot!("tool_run_logs_json", pretty(&world, &page));
    insta::assert_snapshot!("tool_list_runs", pretty(&world, &client.call("list_runs", json!({}))));
    insta::assert_snapshot!("tool_list_playbooks", pretty(&world, &client.call("list_playbooks", json!({}))));
    let contract = client.call("list_playbooks", json!({"name": "person"}));
    insta::assert_snapshot!("tool_list_playbooks_one", pretty(&world, &contract));
    let source = "playbook: x\nstates: { one: { run: 5, tiemout: 1s } }\n";
    insta::assert_snapshot!(
        "tool_check_playbook",
        pretty(&world, &client.call("check_playbook", json!({"source": source})))
    );
}
