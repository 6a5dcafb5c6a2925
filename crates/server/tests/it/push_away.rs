//! The server is away, at the start, in the middle, at the end; or the worker is.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use taffrail_mcp_core::RunId;

use crate::{
    proc::{Done, Proc},
    push_there::{There, assert_counts, run_of},
    records::{assert_whole, of_type},
    world::{PATIENCE, World, until},
};

/// Ends well, with everything there.
#[track_caller]
fn assert_arrived(there: &There<'_>, done: &Done, lines: usize) {
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let here = done.records();
    let records = there.records(&run_of(&here[0]));
    assert_whole(&records, "done");
    assert_eq!(assert_counts(&records), lines);
    assert!(there.folders().is_empty(), "{}", done.stderr);
}

#[test]
fn away_at_the_start() {
    let world = World::new();
    let mut there = There::new(&world);
    there.server.kill();
    let mut exec = there.start(&There::count(&["--json"], "1000"));
    // A second and a half: it was tried more than once.
    exec.log("line 600");
    there.server.begin();
    let done = exec.end();
    assert!(done.stderr.contains("cannot reach") && done.stderr.contains("takes records again"), "{}", done.stderr);
    assert_arrived(&there, &done, 1000);
}

#[test]
fn away_in_the_middle_and_back_before_the_end() {
    let world = World::new();
    let mut there = There::new(&world);
    let mut exec = there.start(&There::count(&["--json"], "600"));
    exec.log("line 50");
    there.server.terminate();
    exec.log("line 300");
    there.server.begin();
    let done = exec.end();
    assert_arrived(&there, &done, 600);
}

#[test]
fn away_at_the_end_and_back_while_it_is_waited_for() {
    let world = World::new();
    let mut there = There::new(&world);
    let mut exec = there.start(&There::count(&["--json"], "100"));
    exec.log("line 50");
    there.server.kill();
    exec.record(|record| record["type"] == "run-finished");
    there.server.begin();
    let done = exec.end();
    assert_arrived(&there, &done, 100);
}

#[test]
fn away_for_good_and_sent_by_the_next() {
    let world = World::new();
    let mut there = There::new(&world);
    there.server.kill();
    let done = there.start(&There::count(&["--json", "--drain", "0s"], "30")).end();
    // The command's own code, whatever became of its records.
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let run = run_of(&done.records()[0]);
    let unsent = done.records().len() - 1;
    assert!(done.stderr.contains(&format!("{unsent} records of run {run} are not at")), "{}", done.stderr);
    assert!(done.stderr.contains("push`, or the next run"), "{}", done.stderr);
    // A signal ends the wait for a server.
    let mut exec = there.start(&["exec", "--json", "--", "sh", "-c", "echo x; exit 5"]);
    exec.record(|record| record["type"] == "run-finished");
    until("it gives up waiting", Duration::from_secs(20), || {
        exec.signal(Signal::INT);
        exec.has_ended().then_some(())
    });
    let second = exec.end();
    assert_eq!(second.code, Some(5), "{}", second.stderr);
    assert_eq!(there.folders().len(), 2);
    let told = there.start(&["push", "--json", "--drain", "1s"]).end();
    assert_eq!((told.code, told.json()["left"].as_array().unwrap().len()), (Some(1), 2), "{}", told.stderr);
    there.server.begin();
    let third = there.expect(0, &["exec", "--", "echo", "y"]);
    assert!(third.stderr.contains(&format!("what run {run} had left is at")), "{}", third.stderr);
    assert_eq!(there.folders().len(), 0, "{}", third.stderr);
    assert_eq!(there.expect(0, &["runs", "--json"]).records().len(), 3);
    let records = there.records(&run);
    assert_whole(&records, "done");
    assert_eq!(assert_counts(&records), 30);
    let told = there.expect(0, &["push", "--json"]).json();
    assert_eq!(told, serde_json::json!({"sent": [], "left": []}));
}

/// Lines that the server has of a run.
fn lines_there(there: &There<'_>, run: &str) -> Option<u64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let snapshot = runtime.block_on(there.server.client().snapshot(&RunId::new(run).unwrap()));
    snapshot.ok().map(|snapshot| snapshot.usage.log_lines)
}

#[test]
fn the_server_is_killed_again_and_again() {
    let world = World::new();
    let mut there = There::new(&world);
    let mut exec = there.start(&There::count(&["--json"], "1500"));
    let run = run_of(&exec.log("line 1"));
    for at in [1, 150, 300, 500, 800, 1200] {
        until("lines arrive", PATIENCE, || lines_there(&there, &run).filter(|lines| *lines >= at));
        there.server.kill();
        there.server.begin();
    }
    let done = exec.end_within(PATIENCE * 2);
    assert_arrived(&there, &done, 1500);
}

#[test]
fn a_worker_that_is_killed_loses_nothing_that_it_kept() {
    let world = World::new();
    let mut there = There::new(&world);
    // At the very start, in the middle, and while the server is away.
    for (n, (kill_at, away)) in [("line 1", false), ("line 130", false), ("line 250", true)].into_iter().enumerate() {
        let mut exec = there.start(&There::count(&["--json"], "2000"));
        let run = run_of(&exec.log("line 1"));
        if away {
            until("a line arrives", PATIENCE, || lines_there(&there, &run).filter(|lines| *lines > 0));
            there.server.kill();
        }
        let mut seen = exec.log("line 1");
        if kill_at != "line 1" {
            seen = exec.log(kill_at);
        }
        exec.signal(Signal::KILL);
        assert_eq!(exec.end().code, None);
        if away {
            there.server.begin();
        }
        there.until_alone();
        let told = there.expect(0, &["push", "--json"]).json();
        assert_eq!(told["sent"][0]["run"], run.as_str(), "{told}");
        let records = there.records(&run);
        assert_whole(&records, "interrupted");
        let end = records.last().unwrap();
        assert_eq!(end["error"], "process-gone", "{end}");
        let lines = assert_counts(&records);
        // What was shown was stored before.
        let shown: usize = seen["text"].as_str().unwrap().trim_start_matches("line ").parse().unwrap();
        assert!(lines >= shown, "{lines} {shown}");
        assert!(there.folders().is_empty());
        assert_eq!(there.expect(0, &["runs", "--json"]).records().len(), n + 1);
    }
}

#[test]
fn two_at_once_leave_each_other_alone() {
    let world = World::new();
    let there = There::new(&world);
    let execs: Vec<Proc> = (0..3).map(|_| there.start(&There::count(&["--json"], "200"))).collect();
    for exec in execs {
        let done = exec.end();
        let records = there.records(&run_of(&done.records()[0]));
        assert_whole(&records, "done");
        assert_eq!(assert_counts(&records), 200);
    }
    assert!(there.folders().is_empty());
}

#[test]
fn a_run_that_the_server_ended_is_told_and_kept() {
    let world = World::new();
    let mut there = There::new(&world);
    there.server.kill();
    let done = there.start(&There::count(&["--json", "--drain", "0s"], "10")).end();
    let run = run_of(&done.records()[0]);
    there.server.begin();
    // Somebody else ends it before its records come.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = there.server.client();
    runtime.block_on(async {
        use taffrail_transport::client::{StartRun, StartWork};
        let start = StartRun {
            work: StartWork::External { name: "sh".to_owned() },
            idempotency_key: Some(format!("exec:{run}")),
            run: Some(RunId::new(&run).unwrap()),
        };
        client.start(&RunId::new(&run).unwrap().into(), &start).await.unwrap();
    });
    // Nobody is there to end it, so that the server does.
    there.expect(0, &["cancel", &run]);
    let told: Value = there.start(&["push", "--json"]).end().json();
    assert_eq!(told["left"][0]["run"], run.as_str(), "{told}");
    assert!(told["left"][0]["why"].as_str().unwrap().contains("run-over"), "{told}");
    assert_eq!(there.folders().len(), 1);
    // It is not tried for ever, but told of as long as it is there.
    let again: Value = there.start(&["push", "--json"]).end().json();
    assert_eq!(again["left"], told["left"]);
    assert_eq!(of_type(&there.records(&run), "run-finished").len(), 1);
}
