//! One named snapshot per shape on the wire.

use std::{collections::BTreeSet, num::NonZeroU64};

use taffrail_mcp_core::{Event, Gap, Ingest, PageMeta, Record, RunFold, RunStatus, Seq, Timestamp};

use crate::samples::{self, TS, events, line, thread};

/// Compares with `snapshots/<name>.snap`.
fn check(name: &str, json: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, json));
}

#[test]
fn every_event() {
    for (seq, (name, event)) in (1..).zip(events()) {
        check(name, &line(seq, &event));
    }
}

#[test]
fn every_known_type_has_a_sample() {
    let events = events();
    let sampled: BTreeSet<&str> = events.iter().map(|(_, event)| event.kind()).collect();
    let known: BTreeSet<&str> = Event::KINDS.iter().copied().chain(["x-weather"]).collect();
    assert_eq!(sampled, known);
    for (name, event) in &events {
        let file = name.split('.').next().unwrap();
        assert_eq!(file, if let Event::Other(_) = event { "other" } else { event.kind() });
    }
}

#[test]
fn gap() {
    let gap = Gap::retention(thread(), Seq(4), Seq(101)).unwrap();
    check("gap", &gap.to_json());
    assert_eq!((gap.from, gap.to, gap.next), (Seq(5), Seq(100), Seq(100)));
    assert_eq!(Gap::retention(thread(), Seq(4), Seq(5)), None, "the next record is kept");
    assert_eq!(Gap::retention(thread(), Seq(4), Seq(1)), None, "all are kept");
    assert_eq!(Gap::retention(thread(), Seq(0), Seq(0)), None, "an empty log");
}

/// The record that ends a batch of numbered events from elsewhere.
#[test]
fn ingested() {
    let ingest = Ingest { producer: "worker-7".parse().unwrap(), first: NonZeroU64::new(101).unwrap(), last: 200 };
    let json = format!("{{\"type\":\"x\",\"ingest\":{}}}", serde_json::to_string(&ingest).unwrap());
    for kind in ["note", "x-weather"] {
        let body = json.replace("\"x\"", &format!("\"{kind}\",\"text\":\"hm\",\"level\":\"info\""));
        let (before, after) = body.split_at(1);
        let common = r#""seq":7,"thread":"t","run":"r","ts":"2026-11-30T07:32:47.123456Z","#;
        let record = Record::parse(format!("{before}{common}{after}").as_bytes()).unwrap();
        assert_eq!(record.ingest(), Some(ingest.clone()), "{kind}");
        let mut line = Vec::new();
        record.encode(&mut line);
        check(&format!("ingested.{kind}"), std::str::from_utf8(&line).unwrap().trim_end());
        let mut fold = RunFold::new(samples::run(), thread());
        fold.apply_record(&record);
        let arrived = fold.producers[&ingest.producer];
        assert_eq!((arrived.position(200), arrived.position(199)), (Some(Seq(7)), Some(Seq(6))));
        assert_eq!((arrived.position(100), arrived.position(201)), (None, None));
        // Sent on to another log, it says nothing about that.
        let (event, extra) = Record::parse_event(body.as_bytes()).unwrap();
        let mut sent = Vec::new();
        event.encode_body_with(&extra, &mut sent);
        assert!(!String::from_utf8(sent).unwrap().contains("ingest"), "{kind}");
    }
}

#[test]
fn page_meta() {
    let meta = PageMeta { next: Seq(240), head: Seq(912), first: Seq(1), done: false, matched: 17, scanned: 200 };
    check("page-meta", &serde_json::to_string(&meta).unwrap());
}

#[test]
fn snapshots() {
    let mut fold = RunFold::new(samples::run(), thread());
    let mut seq = Seq::START;
    let mut apply = |fold: &mut RunFold, event: Event| {
        seq = seq.next();
        let ts = Timestamp::from_micros(TS.micros() + seq.0 * 1_000_000);
        fold.wrote(seq, ts, 0, 0);
        fold.apply(seq, ts, &event);
        fold.snapshot(seq, Timestamp::from_micros(ts.micros() + 250_000))
    };
    apply(&mut fold, samples::run_start(false).into());
    let (_, build) = events().into_iter().find(|(name, _)| *name == "state-start").unwrap();
    let running = apply(&mut fold, build);
    check("snapshot", &serde_json::to_string_pretty(&running).unwrap());

    apply(&mut fold, samples::checkpoint().into());
    apply(&mut fold, samples::approval_requested().into());
    let mut suspended = apply(&mut fold, samples::run_finished(RunStatus::Suspended, None).into());
    suspended.spool = Some("/var/lib/taffrail/spool/deploys.jsonl".into());
    suspended.next = "Ask a person to decide, then call resume.".into();
    check("snapshot.suspended", &serde_json::to_string_pretty(&suspended).unwrap());

    apply(&mut fold, samples::claimed().into());
    apply(&mut fold, samples::run_start(true).into());
    let (_, halt) = events().into_iter().find(|(name, _)| *name == "run-finished.halt").unwrap();
    let halted = apply(&mut fold, halt);
    check("snapshot.halt", &serde_json::to_string_pretty(&halted).unwrap());
}
