//! Server-sent events as bytes (HTML, section 9.2). No I/O.
//!
//! A record is one event: `id: <seq>`, `data: <the record's line>`, and no `event:`, so that a browser's `onmessage` gets it.
//! Lines of records hold neither a newline nor a bare carriage return, the only bytes that could end a `data:` line.

use std::time::Duration;

use bytes::Bytes;
use memchr::{memchr_iter, memmem};
use taffrail_mcp_core::{Gap, LineHead, Seq};
use taffrail_relay::{Block, Filter};

/// What a frame adds to a line, beside the digits of its id.
const FRAME: usize = b"id: \ndata: \n".len();

/// Digits of most ids, generously.
const DIGITS: usize = 10;

/// How a record says that a run came to rest.
const FINISHED: &[u8] = br#""type":"run-finished""#;

/// Blocks as the bytes of a stream. A clone shares them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Framed {
    /// The frames.
    pub(crate) bytes: Bytes,
    /// Its last record that says that the run came to rest.
    pub(crate) rest: Option<Seq>,
}

/// Frames all records of consecutive blocks.
pub(crate) fn blocks(blocks: &[Block]) -> Framed {
    let size = |block: &Block| {
        let count = usize::try_from(block.count).unwrap_or_default();
        block.bytes.len() + count.saturating_mul(FRAME + DIGITS)
    };
    let mut out = Vec::with_capacity(blocks.iter().map(size).sum());
    for block in blocks {
        each_line(block, |seq, line| record(seq, line, &mut out));
    }
    // A cache keeps it for a while.
    out.shrink_to_fit();
    Framed { bytes: out.into(), rest: blocks.iter().rev().find_map(rest) }
}

/// Frames the records of a block that pass a filter; tells the last of them.
pub(crate) fn filtered(block: &Block, filter: &Filter, out: &mut Vec<u8>) -> Option<Seq> {
    let mut last = None;
    each_line(block, |seq, line| {
        if filter.passes(line) {
            record(seq, line, out);
            last = Some(seq);
        }
    });
    last
}

/// The last record of a block that says that its run came to rest, if one does.
pub(crate) fn rest(block: &Block) -> Option<Seq> {
    // Text cannot look like this, for it has its quotes escaped; an object inside an event can.
    let at = memmem::rfind(&block.bytes, FINISHED)?;
    let mut found = None;
    let mut end = 0;
    each_line(block, |seq, line| {
        if end <= at && LineHead::parse(line).is_some_and(|head| head.kind == "run-finished") {
            found = Some(seq);
        }
        end += line.len();
    });
    found
}

fn each_line(block: &Block, mut each: impl FnMut(Seq, &[u8])) {
    let mut start = 0;
    for (seq, end) in (block.first.0..).zip(memchr_iter(b'\n', &block.bytes)) {
        each(Seq(seq), block.bytes.get(start..=end).unwrap_or_default());
        start = end + 1;
    }
}

/// Appends the frame of one record; `line` ends in a newline.
fn record(seq: Seq, line: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"id: ");
    out.extend_from_slice(itoa::Buffer::new().format(seq.0).as_bytes());
    out.extend_from_slice(b"\ndata: ");
    out.extend_from_slice(line);
    out.push(b'\n');
}

/// How long a client waits before it connects again.
pub(crate) fn retry(wait: Duration) -> Bytes {
    format!("retry: {}\n\n", wait.as_millis()).into()
}

/// What shows that the stream is alive, and nothing else.
pub(crate) const ALIVE: Bytes = Bytes::from_static(b": alive\n\n");

/// Moves the client's cursor on without an event: an id alone is kept, and dispatches nothing (HTML, section 9.2.6).
pub(crate) fn passed(seq: Seq) -> Bytes {
    format!(": nothing here up to {seq}\nid: {seq}\n\n").into()
}

/// What can no longer be had.
pub(crate) fn gap(gap: &Gap) -> Bytes {
    format!("event: gap\nid: {}\ndata: {}\n\n", gap.to, gap.to_json()).into()
}

/// The end of a run, or of a turn. `snapshot` is JSON without line ends; `seq` that of the record it ended with, so that who
/// connects again is told that there is nothing more.
pub(crate) fn end(seq: Seq, snapshot: &str) -> Bytes {
    format!("event: end\nid: {seq}\ndata: {snapshot}\n\n").into()
}

#[cfg(test)]
mod tests {
    use taffrail_mcp_core::{
        Event, Note, Reason, RecordHead, RunFinished, RunId, RunStatus, ThreadId, Timestamp, Usage,
    };

    use super::*;

    fn of(first: u64, events: &[Event]) -> Block {
        let run = RunId::new("r").unwrap();
        let (thread, ts) = (ThreadId::new("t").unwrap(), Timestamp::from_micros(1));
        let mut bytes = Vec::new();
        for (seq, event) in (first..).zip(events) {
            RecordHead { seq: Seq(seq), thread: &thread, run: &run, ts }.encode(event, &mut bytes);
        }
        Block { run, first: Seq(first), count: events.len() as u64, ts, bytes: bytes.into() }
    }

    fn note(text: &'static str) -> Event {
        Note::info(text).into()
    }

    fn finished() -> Event {
        RunFinished {
            machine: "m".into(),
            depth: 0,
            status: RunStatus::Halt,
            error: Some(Reason::GATE_FAILED),
            at: None,
            usage: Usage::default(),
            detail: None,
        }
        .into()
    }

    #[test]
    fn a_record_is_an_event() {
        let framed = blocks(&[of(9, &[note("a\nb\r"), note("c")])]);
        insta::assert_snapshot!(String::from_utf8(framed.bytes.to_vec()).unwrap(), @r#"
        id: 9
        data: {"seq":9,"thread":"t","run":"r","ts":"1970-01-01T00:00:00.000001Z","type":"note","text":"a\nb\r","level":"info"}

        id: 10
        data: {"seq":10,"thread":"t","run":"r","ts":"1970-01-01T00:00:00.000001Z","type":"note","text":"c","level":"info"}

        "#);
        assert!(framed.bytes.ends_with(b"}\n\n"));
        assert_eq!(framed.rest, None);
    }

    #[test]
    fn the_last_rest_of_a_block_is_found() {
        assert_eq!(blocks(&[of(5, &[note("a"), finished()])]).rest, Some(Seq(6)));
        assert_eq!(blocks(&[of(5, &[finished(), note("a"), finished(), note("b")])]).rest, Some(Seq(7)));
        // What only looks like it is not.
        assert_eq!(blocks(&[of(5, &[note(r#""type":"run-finished""#)])]).rest, None);
        let mut nested = of(5, &[note("x")]);
        let line = String::from_utf8(nested.bytes.to_vec()).unwrap();
        nested.bytes = line.replace("\"x\"", r#"{"type":"run-finished"}"#).into();
        assert_eq!(blocks(&[nested]).rest, None);
    }

    #[test]
    fn what_passes_is_framed_alone() {
        let filter = Filter { types: vec!["run-finished".into()], ..Filter::default() };
        let mut out = Vec::new();
        assert_eq!(filtered(&of(1, &[note("a"), finished(), note("b")]), &filter, &mut out), Some(Seq(2)));
        assert!(out.starts_with(b"id: 2\ndata: {\"seq\":2,"));
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 3);
        assert_eq!(filtered(&of(1, &[note("a")]), &filter, &mut out), None);
    }

    #[test]
    fn the_others_are_byte_for_byte() {
        let told = Gap::retention(ThreadId::new("t").unwrap(), Seq(2), Seq(8)).unwrap();
        let all =
            [retry(Duration::from_secs(2)), ALIVE, passed(Seq(7)), gap(&told), end(Seq(12), r#"{"run":"r"}"#)].concat();
        insta::assert_snapshot!(String::from_utf8(all).unwrap(), @r#"
        retry: 2000

        : alive

        : nothing here up to 7
        id: 7

        event: gap
        id: 7
        data: {"type":"gap","thread":"t","from":3,"to":7,"reason":"retention","next":7}

        event: end
        id: 12
        data: {"run":"r"}

        "#);
    }
}
