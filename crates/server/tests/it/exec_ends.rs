//! How `exec` ends: by itself, by others, by Ctrl-C, by its limits.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::{
    proc::Proc,
    records::{assert_whole, logs, of_type},
    world::{World, case, is_alive},
};

/// Starts a program that ignores TERM, and waits until it does.
fn stubborn(world: &World) -> (Proc, String, Vec<i32>) {
    let mut exec = world.start(&["exec", "--json", "--", &case("stubborn.sh")]);
    let record = exec.log("stubborn: ready ");
    let pids = record["text"].as_str().unwrap().split(' ').skip(2).map(|pid| pid.parse().unwrap()).collect();
    (exec, record["run"].as_str().unwrap().to_owned(), pids)
}

#[test]
fn a_stubborn_program_is_cancelled_from_another_process() {
    let world = World::new();
    let (exec, run, pids) = stubborn(&world);
    let start = Instant::now();
    let snapshot = world.expect(0, &["cancel", &run, "--reason", "enough", "--json"]).json();
    let took = start.elapsed();
    // It was asked, had its five seconds, and was killed; `cancel` returned after that.
    assert!(took > Duration::from_millis(4500) && took < Duration::from_secs(15), "{took:?}");
    assert_eq!(snapshot["status"], "cancelled");
    assert!(pids.len() == 2 && !pids.iter().any(|pid| is_alive(*pid)), "{pids:?}");
    let done = exec.end();
    assert_eq!(done.code, Some(130), "{}", done.stderr);
    let records = world.expect(0, &["logs", &run, "--json"]).records();
    assert_whole(&records, "cancelled");
    assert_eq!(records, done.records());
    assert_eq!(of_type(&records, "state-done")[0]["policy"], "cancelled");
    assert_eq!(of_type(&records, "state-done")[0]["exit"]["signal"], "SIGKILL");
    let request = of_type(&records, "cancel-requested");
    assert_eq!(
        (request.len(), &request[0]["reason"], &request[0]["actor"]),
        (1, &"enough".into(), &"cli:tester".into())
    );
    world.until_empty(Duration::from_secs(5));
    // Once more changes nothing.
    world.expect(0, &["cancel", &run]);
    assert_eq!(world.expect(0, &["logs", &run, "--json"]).records(), records);
}

#[test]
fn a_cancel_that_kills_does_not_wait() {
    let world = World::new();
    let (exec, run, _) = stubborn(&world);
    let start = Instant::now();
    world.expect(0, &["cancel", &run, "--kill"]);
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    assert_eq!(exec.end().code, Some(130));
    world.until_empty(Duration::from_secs(5));
}

#[test]
fn control_c_cancels_in_good_order() {
    let world = World::new();
    let mut exec = world.start(&[
        "exec",
        "--json",
        "--",
        "sh",
        "-c",
        "trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.05; done",
    ]);
    exec.log("ready");
    exec.signal(Signal::INT);
    let done = exec.end();
    assert_eq!(done.code, Some(130), "{}", done.stderr);
    let records = done.records();
    assert_whole(&records, "cancelled");
    assert!(logs(&records, "stdout").iter().any(|log| log.text.as_deref() == Some("cleaned")), "{records:#?}");
    world.until_empty(Duration::from_secs(5));
}

#[test]
fn control_c_twice_kills() {
    let world = World::new();
    let (mut exec, _, _) = stubborn(&world);
    let start = Instant::now();
    exec.signal(Signal::INT);
    // What the first one did is in the log before the second one comes.
    exec.record(|record| record["type"] == "cancel-requested");
    exec.signal(Signal::INT);
    let done = exec.end();
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    assert_eq!(done.code, Some(130));
    assert_whole(&done.records(), "cancelled");
    world.until_empty(Duration::from_secs(5));
}

#[test]
fn the_end_of_its_terminal_or_a_term_interrupts() {
    for signal in [Signal::TERM, Signal::HUP] {
        let world = World::new();
        let mut exec = world.start(&["exec", "--json", "--", "sleep", "1000"]);
        exec.record(|record| record["type"] == "state-start");
        exec.signal(signal);
        let done = exec.end();
        assert_eq!(done.code, Some(1), "{}", done.stderr);
        assert_whole(&done.records(), "interrupted");
        world.until_empty(Duration::from_secs(5));
    }
}

#[test]
fn what_cannot_be_run_ends_as_in_a_shell() {
    let world = World::new();
    let plain = world.write("plain.txt", "no program\n");
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).unwrap();
    for (code, program) in
        [(127, "no-such-program"), (127, "./no/such/file"), (126, plain.to_str().unwrap()), (126, "/")]
    {
        let done = world.expect(code, &["exec", "--json", "--", program]);
        let records = done.records();
        assert_whole(&records, "halt");
        let end = records.last().unwrap();
        assert_eq!(end["error"], "spawn-failed", "{program}");
        assert!(end["detail"].as_str().unwrap().contains(program), "{end}");
        let done = world.expect(code, &["exec", "--", program]);
        assert!(done.stderr.contains(program) && done.stderr.contains("spawn-failed"), "{}", done.stderr);
    }
}

#[test]
fn a_signal_is_128_more() {
    let world = World::new();
    for (name, number) in [("KILL", 9), ("SEGV", 11), ("TERM", 15)] {
        let script = format!("kill -{name} $$");
        let records = world.expect(128 + number, &["exec", "--json", "--", "sh", "-c", &script]).records();
        assert_whole(&records, "halt");
        assert_eq!(of_type(&records, "state-done")[0]["exit"]["signal"], format!("SIG{name}"));
    }
}

#[test]
fn output_past_the_cap_is_counted() {
    let world = World::new();
    let records =
        world.expect(0, &["exec", "--output-cap", "10KB", "--json", "--", &case("flood.sh"), "1000"]).records();
    assert_whole(&records, "done");
    let clipped = of_type(&records, "clipped");
    assert_eq!((clipped.len(), &clipped[0]["reason"], &clipped[0]["stream"]), (1, &"run-cap".into(), &"stdout".into()));
    let kept = logs(&records, "stdout");
    let bytes: u64 = kept.iter().map(|log| log.bytes()).sum();
    assert!(bytes <= 10_000 && bytes > 9_900, "{bytes}");
    let usage = &records.last().unwrap()["usage"];
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    assert_eq!(number(&usage["log_lines"]), kept.len() as u64);
    assert_eq!(number(&usage["log_lines"]) + number(&usage["clipped_lines"]), 1000);
    assert_eq!(number(&usage["log_bytes"]) + number(&usage["clipped_bytes"]), 59_000);
    assert_eq!(number(&clipped[0]["lines"]), number(&usage["clipped_lines"]));
    assert_eq!(number(&clipped[0]["bytes"]), number(&usage["clipped_bytes"]));
}

#[test]
fn arguments_arrive_as_they_are() {
    let world = World::new();
    let odd = ["{{ inputs.x }}", "$HOME `id` \"'", "", "a\nb", "{% raw %}", "-x", "--", "%s"];
    let args = [&["exec", "--name", "My build", "--json", "--", "printf", "<%s>"], &odd[..]].concat();
    let records = world.expect(0, &args).records();
    let text = String::from_utf8(crate::records::bytes(&records, "stdout")).unwrap();
    assert_eq!(text, odd.map(|word| format!("<{word}>")).concat());
    assert_eq!(records[0]["machine"], "My build");
}
