//! `run_logs`.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Client;

fn quick() -> Client {
    let mut client = Client::legacy();
    client.call("run", json!({"playbook": "quick"}));
    client
}

/// A running run with `count` lines of 100 bytes.
fn lines(count: usize) -> Client {
    let mut client = Client::legacy();
    client.call("run", json!({"playbook": "slow", "wait_s": 0}));
    for at in 0..count {
        client.fake.log("run-1", &format!("{at:0100}"));
    }
    client
}

#[test]
fn text_is_lines_and_ends_with_the_cursor() {
    let mut client = quick();
    let result = client.call("run_logs", json!({"run": "run-1"}));
    assert!(result.get("structuredContent").is_none());
    insta::assert_snapshot!(result["content"][0]["text"].as_str().unwrap(), @"
    1 run-start machine=m entry=build resumed=false
    2 state-start machine=m state=build step=1 kind=run
    3 build out| hello
    4 build err| a warning
    5 state-done machine=m state=build step=1 policy=ok to=END output=hello exit={code=0}
    6 run-finished machine=m status=done
    [end of the log: the run is finished]
    [whole log: /spool/run-1.jsonl]
    next cursor: 6
    ");
    insta::assert_snapshot!(client.text("run_logs", json!({"run": "run-1", "cursor": 6})), @"
    [nothing more: the run is finished]
    [whole log: /spool/run-1.jsonl]
    next cursor: 6
    ");
    insta::assert_snapshot!(client.text("run_logs", json!({"run": "run-1", "stream": "stderr"})), @"
    4 build err| a warning
    [end of the log: the run is finished]
    [1 of 6 records looked at match]
    [whole log: /spool/run-1.jsonl]
    next cursor: 6
    ");
    insta::assert_snapshot!(client.text("run_logs", json!({"run": "run-1", "max_bytes": 0})), @"
    [log of run run-1: records 1 to 6]
    [not shown: records 1 to 6; call again with cursor 0]
    [whole log: /spool/run-1.jsonl]
    next cursor: 0
    ");
    insta::assert_snapshot!(client.text("run_logs", json!({"run": "run-1", "limit": 2})), @"
    1 run-start machine=m entry=build resumed=false
    2 state-start machine=m state=build step=1 kind=run
    [not shown: records 3 to 6; call again with cursor 2]
    [whole log: /spool/run-1.jsonl]
    next cursor: 2
    ");
    insta::assert_snapshot!(client.text("run_logs", json!({"run": "run-1", "tail": 2})), @"
    5 state-done machine=m state=build step=1 policy=ok to=END output=hello exit={code=0}
    6 run-finished machine=m status=done
    [end of the log: the run is finished]
    [not shown: what comes before record 5; call again with cursor 0 and without tail]
    [whole log: /spool/run-1.jsonl]
    next cursor: 6
    ");
}

#[test]
fn json_is_records_in_both_forms() {
    let mut client = quick();
    let result = client.call("run_logs", json!({"run": "run-1", "limit": 1, "format": "json"}));
    let text = result["content"][0]["text"].as_str().unwrap();
    insta::assert_snapshot!(text, @r#"{"records":[{"seq":1,"thread":"run-1","run":"run-1","ts":"2026-11-30T12:00:00.000000Z","type":"run-start","machine":"m","depth":0,"entry":"build","resumed":false}],"done":false,"first":1,"head":6,"matched":1,"next":1,"not_shown":{"from":2,"to":6},"scanned":1,"spool":"/spool/run-1.jsonl"}"#);
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), result["structuredContent"]);
}

#[test]
fn windows_join_without_a_hole_and_keep_their_limit() {
    for format in ["text", "json"] {
        let mut client = lines(300);
        let (mut cursor, mut seen) = (0, 0);
        while cursor < 301 {
            let text =
                client.text("run_logs", json!({"run": "run-1", "cursor": cursor, "max_bytes": 2000, "format": format}));
            assert!(text.len() <= 2000, "{}", text.len());
            let next = match format {
                "text" => text.rsplit("next cursor: ").next().unwrap().parse().unwrap(),
                _ => serde_json::from_str::<Value>(&text).unwrap()["next"].as_u64().unwrap(),
            };
            assert!(next > cursor);
            while seen < 300 && text.contains(&format!("{seen:0100}")) {
                seen += 1;
            }
            cursor = next;
        }
        assert_eq!(seen, 300, "{format}");
    }
}

#[test]
fn what_is_left_out_is_said() {
    let mut client = lines(300);
    let text = client.text("run_logs", json!({"run": "run-1", "max_bytes": 500}));
    let notes: Vec<_> = text.lines().filter(|line| !line.contains("out|")).collect();
    insta::assert_snapshot!(notes.join("\n"), @"
    1 run-start machine=m entry=build resumed=false
    [not shown: records 5 to 301; call again with cursor 4]
    [whole log: /spool/run-1.jsonl]
    next cursor: 4
    ");
    let text = client.text("run_logs", json!({"run": "run-1", "max_bytes": 500, "tail": 50}));
    let notes: Vec<_> = text.lines().filter(|line| !line.contains("out|")).collect();
    insta::assert_snapshot!(notes.join("\n"), @"
    [not shown: matching records from 252 to 299; call again with cursor 251 and without tail]
    [whole log: /spool/run-1.jsonl]
    next cursor: 301
    ");
    assert!(text.contains(&format!("{:0100}", 299)));
}

#[test]
fn a_record_larger_than_the_window_is_cut_and_passed() {
    let mut client = Client::legacy();
    client.call("run", json!({"playbook": "slow", "wait_s": 0}));
    client.fake.log("run-1", &"é\"".repeat(5_000));
    client.fake.log("run-1", "small");
    let text = client.text("run_logs", json!({"run": "run-1", "cursor": 1, "max_bytes": 1000}));
    assert!(text.len() <= 1000, "{}", text.len());
    let (shown, notes) = text.split_once("…\n").unwrap();
    assert!(shown.starts_with("2 build out| é\"é\""));
    insta::assert_snapshot!(notes, @r#"
    [cut: record 2 holds 15013 bytes, of which 646 are shown; the whole record: run_logs {"cursor":1,"format":"json","limit":1,"max_bytes":40000,"run":"run-1"}]
    [not shown: record 3; call again with cursor 2]
    [whole log: /spool/run-1.jsonl]
    next cursor: 2
    "#);
    let json = client.text("run_logs", json!({"run": "run-1", "cursor": 1, "max_bytes": 1000, "format": "json"}));
    assert!(json.len() <= 1000, "{}", json.len());
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["next"], 2);
    insta::assert_snapshot!(json["records"][0]["cut"], @r#"{"bytes":20132,"whole":"run_logs {\"cursor\":1,\"format\":\"json\",\"limit\":1,\"max_bytes\":40000,\"run\":\"run-1\"}"}"#);
    let whole =
        client.call("run_logs", json!({"run": "run-1", "cursor": 1, "limit": 1, "format": "json", "max_bytes": 40000}));
    assert_eq!(whole["structuredContent"]["records"][0]["text"].as_str().map(str::len), Some(15_000));
}

#[test]
fn a_gap_is_a_line() {
    let mut client = quick();
    client.fake.trim("run-1", 4);
    let text = client.text("run_logs", json!({"run": "run-1", "limit": 2}));
    insta::assert_snapshot!(text, @"
    gap: records 1 to 4 can no longer be had (retention)
    5 state-done machine=m state=build step=1 policy=ok to=END output=hello exit={code=0}
    [not shown: record 6; call again with cursor 5]
    [whole log: /spool/run-1.jsonl]
    next cursor: 5
    ");
}

#[test]
fn an_empty_read_waits_when_asked_and_by_itself_when_repeated() {
    let mut client = Client::legacy();
    client.call("run", json!({"playbook": "slow", "wait_s": 0}));
    let id = client.send_call("run_logs", json!({"run": "run-1", "cursor": 1, "wait_s": 20}));
    client.fake.log("run-1", "news");
    let (_, answer) = client.read_until(id);
    insta::assert_snapshot!(answer["result"]["content"][0]["text"].as_str().unwrap(), @"
    2 build out| news
    [whole log: /spool/run-1.jsonl]
    next cursor: 2
    ");
    let mut read = |arguments: Value| {
        let start = Instant::now();
        client.call("run_logs", arguments);
        start.elapsed()
    };
    assert!(read(json!({"run": "run-1", "cursor": 2})) < Duration::from_secs(1));
    assert!(read(json!({"run": "run-1", "cursor": 2})) >= Duration::from_secs(2));
    assert!(read(json!({"run": "run-1", "cursor": 2, "wait_s": 0})) < Duration::from_secs(1));
}
