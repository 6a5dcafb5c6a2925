//! Batches: what a publisher hands over.

use proptest::{collection::vec, prelude::*};
use taffrail_mcp_core::{Event, EventBatch, Log, LogLine, MAX_LINE_BYTES, Note, Record, Stream};

use crate::{generate::base64, samples};

const HEAD: &[u8] = br#"{"seq":1,"thread":"t","run":"r","ts":"2026-11-30T07:32:47.123456Z","#;

/// The one record of a batch of one.
fn record(batch: &EventBatch) -> Record {
    assert_eq!(batch.len(), 1);
    Record::parse(&[HEAD, batch.bodies()].concat()).unwrap()
}

fn log(line: &LogLine<'_>) -> Log {
    let mut batch = EventBatch::new();
    batch.push_line(line);
    assert_eq!(batch.output(), (u64::from(!line.more), line.bytes()));
    let record = record(&batch);
    // The way by a value writes the same bytes, and counts the same.
    let mut by_value = EventBatch::new();
    by_value.push(record.event.clone());
    assert_eq!(by_value.bodies(), batch.bodies());
    assert_eq!(by_value.output(), batch.output());
    match record.event {
        Event::Log(log) => log,
        other => panic!("{other:?}"),
    }
}

fn check(data: &[u8], text: Option<&str>, b64: Option<&str>) {
    let log = log(&LogLine::new("s", Stream::Stdout, data));
    assert_eq!((log.text.as_deref(), log.b64.as_deref()), (text, b64));
    assert_eq!(log.data(), data);
}

#[test]
fn text_when_it_is_text() {
    check(b"", Some(""), None);
    check(b"plain", Some("plain"), None);
    check("é🚢".as_bytes(), Some("é🚢"), None);
    check(b"\0\x1b[0m\r", Some("\0\x1b[0m\r"), None);
    check(b"\xff", None, Some("/w=="));
    check(b"a\xc3", None, Some("YcM="));
    check(&vec![b'x'; MAX_LINE_BYTES], Some(&"x".repeat(MAX_LINE_BYTES)), None);
}

#[test]
fn bytes_as_read() {
    let line = LogLine::new("s", Stream::Stdout, b"abc");
    for (line, bytes, lines) in [
        (line, 4, 1),
        (LogLine { crlf: true, ..line }, 5, 1),
        (LogLine { eol: false, ..line }, 3, 1),
        (LogLine { more: true, part: Some(0), ..line }, 3, 0),
        (LogLine { redraw: true, folded: 10, ..line }, 14, 1),
    ] {
        assert_eq!((line.bytes(), log(&line).bytes(), log(&line).lines()), (bytes, bytes, lines), "{line:?}");
    }
}

#[test]
fn folding_events_keep_their_place() {
    let mut batch = EventBatch::new();
    batch.push(Note::info("a").into());
    batch.push(samples::run_start(false).into());
    batch.push_line(&LogLine::new("s", Stream::Stderr, b"x"));
    batch.push(samples::checkpoint().into());
    assert_eq!(batch.len(), 4);
    assert_eq!(batch.size(), batch.bodies().len());
    let places: Vec<_> = batch.folding().iter().map(|(at, event)| (*at, event.kind().to_owned())).collect();
    assert_eq!(places, [(1, "run-start".to_owned()), (3, "checkpoint".to_owned())]);
    batch.clear();
    assert!(batch.is_empty() && batch.bodies().is_empty() && batch.folding().is_empty());
    assert_eq!(batch.output(), (0, 0));
}

proptest! {
    #[test]
    fn every_byte_can_be_had_back(data in vec(any::<u8>(), 0..64)) {
        let log = log(&LogLine::new("s", Stream::Stdout, &data));
        let expected = std::str::from_utf8(&data).ok();
        prop_assert_eq!(log.text.as_deref(), expected);
        prop_assert_eq!(log.b64.clone(), expected.is_none().then(|| base64(&data)));
        prop_assert_eq!(&*log.data(), data.as_slice());
    }
}
