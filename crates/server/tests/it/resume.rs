//! What a kill leaves, and going on from it.

use std::{fs, path::PathBuf, time::Duration};

use rustix::process::Signal;
use serde_json::Value;

use crate::{
    records::{assert_whole, of_type, states, texts},
    world::{World, is_alive, until},
};

/// A run of `hold`, killed while its state holds; the file that lets it go on.
fn killed(world: &World, flags: &[&str]) -> (String, i32, PathBuf) {
    let file = world.file("go");
    let input = format!("file={}", file.display());
    let mut run = world.start(&[&["run", "hold", "--json", "-i", &input], flags].concat());
    let record = run.log("holding ");
    let pid = record["text"].as_str().unwrap()["holding ".len()..].parse().unwrap();
    run.signal(Signal::KILL);
    assert_eq!(run.end().code, None);
    (record["run"].as_str().unwrap().to_owned(), pid, file)
}

fn log(world: &World, run: &str) -> Vec<Value> {
    world.expect(0, &["logs", run, "--json"]).records()
}

#[test]
fn a_killed_run_is_interrupted_and_goes_on_at_its_state() {
    let world = World::new();
    let (run, pid, file) = killed(&world, &[]);
    until("the run is said to be interrupted", Duration::from_secs(5), || {
        (world.status(&run) == "interrupted").then_some(())
    });
    until("its process is gone", Duration::from_secs(5), || (!is_alive(pid)).then_some(()));
    world.until_empty(Duration::from_secs(5));
    let before = log(&world, &run);
    assert_whole(&before, "interrupted");
    let end = before.last().unwrap();
    assert_eq!((&end["error"], &end["at"]), (&"process-gone".into(), &"hold".into()));
    assert_eq!(texts(&before, "stdout")[0], "before");
    assert_eq!(states(&before), ["before"]);

    fs::write(file, "").unwrap();
    let shown = world.expect(0, &["resume", &run, "--json"]).records();
    let all = log(&world, &run);
    assert_whole(&all, "done");
    assert_eq!(all[..before.len()], before);
    assert_eq!(states(&all), ["before", "hold", "after"]);
    assert_eq!(shown[..], all[all.len() - shown.len()..]);
    assert_eq!(&shown[0]["entry"], "hold");
    // Steps and output are those of the whole run, before the kill and after it.
    let steps: Vec<_> = of_type(&all, "state-start").iter().map(|start| start["step"].as_u64().unwrap()).collect();
    assert_eq!(steps, [1, 2, 2, 3], "{all:#?}");
    assert_eq!(all.last().unwrap()["usage"]["log_lines"], texts(&all, "stdout").len());
    // The file that was torn by the kill is whole again.
    let spool = fs::read_to_string(world.data().join("spool").join(format!("{run}.jsonl"))).unwrap();
    let spool: Vec<Value> = spool.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(spool, all);

    let again = world.expect(1, &["resume", &run]);
    assert!(again.stderr.contains("is done") && again.stderr.contains("start a new run"), "{}", again.stderr);
    assert_eq!(log(&world, &run), all);
}

#[test]
fn a_checkpoint_is_used_once_whoever_comes() {
    let world = World::new();
    let (run, _, file) = killed(&world, &[]);
    let snapshot = world.expect(0, &["status", &run, "--json"]).json();
    let checkpoint = snapshot["checkpoint"].as_str().unwrap().to_owned();
    let racers: Vec<_> = (0..4).map(|_| world.start(&["resume", &checkpoint, "--json"])).collect();
    // The losers end by themselves while the winner holds.
    let mut running = racers;
    let mut losers = Vec::new();
    until("three have lost", Duration::from_secs(20), || {
        while let Some(at) = running.iter_mut().position(crate::proc::Proc::has_ended) {
            losers.push(running.remove(at).end());
        }
        (losers.len() >= 3).then_some(())
    });
    for loser in &losers {
        assert_eq!((loser.code, loser.stdout.as_str()), (Some(1), ""), "{}", loser.stderr);
        assert!(loser.stderr.contains("is used up"), "{}", loser.stderr);
    }
    // By the run's name it is a conflict as well.
    let late = world.expect(1, &["resume", &run]);
    assert!(late.stderr.contains("is running"), "{}", late.stderr);
    fs::write(file, "").unwrap();
    let winner = running.remove(0).end();
    assert_eq!(winner.code, Some(0), "{}", winner.stderr);
    let all = log(&world, &run);
    assert_whole(&all, "done");
    assert_eq!(of_type(&all, "checkpoint-claimed").len(), 1);
    assert_eq!(of_type(&all, "run-start").len(), 2);
    let used = world.expect(1, &["resume", &checkpoint]);
    assert!(used.stderr.contains("is used up"), "{}", used.stderr);
}

#[test]
fn a_run_may_be_killed_again_and_again() {
    let world = World::new();
    let (run, _, file) = killed(&world, &["--thread", "t"]);
    for _ in 0..2 {
        let mut resumed = world.start(&["resume", &run, "--json"]);
        resumed.log("holding ");
        resumed.signal(Signal::KILL);
        resumed.end();
    }
    fs::write(file, "").unwrap();
    world.expect(0, &["resume", &run]);
    let all = log(&world, &run);
    assert_whole(&all, "done");
    assert_eq!(of_type(&all, "run-finished").iter().filter(|end| end["status"] == "interrupted").count(), 3);
    assert_eq!(texts(&all, "stdout").iter().filter(|text| *text == "before").count(), 1, "done once");
}

#[test]
fn a_suspended_run_outlives_everything() {
    let world = World::new();
    let run = world.expect(3, &["run", "person", "--json"]).records()[0]["run"].as_str().unwrap().to_owned();
    let suspended = log(&world, &run);
    let mut approve = world.start(&["approve", &run, "--json"]);
    approve.record(|record| record["type"] == "run-start");
    approve.signal(Signal::KILL);
    approve.end();
    // Wherever the kill hit, the run can be brought to its end.
    if world.status(&run) != "done" {
        world.expect(0, &["resume", &run]);
    }
    let all = log(&world, &run);
    assert_whole(&all, "done");
    assert_eq!(all[..suspended.len()], suspended);
    assert_eq!(of_type(&all, "approval-resolved").len(), 1);
    assert_eq!(states(&all).iter().filter(|state| **state == "deploy").count(), 1);
}

#[test]
fn a_cancel_of_a_killed_run_is_final() {
    let world = World::new();
    let (run, _, _) = killed(&world, &[]);
    let snapshot = world.expect(0, &["cancel", &run, "--json"]).json();
    assert_eq!(snapshot["status"], "cancelled");
    assert_whole(&log(&world, &run), "cancelled");
    let late = world.expect(1, &["resume", &run]);
    assert!(late.stderr.contains("is cancelled"), "{}", late.stderr);
}

#[test]
fn an_exec_that_was_killed_goes_on_too() {
    let world = World::new();
    let marker = world.file("second");
    let script =
        format!("if [ -e {0} ]; then echo again; exit 7; fi; touch {0}; echo first; sleep 1000", marker.display());
    let mut exec = world.start(&["exec", "--json", "--", "sh", "-c", &script]);
    let run = exec.log("first")["run"].as_str().unwrap().to_owned();
    exec.signal(Signal::KILL);
    exec.end();
    world.until_empty(Duration::from_secs(5));
    assert_eq!(world.status(&run), "interrupted");
    world.expect(1, &["resume", &run]);
    let all = log(&world, &run);
    assert_whole(&all, "halt");
    assert_eq!(texts(&all, "stdout"), ["first", "again"]);
    assert_eq!(of_type(&all, "state-done")[0]["exit"]["code"], 7);
}
