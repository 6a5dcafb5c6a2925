//! Optional fields may be absent, and are absent when there is nothing to say.

use serde_json::{Map, Value, json};
use taffrail_mcp_core::{Event, Record, Snapshot};

use crate::samples::{events, line};

/// Fields that a reader may rely on, by type: all others are absent when they have nothing to say.
fn required(kind: &str) -> &'static [&'static str] {
    match kind {
        "run-start" => &["machine", "depth", "entry", "resumed"],
        "state-start" => &["machine", "depth", "state", "step", "kind"],
        "state-done" => &["machine", "depth", "state", "step", "policy"],
        "branch-start" => &["machine", "depth", "state", "index"],
        "branch-done" => &["machine", "depth", "state", "index", "exit"],
        "run-finished" => &["machine", "depth", "status"],
        "log" => &["state", "stream"],
        "message" => &["role", "text", "delta"],
        "progress" => &["progress"],
        "approval-requested" => &["approval", "state", "message", "hash", "by"],
        "approval-resolved" => &["approval", "decision", "hash", "actor", "seen_seq"],
        "clipped" => &["stream", "lines", "bytes", "reason", "from_ts", "to_ts"],
        "tool-call" => &["tool", "role", "actor", "decision", "ms", "bytes"],
        "checkpoint" => &["checkpoint", "state", "step"],
        "checkpoint-claimed" => &["checkpoint", "actor"],
        "proposal" | "proposal-applied" => &["proposal", "tool", "hash", "actor"],
        "cancel-requested" => &["actor"],
        "note" => &["text", "level"],
        other => panic!("no list for {other}"),
    }
}

const COMMON: [&str; 5] = ["seq", "thread", "run", "ts", "type"];

fn object(json: &str) -> Map<String, Value> {
    serde_json::from_str(json).unwrap()
}

fn parse(object: &Map<String, Value>) -> Result<Record, String> {
    Record::parse(&serde_json::to_vec(object).unwrap()).map_err(|e| e.to_string())
}

#[test]
fn without_its_optional_fields_a_record_is_still_of_its_type() {
    for (name, event) in events().iter().filter(|(_, event)| Event::KINDS.contains(&event.kind())) {
        let mut object = object(&line(1, event));
        object.retain(|field, _| COMMON.contains(&field.as_str()) || required(event.kind()).contains(&field.as_str()));
        let read = parse(&object).unwrap();
        assert!(!matches!(read.event, Event::Other(_)), "{name}");
    }
}

#[test]
fn without_a_required_field_it_is_passed_on_as_it_is() {
    for (name, event) in events().iter().filter(|(_, event)| Event::KINDS.contains(&event.kind())) {
        for field in required(event.kind()) {
            let mut object = object(&line(1, event));
            object.remove(*field).unwrap_or_else(|| panic!("{name} has {field}"));
            let read = parse(&object).unwrap();
            assert!(matches!(read.event, Event::Other(_)), "{name} without {field}");
            assert_eq!(read.event.kind(), event.kind());
            let mut again = Vec::new();
            read.encode(&mut again);
            assert_eq!(Value::Object(object), serde_json::from_slice::<Value>(&again).unwrap());
        }
    }
}

#[test]
fn without_a_common_field_it_is_not_a_record() {
    for (_, event) in events() {
        for field in COMMON {
            let mut object = object(&line(1, &event));
            object.remove(field);
            assert_eq!(parse(&object).unwrap_err(), format!("field \"{field}\" is missing"));
        }
    }
}

#[test]
fn a_bad_common_field_is_named() {
    let cases = [
        ("seq", json!("1")),
        ("seq", json!(-1)),
        ("seq", json!(1.5)),
        ("thread", json!("../etc")),
        ("run", json!(null)),
        ("ts", json!("yesterday")),
        ("type", json!(7)),
    ];
    for (field, value) in cases {
        let mut object = object(&line(1, &events()[0].1));
        object.insert(field.into(), value);
        assert_eq!(parse(&object).unwrap_err(), format!("field \"{field}\" is not valid"));
    }
}

#[test]
fn what_is_not_an_object_is_not_a_record() {
    for bad in ["", "\n", "[]", "1", "null", "{", "{}x", "{\"seq\":1}{\"seq\":2}", "\u{feff}{}"] {
        assert!(Record::parse(bad.as_bytes()).is_err(), "{bad:?}");
    }
    assert!(Record::parse(b"{\"type\":\"\xff\"}").is_err(), "not UTF-8");
}

#[test]
fn a_snapshot_needs_no_optional_field() {
    let least = json!({
        "run": "r", "thread": "r", "playbook": "p", "status": "running", "state": null, "step": 0, "head": 0,
        "started_at": "2026-11-30T07:32:47Z", "elapsed_ms": 0, "usage": {},
    });
    let snapshot: Snapshot = serde_json::from_value(least.clone()).unwrap();
    let written = serde_json::to_value(&snapshot).unwrap();
    let mut added: Vec<_> = written.as_object().unwrap().keys().filter(|k| least.get(k).is_none()).collect();
    added.sort();
    assert_eq!(added, ["next"], "what has nothing to say is absent");
}
