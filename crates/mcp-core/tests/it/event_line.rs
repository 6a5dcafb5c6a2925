//! Lines of events from elsewhere: what is taken, what is refused, and that both ways to a record give the same.

use proptest::{collection::vec, prelude::*, sample::select};
use taffrail_mcp_core::{Event, EventBatch, EventLineError, EventReader, Record, RecordHead, RunId, Seq, Timestamp};

use crate::generate;

/// Reads a line into a batch.
fn read(line: &[u8]) -> Result<EventBatch, EventLineError> {
    let mut reader = EventReader::new();
    let mut batch = EventBatch::new();
    batch.push_read(reader.read(line)?);
    Ok(batch)
}

/// The same by way of a value.
fn by_value(line: &[u8]) -> EventBatch {
    let (event, extra) = Record::parse_event(line).unwrap();
    let mut batch = EventBatch::new();
    batch.push_with(event, &extra);
    batch
}

type Seen = (String, u64, (u64, u64), Vec<(u64, String)>);

fn seen(batch: &EventBatch) -> Seen {
    let folding = batch.folding().iter().map(|(at, event)| (*at, format!("{event:?}"))).collect();
    (String::from_utf8(batch.bodies().to_vec()).unwrap(), batch.len(), batch.output(), folding)
}

fn stored(line: &str, body: &str) {
    let batch = read(line.as_bytes()).unwrap();
    assert_eq!(seen(&batch), seen(&by_value(line.as_bytes())), "{line}");
    assert_eq!(batch.bodies(), format!("{body}\n").as_bytes(), "{line}");
}

#[test]
fn what_is_stored() {
    let log = r#""type":"log","state":"s","stream":"stdout","text":"a"}"#;
    stored(r#"{"type":"log","state":"s","stream":"stdout","text":"a"}"#, log);
    // As other languages write it: with spaces, in another order, with escapes that are not needed, with CRLF.
    stored("  { \"type\" : \"log\" , \"state\": \"s\",\t\"stream\": \"stdout\", \"text\": \"a\" } \r\n", log);
    stored(r#"{"text":"a","stream":"stdout","state":"s","type":"log"}"#, log);
    stored(r#"{"type":"log","state":"s","stream":"stdout","text":"\u0061"}"#, log);
    stored(r#"{"\u0074ype":"log","state":"s","stream":"stdout","text":"a"}"#, log);
    // What says where a record stands, or how it came there, is ours to say.
    stored(
        r#"{"seq":9,"thread":"x","run":"r","ts":"2026-11-30T07:32:47Z","type":"log","state":"s","stream":"stdout","text":"a"}"#,
        log,
    );
    stored(
        r#"{"type":"log","state":"s","stream":"stdout","text":"a","ingest":{"producer":"p","first":1,"last":9}}"#,
        log,
    );
    // Types that we do not know, and shapes of known ones, pass through, numbers of any size among them.
    stored(r#"{"type":"x"}"#, r#""type":"x"}"#);
    stored(
        r#"{"n":1e999,"type":"a:b/c","z":[1, {"a" :123456789012345678901234567890}]}"#,
        r#""type":"a:b/c","n":1e999,"z":[1, {"a" :123456789012345678901234567890}]}"#,
    );
    stored("{\"type\":\"x\",\"a\":[1,\r2]}", r#""type":"x","a":[1, 2]}"#);
    stored(r#"{"type":"x","s":"\ud800\u0000é"}"#, r#""type":"x","s":"\ud800\u0000é"}"#);
    stored(r#"{"type":"log","text":"no state"}"#, r#""type":"log","text":"no state"}"#);
    stored(r#"{"type":"progress","progress":1e999}"#, r#""type":"progress","progress":1e999}"#);
    stored(
        r#"{"type":"log","state":"s","stream":"stdout","text":"a","folded":18446744073709551615}"#,
        r#""type":"log","state":"s","stream":"stdout","text":"a","folded":18446744073709551615}"#,
    );
    stored(
        r#"{"type":"message","role":"user","text":"hi","delta":false,"model":"m"}"#,
        r#""type":"message","role":"user","text":"hi","delta":false,"model":"m"}"#,
    );
}

fn refused(line: impl AsRef<[u8]>, column: usize, what: &str) {
    let error = read(line.as_ref()).unwrap_err();
    assert_eq!(
        (error.column, error.to_string().as_str()),
        (column, what),
        "{}",
        String::from_utf8_lossy(line.as_ref())
    );
}

#[test]
fn what_is_refused_and_where() {
    refused("", 1, "not a JSON object: send one object a line");
    refused("[{\"type\":\"x\"}]", 1, "not a JSON object: send one object a line");
    refused("nonsense", 1, "not a JSON object: send one object a line");
    refused("{}", 2, "the field \"type\" is missing");
    refused(r#"{"a":1}"#, 1, "the field \"type\" is missing");
    refused(r#"{"type":"x""#, 12, "not JSON: the line ends before the object does");
    refused(r#"{"type":"x","text":"a"#, 22, "not JSON: the line ends before the object does");
    refused(r#"{"type":"x"} {"type":"y"}"#, 14, "something follows the object: send one object a line");
    refused(r#"{"type":"x","a":01}"#, 18, "not JSON: a comma or the end of the object is expected here");
    refused(r#"{"type":"x",}"#, 13, "not JSON: a field's name in double quotes is expected here");
    refused(
        "{\"type\":\"x\",\"a\":\"\0\"}",
        18,
        "not JSON: a control character in a string: it must be written as an escape",
    );
    refused(
        b"{\"type\":\"x\",\"a\":\"\xff\"}",
        18,
        "not UTF-8: send bytes that are no text as base64, in a field `b64`",
    );
    refused(r#"{"type":"x","\ud800":1}"#, 14, "not JSON: a field's name with half of a character");
    refused(r#"{"type":"log","type":"run-finished"}"#, 16, "the field \"type\" is there twice");
    refused(r#"{"type":"log","t\u0079pe":"run-finished"}"#, 16, "the field \"type\" is there twice");
    refused(r#"{"type":"x","a":1,"b":2,"a":1}"#, 26, "the field \"a\" is there twice");
    refused(r#"{"type":1}"#, 9, "the field \"type\" must be a string");
    for kind in ["", "a b", "a\\u0062", "a\\\"", "é", "a,b", &"x".repeat(129)] {
        refused(
            format!("{{\"type\":\"{kind}\"}}"),
            9,
            "a type has 1 to 128 letters, digits, '.', '_', '-', ':' and '/'",
        );
    }
    refused(
        r#"{"type":"gap","from":1}"#,
        9,
        "\"gap\" is told to readers and never stored: give the event another type",
    );
    refused(
        r#"{"ts":"yesterday","type":"x"}"#,
        7,
        "the field \"ts\" must be a UTC time such as 2026-11-30T07:32:47.123456Z",
    );
    refused(r#"{"type":"x","run":7}"#, 19, "the field \"run\" must be a string");
    refused(r#"{"type":"run-finished","status":"done"}"#, 39, "not a run-finished: missing field `machine`");
    let deep = format!("{{\"type\":\"x\",\"a\":{}", "[".repeat(100_000));
    refused(deep, 80, "not JSON: nested deeper than 64 levels");
}

#[test]
fn many_fields_cost_little_and_none_is_there_twice() {
    let mut line = String::from("{\"type\":\"x\"");
    for number in 0..50_000 {
        line.push_str(&format!(",\"f{number}\":1"));
    }
    assert_eq!(read(format!("{line}}}").as_bytes()).unwrap().len(), 1);
    let error = read(format!("{line},\"f7\":2}}").as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "the field \"f7\" is there twice");
}

#[test]
fn common_fields_are_told() {
    let mut reader = EventReader::new();
    let line = br#"{"type":"x","run":"r1","ts":"1970-01-01T00:00:01Z"}"#;
    let event = reader.read(line).unwrap();
    assert_eq!((event.ts(), event.run()), (Some(Timestamp::from_micros(1_000_000)), Some("r1")));
    assert!(event.folding().is_none());
    let event = reader.read(br#"{"type":"x","run":null,"ts":null}"#).unwrap();
    assert_eq!((event.ts(), event.run()), (None, None));
    let clipped = br#"{"type":"checkpoint-claimed","checkpoint":"c","actor":"a"}"#;
    assert_eq!(reader.read(clipped).unwrap().folding().map(Event::kind), Some("checkpoint-claimed"));
}

/// Fields as they may come: of all known types, right and wrong, and others.
fn field() -> impl Strategy<Value = (String, String)> {
    let known = vec![
        "state",
        "index",
        "stream",
        "text",
        "b64",
        "part",
        "more",
        "redraw",
        "folded",
        "eol",
        "crlf",
        "role",
        "delta",
        "message",
        "progress",
        "level",
        "ts",
        "run",
        "seq",
        "thread",
        "ingest",
        "x",
        "t\\u0065xt",
        "é",
        "a\\/b",
    ];
    let value = select(vec![
        "\"s\"",
        "\"stdout\"",
        "\"stderr\"",
        "\"a\\nb\"",
        "\"\\u00e9\"",
        "\"é\"",
        "\"\"",
        "\"\\u001b[0m\"",
        "\"\\u001B\"",
        "0",
        "1",
        "18446744073709551615",
        "18446744073709551616",
        "1.0",
        "-1",
        "1e3",
        "true",
        "false",
        "null",
        "[1, 2]",
        "{\"a\" : [] }",
        "[1,\r2]",
        "\"1970-01-01T00:00:00Z\"",
        "\"info\"",
    ]);
    (select(known).prop_map(str::to_owned), value.prop_map(str::to_owned))
}

fn line() -> impl Strategy<Value = String> {
    let space = select(vec!["", "", "", "", "", " ", "\t", "\r"]);
    let kind = select(vec!["log", "log", "log", "message", "message", "x", "note", "progress", "clipped"]);
    // The fields that a line of output needs, or not; then whatever.
    let base = select(vec![
        vec![("state", "\"s\""), ("stream", "\"stdout\""), ("text", "\"a\"")],
        vec![("role", "\"user\""), ("text", "\"a\""), ("delta", "true")],
        vec![],
    ]);
    (kind, base, vec(field(), 0..5), any::<u8>(), space).prop_map(|(kind, base, more, turn, space)| {
        let mut fields = vec![("type".to_owned(), format!("\"{kind}\""))];
        fields.extend(base.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())));
        for (name, value) in more {
            let decoded = |name: &str| serde_json::from_str::<String>(&format!("\"{name}\"")).unwrap();
            if !fields.iter().any(|(there, _)| decoded(there) == decoded(&name)) {
                fields.push((name, value));
            }
        }
        let places = fields.len();
        fields.rotate_left(usize::from(turn) % 3 % places);
        let fields: Vec<String> =
            fields.iter().map(|(name, value)| format!("\"{name}\"{space}:{space}{value}")).collect();
        format!("{space}{{{}}}{space}", fields.join(&format!("{space},{space}")))
    })
}

proptest! {
    #[test]
    fn both_ways_give_the_same(line in line()) {
        match read(line.as_bytes()) {
            Ok(batch) => prop_assert_eq!(seen(&batch), seen(&by_value(line.as_bytes())), "{}", line),
            // Only for what is checked beyond what a value shows.
            Err(error) => {
                let told = error.to_string();
                let expected = ["the field \"ts\"", "the field \"run\"", "not a clipped"];
                prop_assert!(expected.iter().any(|what| told.starts_with(what)), "{}: {}", line, told);
            }
        }
    }

    #[test]
    fn every_event_that_we_write_is_taken(event in generate::event()) {
        let run = RunId::new("r").unwrap();
        let mut line = Vec::new();
        let head = RecordHead { seq: Seq(7), thread: &run.clone().into(), run: &run, ts: Timestamp::from_micros(5) };
        head.encode(&event, &mut line);
        let mut reader = EventReader::new();
        let read = reader.read(&line).unwrap();
        prop_assert_eq!((read.ts(), read.run()), (Some(Timestamp::from_micros(5)), Some("r")));
        prop_assert_eq!(read.folding().is_some(), event.folds());
        let mut batch = EventBatch::new();
        batch.push_read(read);
        let mut expected = EventBatch::new();
        expected.push(event);
        prop_assert_eq!(seen(&batch), seen(&expected));
    }

    #[test]
    fn any_bytes_are_taken_or_refused(line in vec(any::<u8>(), 0..40), junk in "[{}\\[\\]\":,a-z0-9\\\\ type]{0,40}") {
        for line in [line.as_slice(), junk.as_bytes(), format!("{{\"type\":\"x\",{junk}").as_bytes()] {
            if let Ok(batch) = read(line) {
                prop_assert_eq!(batch.bodies().iter().filter(|byte| **byte == b'\n').count(), 1);
                prop_assert_eq!(seen(&batch), seen(&by_value(line)));
            }
        }
    }
}
