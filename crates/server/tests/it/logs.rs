//! `logs`: windows of a log, filters, and following.

use std::{fs, process::Command};

use serde_json::Value;

use crate::{
    records::{of_type, texts},
    world::World,
};

const SCRIPT: &str = "i=1; while [ $i -le 20 ]; do echo \"line $i\"; i=$((i+1)); done; echo oops >&2";

/// A finished run with 26 records, and its log.
fn finished(world: &World) -> (String, Vec<Value>) {
    let records = world.expect(0, &["exec", "--json", "--", "sh", "-c", SCRIPT]).records();
    (records[0]["run"].as_str().unwrap().to_owned(), records)
}

#[test]
fn the_log_is_the_file_of_the_spool() {
    let world = World::new();
    let (run, records) = finished(&world);
    let json = world.expect(0, &["logs", &run, "--json"]).stdout;
    let spool = fs::read_to_string(world.data().join("spool").join(format!("{run}.jsonl"))).unwrap();
    let (first, rest) = spool.split_once('\n').unwrap();
    assert_eq!(first, format!(r#"{{"type":"spool-segment","run":"{run}","first":1,"dropped_to":0}}"#));
    assert_eq!(json, rest);
    assert_eq!(json.lines().count(), records.len());
}

#[test]
fn a_window_is_what_was_asked_for() {
    let world = World::new();
    let (run, records) = finished(&world);
    let logs = |args: &[&str]| world.expect(0, &[&["logs", &run, "--json"], args].concat()).records();
    let head = records.len();
    assert_eq!(logs(&["--after", "0"]), records);
    assert_eq!(logs(&["--after", "10"]), records[10..]);
    assert_eq!(logs(&["--after", &head.to_string()]), Vec::<Value>::new());
    assert_eq!(logs(&["--tail", "3"]), records[head - 3..]);
    assert_eq!(logs(&["--tail", "0"]), Vec::<Value>::new());
    assert_eq!(logs(&["--tail", "1000"]), records);
    assert_eq!(logs(&["--tail", "5", "--after", &(head - 2).to_string()]), records[head - 2..]);
    assert_eq!(texts(&logs(&["--grep", "^line 1.$", "--tail", "2"]), "stdout"), ["line 18", "line 19"]);
    assert_eq!(texts(&logs(&["--grep", "^line 1"]), "stdout").len(), 11);
    // What is not output is matched as its JSON.
    assert_eq!(logs(&["--grep", r#""policy":"ok""#]), [of_type(&records, "state-done")[0].clone()]);
    let errors = logs(&["--stream", "stderr"]);
    assert_eq!((texts(&errors, "stderr"), errors.len()), (vec!["oops".to_owned()], 1));
    assert_eq!(logs(&["--stream", "stdout"]).len(), 20);
    assert_eq!(logs(&["--types", "run-start,run-finished"]), [records[0].clone(), records[head - 1].clone()]);
    assert_eq!(logs(&["--types", "no-such-type"]), Vec::<Value>::new());
    let told = |types: &str| world.expect(0, &["logs", &run, "--types", types]).stderr;
    assert_eq!(told("log,run-finished"), "");
    let said = told("log,run-finish");
    assert_eq!(said, "taffrail: no event type `run-finish` is known here; did you mean `run-finished`?\n");
    assert!(told("no-such-type").starts_with("taffrail: no event type `no-such-type` is known here; known: "));
    // A run's own start and end are of no state.
    assert_eq!(logs(&["--state", "exec"]).len(), head - 2);
    assert_eq!(logs(&["--state", "other"]), Vec::<Value>::new());
    assert_eq!(logs(&["--state", "exec", "--stream", "stdout", "--grep", "0$", "--after", "10"]).len(), 2);
}

#[test]
fn people_see_text_and_no_control_characters() {
    let world = World::new();
    let script = r"printf 'plain\n\033[31mred\033[0m\007\n\033]0;title\007x\n'";
    let records = world.expect(0, &["exec", "--json", "--", "sh", "-c", script]).records();
    let run = records[0]["run"].as_str().unwrap();
    let text = world.expect(0, &["logs", run]).stdout;
    assert!(text.contains("plain\n") && text.contains("red") && !text.contains(['\x1b', '\x07']), "{text:?}");
    assert_eq!(world.expect(0, &["logs", run, "--types", "log"]).stdout.lines().count(), 3);
}

#[test]
fn what_cannot_be_read_is_told() {
    let world = World::new();
    let (run, records) = finished(&world);
    let bad = world.expect(2, &["logs", &run, "--grep", "line ("]);
    assert!(bad.stderr.contains("not a regular expression") && bad.stderr.contains("unclosed group"), "{}", bad.stderr);
    let head = records.len();
    let ahead = world.expect(2, &["logs", &run, "--after", &(head + 1).to_string()]);
    for word in [format!("cursor {}", head + 1), head.to_string(), run.clone()] {
        assert!(ahead.stderr.contains(&word), "{}", ahead.stderr);
    }
    for flags in [&[][..], &["-f"], &["--tail", "1"]] {
        let unknown = world.expect(4, &[&["logs", "no-such-run"], flags].concat());
        assert!(unknown.stderr.contains("no run no-such-run"), "{}", unknown.stderr);
    }
}

#[test]
fn following_goes_on_through_a_suspension_and_ends_with_the_run() {
    let world = World::new();
    let run = world.expect(3, &["run", "person", "--json"]).records()[0]["run"].as_str().unwrap().to_owned();
    let mut all = world.start(&["logs", "-f", "--json", &run]);
    let mut tail = world.start(&["logs", "-f", "--json", "--tail", "1", &run]);
    let mut grep = world.start(&["logs", "-f", "--json", "--grep", "^deployed", &run]);
    for follower in [&mut all, &mut tail] {
        follower.record(|record| record["status"] == "suspended");
    }
    assert!(!all.has_ended() && !tail.has_ended() && !grep.has_ended());
    world.expect(0, &["approve", &run]);
    let log = world.expect(0, &["logs", &run, "--json"]).stdout;
    for follower in [&mut all, &mut tail] {
        follower.record(|record| record["status"] == "done");
    }
    grep.log("deployed");
    let [all, tail, grep] = [all, tail, grep].map(|follower| {
        let done = follower.end();
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        done.stdout
    });
    assert_eq!(all, log);
    assert!(log.ends_with(&tail) && tail.starts_with(r#"{"seq":"#) && tail.lines().count() > 3, "{tail}");
    assert_eq!(grep.lines().count(), 1, "{grep}");
}

#[test]
fn following_a_finished_run_ends_at_once_and_a_killed_one_soon() {
    let world = World::new();
    let (run, records) = finished(&world);
    assert_eq!(world.expect(0, &["logs", "-f", "--json", &run]).records(), records);
    let mut exec = world.start(&["exec", "--json", "--", "sh", "-c", "echo here; sleep 1000"]);
    let run = exec.log("here")["run"].as_str().unwrap().to_owned();
    let mut follower = world.start(&["logs", "-f", "--json", &run]);
    follower.log("here");
    exec.signal(rustix::process::Signal::KILL);
    let end = follower.record(|record| record["type"] == "run-finished");
    assert_eq!(end["status"], "interrupted");
    assert_eq!(follower.end().code, Some(0));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let world = World::new();
    world.expect(0, &["exec", "--quiet", "--", "seq", "100000"]);
    let run = world.only_run();
    let bin = env!("CARGO_BIN_EXE_taffrail");
    let mut command: Command = world.program("sh");
    command.args(["-c", &format!("{{ {bin} logs {run}; echo \"status $?\" >&2; }} | head -n 2")]);
    let done = crate::proc::Proc::start(command).end();
    assert_eq!((done.stdout.lines().count(), done.stderr.as_str()), (2, "status 0\n"));
}

#[test]
fn runs_that_share_a_thread_have_their_own_records() {
    let world = World::new();
    let run = |word: &str| {
        let records = world.expect(0, &["exec", "--thread", "shared", "--json", "--", "echo", word]).records();
        records[0]["run"].as_str().unwrap().to_owned()
    };
    let (one, two) = (run("one"), run("two"));
    for (run, word, first) in [(one, "one", 1), (two, "two", 7)] {
        let records = world.expect(0, &["logs", &run, "--json"]).records();
        assert_eq!(texts(&records, "stdout"), [word]);
        assert!(records.iter().all(|record| record["thread"] == "shared" && record["run"] == run.as_str()));
        assert_eq!(records[0]["seq"], first);
    }
    let listed = world.expect(0, &["runs", "--thread", "shared", "--json"]).records();
    assert_eq!(listed.len(), 2);
}
