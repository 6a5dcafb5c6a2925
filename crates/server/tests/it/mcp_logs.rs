//! `mcp`: windows of a log that join to the whole of it.

use serde_json::{Value, json};

use crate::{mcp_client::Client, records::texts, world::World};

/// The cursor that a window ends with, and the lines before its notes.
fn window(text: &str) -> (u64, Vec<&str>) {
    let (rest, cursor) = text.rsplit_once('\n').unwrap_or(("", text));
    let cursor = cursor.strip_prefix("next cursor: ").unwrap_or_else(|| panic!("{text}")).parse().unwrap();
    (cursor, rest.lines().filter(|line| !line.starts_with('[')).collect())
}

#[test]
fn windows_join_to_the_whole_log() {
    let world = World::new();
    let mut client = Client::legacy(&world);
    let run = client.structured("run", json!({"playbook": "flood", "inputs": {"lines": 700}}))["run"].clone();
    let whole = world.expect(0, &["logs", run.as_str().unwrap(), "--json"]).records();
    let (mut cursor, mut lines, mut windows) = (0, Vec::new(), 0);
    loop {
        let text = client.text("run_logs", json!({"run": run, "cursor": cursor, "limit": 1000}));
        assert!(text.len() <= 6000, "{}", text.len());
        let (next, shown) = window(&text);
        lines.extend(shown.into_iter().map(str::to_owned));
        windows += 1;
        if text.contains("[end of the log: the run is finished]") {
            assert_eq!(next, whole.len() as u64);
            break;
        }
        assert!(next > cursor && text.contains(&format!("call again with cursor {next}]")), "{text}");
        cursor = next;
    }
    assert!(windows > 3, "{windows}");
    let seqs: Vec<_> = lines.iter().map(|line| line.split_once(' ').unwrap().0.parse::<u64>().unwrap()).collect();
    assert_eq!(seqs, (1..=whole.len() as u64).collect::<Vec<_>>());
    let said: Vec<_> = lines.iter().filter_map(|line| line.split_once(" flood out| ")).map(|(_, text)| text).collect();
    assert_eq!(said, texts(&whole, "stdout"));
    let text = client.text("run_logs", json!({"run": run, "cursor": whole.len()}));
    assert!(text.contains("[nothing more: the run is finished]"), "{text}");
}

#[test]
fn windows_of_records_are_the_records() {
    let world = World::new();
    let mut client = Client::modern(&world);
    let run = client.structured("run", json!({"playbook": "flood", "inputs": {"lines": 300}}))["run"].clone();
    let whole = world.expect(0, &["logs", run.as_str().unwrap(), "--json"]).records();
    let (mut cursor, mut records) = (json!(0), Vec::<Value>::new());
    loop {
        let arguments = json!({"run": run, "cursor": cursor, "format": "json", "max_bytes": 20_000});
        let page = client.structured("run_logs", arguments);
        assert_eq!(page["head"].as_u64(), Some(whole.len() as u64));
        records.extend(page["records"].as_array().unwrap().iter().cloned());
        cursor = page["next"].clone();
        if page["done"] == true {
            break;
        }
        assert_eq!(page["not_shown"]["from"].as_u64(), Some(cursor.as_u64().unwrap() + 1), "{page}");
    }
    assert_eq!(records, whole);
}

#[test]
fn a_reader_follows_a_run_while_it_runs() {
    let world = World::new();
    let mut client = Client::modern(&world);
    let file = world.file("go");
    let run =
        client.structured("run", json!({"playbook": "hold", "inputs": {"file": file}, "wait_s": 0}))["run"].clone();
    let (mut cursor, mut text) = (0, String::new());
    loop {
        let more = client.text("run_logs", json!({"run": run, "cursor": cursor, "wait_s": 20}));
        let (next, lines) = window(&more);
        assert!(!lines.is_empty() && next > cursor, "a wait that was not over has something: {more}");
        text.push_str(&lines.join("\n"));
        text.push('\n');
        cursor = next;
        if lines.iter().any(|line| line.contains("hold out| holding ")) {
            std::fs::write(&file, "").unwrap();
        }
        if more.contains("the run is finished]") {
            break;
        }
    }
    let whole = world.expect(0, &["logs", run.as_str().unwrap(), "--json"]).records();
    assert_eq!(text.lines().count(), whole.len(), "{text}");
}

#[test]
fn windows_are_filtered_and_say_what_they_left_out() {
    let world = World::new();
    let mut client = Client::legacy(&world);
    let run = client.structured("run", json!({"playbook": "small"}))["run"].clone();
    let flood = client.structured("run", json!({"playbook": "flood", "inputs": {"lines": 500}}))["run"].clone();
    let mut logs = |run: &Value, more: Value| {
        let mut arguments = json!({"run": run});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        client.text("run_logs", arguments)
    };
    let text = logs(&run, json!({"stream": "stderr"}));
    assert_eq!(window(&text).1.len(), 1, "{text}");
    assert!(text.contains(" leave err| bye\n") && text.contains("[1 of 10 records looked at match]"), "{text}");
    let text = logs(&run, json!({"state": "greet", "grep": "^hello"}));
    assert_eq!(window(&text).1.len(), 1, "{text}");
    let text = logs(&flood, json!({"grep": "line 00000012.", "limit": 3}));
    assert_eq!(window(&text).1.len(), 3, "{text}");
    let text = logs(&flood, json!({"tail": 2}));
    assert_eq!(window(&text).1.len(), 2, "{text}");
    assert!(text.contains("run-finished") && text.contains("[not shown: what comes before record "), "{text}");
    let text = logs(&flood, json!({"max_bytes": 0}));
    assert!(window(&text).1.is_empty() && text.contains("records 1 to 505]"), "{text}");
    let spool = format!(
        "[whole log: {}]",
        world.data().join("spool").join(format!("{}.jsonl", flood.as_str().unwrap())).display()
    );
    assert!(text.contains(&spool), "{text}");
    let text = client.refused("run_logs", json!({"run": run, "grep": "("}));
    assert!(text.contains("not a regular expression"), "{text}");
    let text = client.refused("run_logs", json!({"run": run, "cursor": 1000}));
    assert!(text.contains("cursor 1000 is past the end"), "{text}");
}

#[test]
fn what_is_not_there_any_more_is_told() {
    let world = World::new();
    let mut client = Client::modern(&world);
    let run = client.structured("run", json!({"playbook": "flood", "inputs": {"lines": 20}}))["run"].clone();
    world.expect(0, &["gc", "--max-age", "0s", "--keep", "15"]);
    let text = client.text("run_logs", json!({"run": run}));
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("gap: records 1 to ") && first.contains("retention"), "{text}");
    let page = client.structured("run_logs", json!({"run": run, "format": "json"}));
    assert_eq!(page["records"][0]["type"], "gap");
    assert_eq!(page["first"], page["records"][1]["seq"]);
}
