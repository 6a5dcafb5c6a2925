//! `taffrail exec --url`: the command is here, its run is there.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::{
    push_there::{There, assert_counts, events, run_of},
    records::{assert_whole, logs, of_type},
    world::{World, case, is_alive, until},
};

#[test]
fn the_run_there_is_that_of_a_local_exec() {
    let world = World::new();
    let there = There::new(&world);
    for (code, argv) in [
        (0, &["sh", "-c", "echo out; echo err >&2; printf 'no end'"][..]),
        (3, &["sh", "-c", "echo out; exit 3"]),
        (137, &["sh", "-c", "kill -KILL $$"]),
        (127, &["no-such-program"]),
        (126, &["/"]),
    ] {
        let args = [&["exec", "--name", "My build", "--json", "--"], argv].concat();
        let local = world.expect(code, &args).records();
        let here = there.expect(code, &args).records();
        let remote = there.records(&run_of(&here[0]));
        let status = remote.last().unwrap()["status"].as_str().unwrap().to_owned();
        assert_whole(&remote, &status);
        assert_eq!(events(&remote), events(&here), "{argv:?}");
        // Which of two streams is read first is another matter each time.
        let sorted = |records| {
            let mut events = events(records);
            events.sort_by_key(|event| event["stream"].to_string());
            events
        };
        assert_eq!(sorted(&remote), sorted(&local), "{argv:?}");
        assert_eq!(remote[0]["external"], true);
        assert!(there.folders().is_empty());
        let snapshot = there.expect(0, &["status", &run_of(&here[0]), "--json"]).json();
        assert_eq!((&snapshot["status"], &snapshot["playbook"]), (&status.into(), &"My build".into()));
    }
    // People see the same, too.
    let people = there.expect(3, &["exec", "--", "sh", "-c", "echo out; exit 3"]).stderr;
    let run = there.expect(0, &["runs", "--limit", "1", "--json"]).records()[0]["run"].as_str().unwrap().to_owned();
    assert!(people.contains("exec | out") && people.contains(&run) && people.contains("exit code 3"), "{people}");
    let text = there.expect(0, &["logs", &run]).stdout;
    assert!(text.contains("\nout\n") && text.contains("-- run-finished sh halt"), "{text}");
}

#[test]
fn what_is_past_the_cap_is_counted() {
    let world = World::new();
    let there = There::new(&world);
    let flood = case("flood.sh");
    let here = there.expect(0, &["exec", "--output-cap", "10KB", "--json", "--", &flood, "1000"]).records();
    let records = there.records(&run_of(&here[0]));
    assert_whole(&records, "done");
    let (kept, usage) = (logs(&records, "stdout"), &records.last().unwrap()["usage"]);
    assert_eq!(kept.len() as u64 + usage["clipped_lines"].as_u64().unwrap(), 1000);
    assert_eq!(usage["log_bytes"].as_u64().unwrap() + usage["clipped_bytes"].as_u64().unwrap(), 59_000);
    assert_eq!(of_type(&records, "clipped")[0]["lines"], usage["clipped_lines"]);
}

#[test]
fn a_flood_arrives_whole() {
    let world = World::new();
    let there = There::new(&world);
    let flood = case("flood.sh");
    there.expect(0, &["exec", "--quiet", "--", &flood, "40000"]);
    let snapshot = there.expect(0, &["status", &there.only_run(), "--json"]).json();
    assert_eq!((&snapshot["status"], &snapshot["usage"]["log_lines"]), (&"done".into(), &40_000.into()));
    let records = there.records(&there.only_run());
    assert_whole(&records, "done");
    assert_eq!(logs(&records, "stdout").len(), 40_000);
}

#[test]
fn a_thread_and_its_name_are_the_callers() {
    let world = World::new();
    let there = There::new(&world);
    for _ in 0..2 {
        there.expect(0, &["exec", "--thread", "nightly", "--quiet", "--name", "line\nend", "--", "echo", "x"]);
    }
    let runs = there.expect(0, &["runs", "--thread", "nightly", "--json"]).records();
    assert_eq!(runs.len(), 2);
    assert!(runs.iter().all(|run| run["thread"] == "nightly" && run["playbook"] == "lineend"), "{runs:?}");
}

#[test]
fn a_cancel_there_ends_the_command_here() {
    let world = World::new();
    let there = There::new(&world);
    let script = "trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let mut exec = there.start(&["exec", "--json", "--", "sh", "-c", script]);
    let run = run_of(&exec.log("ready"));
    // It writes nothing more, so that only a sign of life can bring it the news.
    until("the run is there", Duration::from_secs(20), || {
        let status = there.start(&["status", &run, "--json"]).end();
        (status.code == Some(0) && status.json()["usage"]["log_lines"] == 1).then_some(())
    });
    let start = Instant::now();
    let snapshot = there.expect(0, &["cancel", &run, "--reason", "enough", "--json"]).json();
    assert_eq!(snapshot["status"], "cancelled");
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    assert_eq!(exec.end().code, Some(130));
    let records = there.records(&run);
    assert_whole(&records, "cancelled");
    let requests = of_type(&records, "cancel-requested");
    assert_eq!((requests.len(), &requests[0]["reason"]), (1, &"enough".into()), "{requests:?}");
    assert!(logs(&records, "stdout").iter().any(|log| log.text.as_deref() == Some("cleaned")), "{records:#?}");
    assert!(there.folders().is_empty());
    there.until_alone();
}

#[test]
fn a_cancel_that_kills_does_not_wait_for_a_stubborn_command() {
    let world = World::new();
    let there = There::new(&world);
    let mut exec = there.start(&["exec", "--json", "--", &case("stubborn.sh")]);
    let record = exec.log("stubborn: ready ");
    let text = record["text"].as_str().unwrap().to_owned();
    let pids: Vec<i32> = text.split(' ').skip(2).map(|pid| pid.parse().unwrap()).collect();
    until("the run is there", Duration::from_secs(20), || {
        (there.start(&["status", &run_of(&record)]).end().code == Some(0)).then_some(())
    });
    there.expect(0, &["cancel", &run_of(&record), "--kill"]);
    assert!(!pids.iter().any(|pid| is_alive(*pid)), "{pids:?}");
    assert_eq!(exec.end().code, Some(130));
    assert_whole(&there.records(&run_of(&record)), "cancelled");
}

#[test]
fn control_c_here_cancels_the_run_there() {
    let world = World::new();
    let there = There::new(&world);
    let mut exec = there.start(&["exec", "--json", "--", "sh", "-c", "echo ready; sleep 1000"]);
    let run = run_of(&exec.log("ready"));
    exec.signal(Signal::INT);
    assert_eq!(exec.end().code, Some(130));
    let records = there.records(&run);
    assert_whole(&records, "cancelled");
    assert_eq!(of_type(&records, "cancel-requested")[0]["actor"], "cli:tester");
}

#[test]
fn a_term_interrupts_it_and_what_there_is_arrives() {
    let world = World::new();
    let there = There::new(&world);
    let mut exec = there.start(&["exec", "--json", "--", "sh", "-c", "echo ready; sleep 1000"]);
    let run = run_of(&exec.log("ready"));
    exec.signal(Signal::TERM);
    let done = exec.end();
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert_whole(&there.records(&run), "interrupted");
    assert!(there.folders().is_empty());
}

#[test]
fn a_wrong_token_does_not_stop_the_command() {
    let world = World::new();
    let there = There::new(&world);
    let mut command = there.command(&There::count(&["--json"], "50"));
    command.env("TAFFRAIL_TOKEN", "wrong");
    let done = crate::proc::Proc::start(command).end();
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(done.stderr.matches("unauthorized").count(), 1, "{}", done.stderr);
    assert!(done.stderr.contains("nothing more is sent") && !done.stderr.contains("wrong\""), "{}", done.stderr);
    assert!(done.stderr.contains("records of run") && done.stderr.contains("are not at"), "{}", done.stderr);
    assert_counts(&done.records());
    // The token is nowhere in what was kept, and the right one sends it.
    let [folder] = &there.folders()[..] else { panic!("{:?}", there.folders()) };
    for file in std::fs::read_dir(folder).unwrap().flatten().filter(|file| file.path().is_file()) {
        let bytes = std::fs::read(file.path()).unwrap();
        assert!(!bytes.windows(5).any(|part| part == b"wrong"), "{file:?}");
    }
    let told = there.expect(0, &["push", "--json"]).json();
    assert_eq!((told["sent"].as_array().unwrap().len(), told["left"].as_array().unwrap().len()), (1, 0), "{told}");
    let records = there.records(&there.only_run());
    assert_whole(&records, "done");
    assert_eq!(assert_counts(&records), 50);
    assert!(there.folders().is_empty());
}

#[test]
fn a_wrong_url_is_told_before_anything_begins() {
    let world = World::new();
    let mark = world.file("began");
    let script = format!("touch {}", mark.display());
    for url in ["localhost:1", "ftp://h", "http://h/?code=1", "http://me:secret@h"] {
        let done = world.expect(2, &["exec", "--url", url, "--", "sh", "-c", &script]);
        assert!(
            done.stderr.contains("is not the URL of a server") && !done.stderr.contains("secret"),
            "{}",
            done.stderr
        );
    }
    assert!(!mark.exists());
}
