//! `exec` on programs that are awkward to watch.

use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use crate::{
    records::{assert_whole, bytes, logs, of_type, texts, types},
    world::{World, case},
};

/// Runs a case to its end with this status, and returns its records.
#[track_caller]
fn records(world: &World, code: i32, name: &str, args: &[&str]) -> Vec<Value> {
    let program = case(name);
    let records = world.expect(code, &[&["exec", "--json", "--", &program], args].concat()).records();
    assert_whole(&records, if code == 0 { "done" } else { "halt" });
    records
}

#[test]
fn a_fast_failure_keeps_its_complaints_and_passes_its_code_on() {
    let world = World::new();
    let records = records(&world, 3, "fastfail.sh", &[]);
    assert_eq!(texts(&records, "stderr"), ["first complaint", "second complaint"]);
    assert_eq!(types(&records)[records.len() - 4..], ["log", "log", "state-done", "run-finished"]);
    assert_eq!(of_type(&records, "state-done")[0]["exit"], serde_json::json!({"code": 3}));
    // People see both lines, too.
    let done = world.expect(3, &["exec", "--", &case("fastfail.sh")]);
    assert!(done.stdout.is_empty(), "{}", done.stdout);
    for line in ["first complaint", "second complaint", "exit code 3"] {
        assert!(done.stderr.contains(line), "{}", done.stderr);
    }
    // And on request nobody sees anything.
    let done = world.expect(3, &["exec", "--quiet", "--", &case("fastfail.sh")]);
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("", ""));
}

#[test]
fn redraws_are_folded() {
    let records = records(&World::new(), 0, "redraw.sh", &[]);
    assert_eq!(texts(&records, "stdout"), ["downloading 100%", "plain after crlf", "last line"]);
    assert!(logs(&records, "stdout")[0].redraw);
}

#[test]
fn every_byte_can_be_had_back() {
    let records = records(&World::new(), 0, "bytes.sh", &[]);
    let written = std::process::Command::new(case("bytes.sh")).output().unwrap().stdout;
    assert_eq!(bytes(&records, "stdout"), written);
    let end = records.last().unwrap();
    assert_eq!(
        (end["usage"]["log_bytes"].as_u64(), end["usage"]["log_lines"].as_u64()),
        (Some(written.len() as u64), Some(7))
    );
}

#[test]
fn a_long_line_comes_in_pieces_that_make_it() {
    let records = records(&World::new(), 0, "longline.sh", &[]);
    let logs = logs(&records, "stdout");
    assert!(logs.len() >= 17 && logs.iter().all(|log| log.data().len() <= 64 * 1024 && log.b64.is_none()));
    assert_eq!(bytes(&records, "stdout"), std::process::Command::new(case("longline.sh")).output().unwrap().stdout);
    assert_eq!(records.last().unwrap()["usage"]["log_lines"], 2);
}

#[test]
fn a_grandchild_that_holds_the_pipe_holds_up_nobody() {
    let world = World::new();
    let start = Instant::now();
    let records = records(&world, 0, "grandchild.sh", &[]);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    let at = |wanted: &str| {
        let found = records.iter().find(|r| r["text"] == wanted || r["type"] == wanted).unwrap();
        found["ts"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap()
    };
    let took = at("state-done").duration_since(at("parent: done"));
    assert!(took < jiff::SignedDuration::from_secs(2), "{took}");
    let mut said = texts(&records, "stdout");
    said.sort();
    assert!(said.len() == 2 && said[0].starts_with("grandchild: started") && said[1] == "parent: done", "{said:?}");
    world.until_empty(Duration::from_secs(5));
}

#[test]
fn both_streams_are_whole_and_in_order() {
    let records = records(&World::new(), 0, "both.sh", &[]);
    for (stream, word) in [("stdout", "out"), ("stderr", "err")] {
        assert_eq!(texts(&records, stream), (0..1000).map(|i| format!("{word} {i}")).collect::<Vec<_>>());
    }
}

#[test]
fn a_flood_is_whole_and_the_books_balance() {
    const LINES: u64 = 200_000;
    let world = World::new();
    world.expect(0, &["exec", "--quiet", "--", &case("flood.sh"), &LINES.to_string()]);
    let run = world.only_run();
    let usage = world.expect(0, &["status", &run, "--json"]).json()["usage"].clone();
    assert_eq!((usage["log_lines"].as_u64(), usage["log_bytes"].as_u64()), (Some(LINES), Some(LINES * 59)));
    assert_eq!((usage["clipped_lines"].as_u64(), usage["clipped_bytes"].as_u64()), (Some(0), Some(0)));
    let log = world.expect(0, &["logs", &run, "--json", "--types", "log"]).stdout;
    let numbers = log.lines().map(|line| line.split_once("\"text\":\"line ").unwrap().1[..9].parse::<u64>().unwrap());
    assert!(numbers.eq(0..LINES));
    // The file beside the store has the same, and one line more.
    let spool = std::fs::read_to_string(world.data().join("spool").join(format!("{run}.1.jsonl")));
    let rotated = spool.map_or(0, |text| text.lines().count());
    assert!(rotated > 0, "50 MB are more than one file");
}

#[test]
fn each_line_is_seen_at_once() {
    // The median, and the best of a few rounds: others use the machine, too. What waits for a turn or a timer delays all.
    let mut rounds = Vec::new();
    while rounds.len() < 3 {
        let delays = delays();
        if delays.iter().all(|delay| *delay < LIMIT) {
            return;
        }
        rounds.push(delays);
    }
    panic!("where it runs, and elsewhere: {rounds:?}");
}

const LIMIT: Duration = Duration::from_millis(100);

/// Median delays of nine lines: as the process that runs them prints them, and as a follower in another process does.
fn delays() -> [Duration; 2] {
    let world = World::new();
    let mut exec = world.start(&["exec", "--json", "--", &case("slow.sh"), "9"]);
    let run = exec.record(|record| record["type"] == "run-start")["run"].as_str().unwrap().to_owned();
    let mut follower = world.start(&["logs", "-f", "--json", &run]);
    [&mut exec, &mut follower].map(|proc| {
        proc.record(|record| record["type"] == "run-finished");
        let mut all: Vec<_> = proc.seen.iter().filter_map(|(at, line)| delay(*at, line)).collect();
        assert_eq!(all.len(), 9);
        all.sort();
        all[4]
    })
}

/// How long after the time in it a line was seen.
fn delay(at: SystemTime, line: &str) -> Option<Duration> {
    let (_, rest) = line.split_once("\"text\":\"tick ")?;
    let nanos = rest.split_once(' ')?.1.split('"').next()?.parse().unwrap();
    Some(at.duration_since(SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos)).unwrap_or_default())
}

#[test]
fn a_question_meets_the_end_of_input() {
    let records = records(&World::new(), 0, "asks.sh", &[]);
    assert_eq!(texts(&records, "stdout"), ["Continue? [y/N] ", "no answer"]);
}
