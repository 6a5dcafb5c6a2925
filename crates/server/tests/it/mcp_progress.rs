//! `mcp`: progress of a real run, in both eras.

use serde_json::{Value, json};

use crate::{
    mcp_client::{Client, LEGACY, MODERN},
    world::World,
};

#[test]
fn a_run_tells_how_far_it_is() {
    let world = World::new();
    for revision in [LEGACY[2], LEGACY[3], MODERN] {
        let mut client = Client::of(&world, revision);
        client.ask_for_progress("of the run");
        let id = client.send_call("run", json!({"playbook": "parts", "wait_s": 60}));
        let (before, answer) = client.read_until(id);
        assert_eq!(answer["result"]["structuredContent"]["status"], "done", "{answer}");
        let mut last = -1.0;
        for message in &before {
            let params = &message["params"];
            assert_eq!(message["method"], "notifications/progress");
            assert_eq!((&params["progressToken"], &params["total"]), (&json!("of the run"), &json!(3.0)));
            let progress = params["progress"].as_f64().unwrap();
            assert!(progress > last && progress <= 3.0, "{progress} after {last}");
            last = progress;
        }
        assert_eq!(last, 3.0, "{before:?}");
        let words: Vec<_> = before.iter().filter_map(|message| message["params"]["message"].as_str()).collect();
        assert_eq!(words.len(), before.len(), "{before:?}");
        assert_eq!(words.last(), Some(&"done after 3 steps"));
        assert!(words.iter().any(|words| words.starts_with("build (step 1)")), "{words:?}");
        assert!(words.iter().any(|words| words.contains("test[") && words.contains("(step 2): test")), "{words:?}");
        client.assert_silent();
    }
}

#[test]
fn whoever_comes_in_the_middle_sees_where_it_is() {
    let world = World::new();
    let mut client = Client::modern(&world);
    let arguments = json!({"playbook": "hold", "inputs": {"file": world.file("free")}, "wait_s": 0});
    let run = client.structured("run", arguments)["run"].clone();
    client.text("run_logs", json!({"run": run, "grep": "^holding", "wait_s": 20}));
    let head = client.structured("run_status", json!({"run": run}))["head"].clone();
    client.ask_for_progress("t");
    let id = client.send_call("run_status", json!({"run": run, "after": head, "wait_s": 60}));
    let first = client.read();
    let progress = |message: &Value| message["params"]["progress"].as_f64().unwrap();
    // One of three states is done, the second one has begun.
    assert!((0.9..2.0).contains(&progress(&first)), "{first}");
    world.write("free", "");
    let (before, _) = client.read_until(id);
    assert!(before.iter().all(|message| progress(message) > progress(&first)), "{before:?}");
}
