//! Asking a server from a terminal: logs, lists, decisions.

use rustix::process::Signal;
use serde_json::Value;

use crate::{
    deployed::Deployed,
    proc::Proc,
    push_there::{There, run_of},
    records::assert_whole,
    world::{PATIENCE, World, until},
};

/// Standard output of a process, line by line, to its end.
fn rest(mut proc: Proc) -> (Vec<String>, Option<i32>, String) {
    while proc.line().is_some() {}
    let done = proc.end();
    (done.stdout.lines().map(str::to_owned).collect(), done.code, done.stderr)
}

#[test]
fn logs_follow_a_run_through_restarts_of_the_server() {
    let world = World::new();
    let mut there = There::new(&world);
    let mut exec = there.start(&There::count(&["--json"], "900"));
    let run = run_of(&exec.log("line 20"));
    until_there(&there, &run);
    let mut follow = there.start(&["logs", &run, "-f", "--json"]);
    let mut people = there.start(&["logs", &run, "-f"]);
    follow.log("line 10");
    assert!(people.line().unwrap().starts_with("-- run-start"));
    there.server.terminate();
    exec.log("line 200");
    there.server.begin();
    follow.log("line 300");
    there.server.kill();
    there.server.begin();
    assert_eq!(exec.end().code, Some(0));
    let (lines, code, stderr) = rest(follow);
    assert_eq!(code, Some(0), "{stderr}");
    let whole = there.expect(0, &["logs", &run, "--json"]).stdout;
    assert_eq!(lines.join("\n") + "\n", whole, "the exact bytes");
    let (lines, code, _) = rest(people);
    assert_eq!(code, Some(0));
    assert_eq!(lines.join("\n") + "\n", there.expect(0, &["logs", &run]).stdout);
    assert!(!stderr.contains("page by page"), "streams come through: {stderr}");
}

fn until_there(there: &There<'_>, run: &str) {
    until("the run is there", PATIENCE, || (there.start(&["status", run]).end().code == Some(0)).then_some(()));
}

#[test]
fn filters_are_the_same_as_here() {
    let world = World::new();
    let there = There::new(&world);
    let args =
        ["exec", "--json", "--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do echo out $i; echo err $i >&2; done"];
    let run = run_of(&there.expect(0, &args).records()[0]);
    let data = there.server.data().display().to_string();
    for filter in [
        &["--tail", "3"][..],
        &["--grep", "[35]$"],
        &["--stream", "stderr"],
        &["--types", "state-start,state-done"],
        &["--after", "5"],
        &["--state", "exec", "--tail", "2"],
        &["--stream", "stdout", "--grep", "9", "--json"],
        &["-f", "--grep", "out"],
        &["-f", "--tail", "2"],
    ] {
        // The same store, asked directly.
        let local = world.expect(0, &[&["--data-dir", &data, "logs", &run], filter].concat()).stdout;
        let remote = there.expect(0, &[&["logs", &run], filter].concat()).stdout;
        assert_eq!(remote, local, "{filter:?}");
        assert!(!remote.is_empty(), "{filter:?}");
    }
    assert_eq!(there.start(&["logs", "no-such-run"]).end().code, Some(4));
    assert_eq!(there.start(&["logs", "../x"]).end().code, Some(4));
    assert_eq!(there.start(&["logs", &run, "--grep", "("]).end().code, Some(2));
    assert_eq!(there.start(&["logs", &run, "--after", "99"]).end().code, Some(2));
    assert_eq!(there.start(&["logs", &run, "--tail", "99999"]).end().code, Some(2));
}

#[test]
fn a_run_there_is_started_decided_and_followed_from_here() {
    let world = World::new();
    let there = There::new(&world);
    let started = there.expect(3, &["run", "gate", "--json"]).records();
    let run = run_of(&started[0]);
    assert_eq!(started.last().unwrap()["status"], "suspended");
    let follow = there.start(&["logs", &run, "-f", "--json"]);
    let status = there.expect(0, &["status", &run, "--json"]).json();
    assert_eq!((&status["status"], &status["run"]), (&"suspended".into(), &run.as_str().into()));
    // Nobody can decide about something else than was looked at.
    let wrong = there.start(&["approve", &run, "--hash", "00"]).end();
    assert_eq!(wrong.code, Some(1), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("hash-moved"), "{}", wrong.stderr);
    let decided = there.expect(0, &["approve", &run, "--json"]).records();
    assert_eq!(decided.last().unwrap()["status"], "done", "{decided:?}");
    let (lines, code, stderr) = rest(follow);
    assert_eq!(code, Some(0), "{stderr}");
    let records: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_whole(&records, "done");
    assert_eq!([&started[..], &decided[..]].concat(), records, "{stderr}");
    assert_eq!(there.expect(0, &["runs", "--status", "done", "--json"]).records().len(), 1);
    assert_eq!(there.start(&["approve", &run]).end().code, Some(1));
    // And nothing of all that was here.
    assert_eq!(world.expect(0, &["runs", "--json"]).stdout, "");
}

#[test]
fn control_c_cancels_what_is_watched_and_a_term_leaves_it() {
    let world = World::new();
    let playbook = "playbook: slow\nstates:\n  wait: { run: \"echo ready; sleep 1000\" }\n";
    let playbooks = world.file("books");
    std::fs::create_dir(&playbooks).unwrap();
    std::fs::write(playbooks.join("slow.yaml"), playbook).unwrap();
    let server = Deployed::start(&world, "server", &["--playbooks", &playbooks.display().to_string()]);
    let there = There { world: &world, server };
    let mut left = there.start(&["run", "slow", "--json"]);
    let run = run_of(&left.log("ready"));
    left.signal(Signal::TERM);
    assert_eq!(left.end().code, Some(0));
    assert_eq!(there.expect(0, &["status", &run, "--json"]).json()["status"], "running");
    let mut watched = there.start(&["run", "slow", "--json"]);
    let second = run_of(&watched.log("ready"));
    watched.signal(Signal::INT);
    let done = watched.end();
    assert_eq!(done.code, Some(130), "{}", done.stderr);
    assert_whole(&there.records(&second), "cancelled");
    let detached = there.expect(0, &["run", "slow", "--detach"]).stdout;
    for run in [run.as_str(), detached.trim()] {
        there.expect(0, &["cancel", run, "--kill"]);
    }
    let waited = there.expect(0, &["status", &run, "--wait", "--json"]).json();
    assert_eq!(waited["status"], "cancelled");
}

#[test]
fn a_server_that_is_away_is_told_at_once() {
    let world = World::new();
    let mut there = There::new(&world);
    there.server.kill();
    for args in [&["runs"][..], &["logs", "r", "-f"], &["status", "r", "--wait"], &["cancel", "r"], &["run", "gate"]] {
        let done = there.start(args).end();
        assert_eq!(done.code, Some(1), "{args:?}");
        assert!(done.stderr.contains(&format!("cannot reach {}", there.server.url())), "{}", done.stderr);
    }
    there.server.begin();
    let mut command = there.command(&["runs"]);
    command.env("TAFFRAIL_TOKEN", "wrong");
    let done = Proc::start(command).end();
    assert!(done.code == Some(1) && done.stderr.contains("operator token"), "{}", done.stderr);
    // From a file, and with flags.
    let token = there.server.data().join("operator-token").display().to_string();
    world.expect(0, &["runs", "--url", &there.server.url(), "--token-file", &token]);
    world.expect(0, &["runs", "--url", &there.server.url(), "--token", &there.server.token()]);
}
