//! Runs as people see them.

mod afterwards;
mod live;
mod plain;
mod properties;
mod tree;

use serde_json::{Value, json};
use taffrail_mcp_core::{Record, RecordHead, RunId, Seq, Snapshot, ThreadId, Timestamp};

/// Noon of some day.
const START: u64 = 1_796_040_000_000_000;

fn at(ms: u64) -> Timestamp {
    Timestamp::from_micros(START + ms * 1000)
}

/// A record as it is stored, so many milliseconds after the start.
fn record(ms: u64, event: &Value) -> Vec<u8> {
    let (event, _) = Record::parse_event(event.to_string().as_bytes()).unwrap();
    let run = RunId::new("run-1").unwrap();
    let mut line = Vec::new();
    let head = RecordHead { seq: Seq(1), thread: &ThreadId::from(run.clone()), run: &run, ts: at(ms) };
    head.encode(&event, &mut line);
    line
}

fn run_start(ms: u64, entry: &str) -> Vec<u8> {
    record(ms, &json!({"type":"run-start","machine":"release","depth":0,"entry":entry,"resumed":false}))
}

fn state_start(ms: u64, depth: u32, step: u64, state: &str, kind: &str) -> Vec<u8> {
    let event = json!({"type":"state-start","machine":"release","depth":depth,"state":state,"step":step,"kind":kind});
    record(ms, &event)
}

fn state_done(ms: u64, depth: u32, step: u64, state: &str, policy: &str, more: Value) -> Vec<u8> {
    let mut event =
        json!({"type":"state-done","machine":"release","depth":depth,"state":state,"step":step,"policy":policy});
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    record(ms, &event)
}

fn branch_start(ms: u64, index: u64, item: &str) -> Vec<u8> {
    record(ms, &json!({"type":"branch-start","machine":"release","depth":0,"state":"test","index":index,"item":item}))
}

fn branch_done(ms: u64, index: u64, code: i32) -> Vec<u8> {
    let exit = json!({"code":code});
    record(ms, &json!({"type":"branch-done","machine":"release","depth":0,"state":"test","index":index,"exit":exit}))
}

fn log(ms: u64, state: &str, text: &str) -> Vec<u8> {
    record(ms, &json!({"type":"log","state":state,"stream":"stdout","text":text}))
}

fn finished(ms: u64, status: &str, more: Value) -> Vec<u8> {
    let mut event = json!({"type":"run-finished","machine":"release","depth":0,"status":status,"usage":{"wall_ms":ms}});
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    record(ms, &event)
}

fn asked(ms: u64, state: &str, message: &str, schema: Option<Value>) -> Vec<u8> {
    let mut event =
        json!({"type":"approval-requested","approval":"a1","state":state,"message":message,"hash":"00","by":"human"});
    if let Some(schema) = schema {
        event["schema"] = schema;
    }
    record(ms, &event)
}

fn snapshot(more: Value) -> Snapshot {
    let mut snapshot = json!({
        "run": "run-1", "thread": "run-1", "playbook": "release", "status": "done", "state": "deploy", "step": 4,
        "head": 9, "started_at": at(0), "elapsed_ms": 12_345, "usage": {"log_lines": 1200, "log_bytes": 54_321},
    });
    snapshot.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(snapshot).unwrap()
}
