//! Speed of the encoders: one JSON line each on standard output.
//!
//! `cargo bench -p taffrail-mcp-core`; a number on the command line is the milliseconds spent on each.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use serde_json::json;
use taffrail_mcp_core::{
    Event, EventBatch, EventReader, Exit, LogLine, Policy, Record, RecordHead, RunId, Seq, StateDone, Stream, ThreadId,
    Timestamp,
};

/// About the mean length of a line of a build's output.
const LINE: &[u8] =
    b"test transport::sse::tests::resumes_after_the_last_event_id_the_client_has_seen_and_sends_nothing_twice ... ok";
const ESCAPED: &[u8] = b"\x1b[1m\x1b[32m   Compiling\x1b[0m \"taffrail\" v0.1.0 (C:\\work\\taffrail)\t[12/40]";
const BATCH: usize = 1000;

#[expect(clippy::print_stdout, reason = "the result")]
fn bench(name: &str, budget: Duration, mut once: impl FnMut() -> usize) {
    let (mut best, mut events, mut bytes) = (Duration::MAX, 0, 0);
    let began = Instant::now();
    while began.elapsed() < budget {
        let start = Instant::now();
        bytes = black_box(once());
        best = best.min(start.elapsed());
        events += BATCH;
    }
    let nanos = best.as_secs_f64() * 1e9 / BATCH as f64;
    let megabytes = bytes as f64 / best.as_secs_f64() / 1e6;
    println!(
        "{}",
        json!({
            "bench": format!("mcp-core/{name}"), "ns_per_event": (nanos * 10.0).round() / 10.0,
            "mb_per_s": megabytes.round(), "bytes_per_event": bytes / BATCH, "events": events,
        })
    );
}

fn lines(data: &[u8], budget: Duration, name: &str) {
    let mut batch = EventBatch::new();
    let line = LogLine::new("build", Stream::Stdout, data);
    bench(name, budget, || {
        batch.clear();
        (0..BATCH).for_each(|_| batch.push_line(black_box(&line)));
        batch.size()
    });
}

/// A line of events as it comes from elsewhere.
fn read(line: &str, budget: Duration, name: &str) {
    let (mut batch, mut reader) = (EventBatch::new(), EventReader::new());
    bench(name, budget, || {
        batch.clear();
        for _ in 0..BATCH {
            if let Ok(event) = reader.read(black_box(line.as_bytes())) {
                batch.push_read(event);
            }
        }
        batch.size()
    });
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Cargo itself adds `--bench`.
    let ms = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(500);
    let budget = Duration::from_millis(ms);
    let run = RunId::new("0193798d-5e03-7c40-a6e8-0d5f2b1c9a77")?;
    let thread = ThreadId::from(run.clone());
    let head = RecordHead { seq: Seq(1_000_000), thread: &thread, run: &run, ts: Timestamp::from_micros(1 << 50) };

    lines(LINE, budget, "line");
    lines(ESCAPED, budget, "line-escaped");
    lines(&[b'x'; 4096], budget, "line-4k");
    lines(b"\xff\xfe 32 bytes that are not UTF-8..", budget, "line-b64");

    let done = Event::from(StateDone {
        machine: "release".into(),
        depth: 0,
        state: "build".into(),
        step: 1,
        gate: Some("exit.code == 0".into()),
        policy: Policy::OK,
        to: Some("test".into()),
        output: "Finished in 12.3 s".into(),
        branches: None,
        exit: Some(Exit::Code(0)),
        truncated: false,
    });
    let mut out = Vec::new();
    bench("state-done", budget, || {
        out.clear();
        (0..BATCH).for_each(|_| head.encode(black_box(&done), &mut out));
        out.len()
    });

    let text = "x".repeat(120);
    read(
        &format!("{{\"type\":\"log\",\"state\":\"s\",\"stream\":\"stdout\",\"text\":\"{text}\"}}"),
        budget,
        "read-log",
    );
    read(
        &format!("{{\"text\": \"{text}\", \"stream\": \"stdout\", \"state\": \"s\", \"type\": \"log\"}}"),
        budget,
        "read-log-loose",
    );
    read(
        &format!("{{\"type\":\"log\",\"state\":\"s\",\"stream\":\"stdout\",\"text\":\"\\u00e9{text}\"}}"),
        budget,
        "read-log-by-value",
    );
    read(
        &format!("{{\"type\":\"metric\",\"name\":\"s\",\"value\":17.25,\"text\":\"{text}\"}}"),
        budget,
        "read-unknown",
    );

    let mut record = Vec::new();
    let mut batch = EventBatch::new();
    batch.push_line(&LogLine::new("build", Stream::Stdout, LINE));
    head.encode_head(&mut record);
    record.extend_from_slice(batch.bodies());
    bench("parse-log", budget, || {
        (0..BATCH).filter(|_| Record::parse(black_box(&record)).is_ok()).count() * record.len()
    });
    Ok(())
}
