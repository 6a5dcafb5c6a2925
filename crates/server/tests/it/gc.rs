//! `gc`: what is removed, and what is never touched.

use std::fs;

use serde_json::Value;

use crate::world::World;

fn finished(world: &World) -> String {
    let script = "i=0; while [ $i -lt 50 ]; do echo \"line $i\"; i=$((i+1)); done";
    let records = world.expect(0, &["exec", "--json", "--", "sh", "-c", script]).records();
    records[0]["run"].as_str().unwrap().to_owned()
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("{key} in {value}"))
}

#[test]
fn a_dry_run_says_what_would_go_and_changes_nothing() {
    let world = World::new();
    let run = finished(&world);
    let log = world.expect(0, &["logs", &run, "--json"]).stdout;
    let said = world.expect(0, &["gc", "--max-age", "0s", "--dry-run", "--json"]).json();
    assert_eq!((&said["dry_run"], number(&said, "threads"), number(&said, "runs")), (&true.into(), 1, 1), "{said}");
    assert_eq!(number(&said, "records"), log.lines().count() as u64);
    let text = world.expect(0, &["gc", "--max-age", "0s", "--dry-run"]).stdout;
    assert!(text.starts_with("would remove up to 55 records"), "{text}");
    assert_eq!(world.expect(0, &["logs", &run, "--json"]).stdout, log);
    // And then the same goes.
    let done = world.expect(0, &["gc", "--max-age", "0s", "--json"]).json();
    assert_eq!((number(&said, "bytes"), number(&said, "spool_files")), (log.len() as u64, 1));
    assert!(number(&said, "spool_bytes") > log.len() as u64);
    for key in ["threads", "runs", "records", "bytes", "spool_files", "spool_bytes"] {
        assert_eq!(done[key], said[key], "{key}");
    }
    world.expect(4, &["logs", &run]);
    world.expect(4, &["status", &run]);
    assert_eq!(world.expect(0, &["runs", "--json"]).stdout, "");
    assert!(!world.data().join("spool").join(format!("{run}.jsonl")).exists(), "the file of a run that is gone");
}

#[test]
fn what_is_young_or_within_the_limit_stays() {
    let world = World::new();
    let run = finished(&world);
    for limit in [&["--max-age", "1h"][..], &["--max-bytes", "1GiB"], &[]] {
        let done = world.expect(0, &[&["gc", "--json"], limit].concat()).json();
        assert_eq!((number(&done, "records"), number(&done, "spool_files")), (0, 0), "{limit:?}");
    }
    assert_eq!(world.expect(0, &["logs", &run, "--json"]).stdout.lines().count(), 55);
    let done = world.expect(0, &["gc", "--max-bytes", "0", "--json"]).json();
    assert_eq!(number(&done, "records"), 55);
}

#[test]
fn a_trimmed_log_tells_its_gap() {
    let world = World::new();
    let run = finished(&world);
    let whole = world.expect(0, &["logs", &run, "--json"]).records();
    world.expect(0, &["gc", "--max-age", "0s", "--keep", "10"]);
    let left = world.expect(0, &["logs", &run, "--json"]).records();
    let (gap, kept) = left.split_first().unwrap();
    let first = number(&kept[0], "seq");
    assert!(kept.len() >= 10 && whole.ends_with(kept), "{left:#?}");
    assert_eq!((&gap["type"], number(gap, "from"), number(gap, "to")), (&"gap".into(), 1, first - 1));
    assert_eq!((&gap["reason"], number(gap, "next")), (&"retention".into(), first - 1));
    // A cursor behind what is gone is none of the gap's business.
    assert_eq!(world.expect(0, &["logs", &run, "--json", "--after", &(first - 1).to_string()]).records(), kept);
    assert_eq!(world.expect(0, &["logs", &run, "--json", "--tail", "3"]).records(), kept[kept.len() - 3..]);
    let text = world.expect(0, &["logs", &run]).stdout;
    assert!(text.lines().next().unwrap().contains("can no longer be had"), "{text}");
    // The run itself is known as before.
    let snapshot = world.expect(0, &["status", &run, "--json"]).json();
    assert_eq!((&snapshot["status"], number(&snapshot, "head")), (&"done".into(), 55));
}

/// Those that an interruption has ended go too once they are old: one of them may be what has filled the disk.
#[test]
fn runs_that_can_go_on_are_not_touched_for_room() {
    let world = World::new();
    let file = world.file("go");
    let input = format!("file={}", file.display());
    let mut running = world.start(&["run", "hold", "--json", "-i", &input]);
    let running_id = running.log("holding ")["run"].as_str().unwrap().to_owned();
    let suspended = world.expect(3, &["run", "person", "--json"]).records()[0]["run"].as_str().unwrap().to_owned();
    let mut killed = world.start(&["exec", "--json", "--", "sleep", "1000"]);
    let interrupted = killed.record(|record| record["type"] == "state-start")["run"].as_str().unwrap().to_owned();
    killed.signal(rustix::process::Signal::KILL);
    killed.end();
    let over = finished(&world);
    let done = world.expect(0, &["gc", "--max-age", "1h", "--max-bytes", "0", "--json"]).json();
    assert_eq!((number(&done, "threads"), number(&done, "runs")), (1, 1), "{done}");
    world.expect(4, &["logs", &over]);
    for run in [&running_id, &suspended, &interrupted] {
        let records = world.expect(0, &["logs", run, "--json"]).records();
        assert_eq!(records[0]["seq"], 1, "{run}");
        assert!(world.data().join("spool").join(format!("{run}.jsonl")).exists());
    }
    let done = world.expect(0, &["gc", "--max-age", "0s", "--json"]).json();
    assert_eq!((number(&done, "threads"), number(&done, "runs")), (1, 1), "{done}");
    world.expect(4, &["logs", &interrupted]);
    assert!(!world.data().join("spool").join(format!("{interrupted}.jsonl")).exists());
    fs::write(file, "").unwrap();
    assert_eq!(running.end().code, Some(0));
    world.expect(0, &["approve", &suspended]);
}
