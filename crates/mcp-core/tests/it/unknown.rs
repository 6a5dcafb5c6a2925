//! What this version does not know passes through unchanged.

use taffrail_mcp_core::{Event, EventBatch, Record};

const HEAD: &str = r#"{"seq":7,"thread":"t","run":"r","ts":"2026-11-30T07:32:47.123456Z","#;

/// Reads and writes a record that begins with the usual head.
#[track_caller]
fn check(body: &str, expected: &str) {
    let read = Record::parse(format!("{HEAD}{body}\n").as_bytes()).unwrap();
    let mut out = Vec::new();
    read.encode(&mut out);
    assert_eq!(String::from_utf8(out).unwrap(), format!("{HEAD}{expected}\n"));

    // The same by the way of ingest: without the head, through a batch.
    let (event, extra) = Record::parse_event(format!("{{{body}").as_bytes()).unwrap();
    let mut batch = EventBatch::new();
    batch.push_with(event, &extra);
    assert_eq!(std::str::from_utf8(batch.bodies()).unwrap(), format!("{expected}\n"));
    assert_eq!(batch.len(), 1);
}

#[track_caller]
fn unchanged(body: &str) {
    check(body, body);
}

#[test]
fn unknown_types() {
    unchanged(r#""type":"x"}"#);
    unchanged(r#""type":"x-weather","n":123456789012345678901234567890,"tiny":1.0e-999,"f":1.10,"e":1E+2}"#);
    unchanged(r#""type":"x","b":{"z":1,"a":{"é":"\u00e9\/"}},"a":[ 1 , 2 ],"n":null,"":""}"#);
    unchanged(r#""type":"x \"quoted\"","k\ney":"\ud800"}"#);
    // Deeper than any reader of values would go.
    let deep = format!(r#""type":"x","deep":{}{}}}"#, "[".repeat(400), "]".repeat(400));
    unchanged(&deep);
}

#[test]
fn unknown_fields_of_known_types() {
    unchanged(r#""type":"note","text":"a","level":"info","big":99999999999999999999999999,"o":{"b":1,"a":2}}"#);
    unchanged(r#""type":"log","state":"s","stream":"stdout","text":"a","colour":"\u0072ed"}"#);
    unchanged(r#""type":"log","state":"s","stream":"stdout","b64":"/w==","more":true,"x":[1.50]}"#);
    // They move behind the known ones.
    check(
        r#""type":"note","new":1.0,"text":"a","level":"info"}"#,
        r#""type":"note","text":"a","level":"info","new":1.0}"#,
    );
}

#[test]
fn spelt_out_defaults_are_kept() {
    unchanged(r#""type":"log","state":"s","stream":"stdout","text":"a","more":false,"index":null,"folded":0}"#);
    unchanged(r#""type":"log","state":"s","stream":"stdout","text":"a","eol":true}"#);
    unchanged(r#""type":"log","state":"s","stream":"stdout"}"#);
    unchanged(r#""type":"log","state":"s","stream":"stdout","text":"a","b64":"Yg=="}"#);
    unchanged(r#""type":"log","state":"s","stream":"stdout","b64":"not base64"}"#);
    unchanged(r#""type":"log","state":"s","stream":"stdout","b64":"YWJj"}"#);
}

#[test]
fn unknown_words_and_shapes_in_known_types() {
    unchanged(r#""type":"state-start","machine":"m","depth":0,"state":"s","step":1,"kind":"teleport"}"#);
    unchanged(r#""type":"log","state":"s","stream":"fd3","text":"a"}"#);
    unchanged(r#""type":"branch-done","machine":"m","depth":0,"state":"s","index":0,"exit":{"core":true}}"#);
    unchanged(r#""type":"clipped","stream":"stdout","lines":1,"bytes":99999999999999999999}"#);
    unchanged(r#""type":"note","text":"a","text":"b","level":"info"}"#);
    unchanged(r#""type":"run-finished","machine":"m","depth":-1,"status":"done"}"#);
}

#[test]
fn open_words_are_known_types() {
    let body = r#""type":"state-done","machine":"m","depth":0,"state":"s","step":1,"gate":null,"policy":"retry-later","to":null,"output":""}"#;
    unchanged(body);
    let read = Record::parse(format!("{HEAD}{body}").as_bytes()).unwrap();
    assert!(matches!(read.event, Event::StateDone(done) if done.policy.as_str() == "retry-later"));
}

#[test]
fn a_record_stays_one_line() {
    // Line ends between tokens: a peer must not be able to add a record to a log or an event to a stream.
    check("\"type\":\"x\",\"o\":{\n\"a\":\r\n[1]}}", "\"type\":\"x\",\"o\":{ \"a\":  [1]}}");
    check(
        "\"type\":\"note\",\"text\":\"a\",\"level\":\"info\",\"o\":[\r1]}",
        "\"type\":\"note\",\"text\":\"a\",\"level\":\"info\",\"o\":[ 1]}",
    );
}

#[test]
fn order_and_white_space_of_known_fields_are_the_writers() {
    let read = Record::parse(
        br#" { "type" : "note" , "ts":"2026-11-30T07:32:47.1Z", "level":"info","text":"a","run":"r","seq":7,"thread":"t" } "#,
    );
    let mut out = Vec::new();
    read.unwrap().encode(&mut out);
    let expected = r#"{"seq":7,"thread":"t","run":"r","ts":"2026-11-30T07:32:47.100000Z","type":"note","text":"a","level":"info"}"#;
    assert_eq!(String::from_utf8(out).unwrap(), format!("{expected}\n"));
}

#[test]
fn ingest_drops_common_fields() {
    let line = format!("{HEAD}\"type\":\"note\",\"text\":\"a\",\"level\":\"info\",\"x\":1}}");
    let (event, extra) = Record::parse_event(line.as_bytes()).unwrap();
    assert_eq!(event.kind(), "note");
    assert_eq!(extra.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["x"]);
}
