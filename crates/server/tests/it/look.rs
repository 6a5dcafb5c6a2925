//! `runs` and `status`: what programs and people are told of a run.

use serde_json::{Value, json};

use crate::{redact::redact, world::World};

fn run_of(world: &World, code: i32, args: &[&str]) -> String {
    let records = world.expect(code, &[&["run", "--json"], args].concat()).records();
    records[0]["run"].as_str().unwrap().to_owned()
}

fn ids(snapshots: &[Value]) -> Vec<&str> {
    snapshots.iter().map(|snapshot| snapshot["run"].as_str().unwrap()).collect()
}

#[test]
fn runs_are_listed_newest_first_and_by_what_is_asked() {
    let world = World::new();
    let empty = world.expect(0, &["runs", "--json"]);
    assert_eq!(empty.stdout, "");
    let one = run_of(&world, 0, &["small", "--thread", "a"]);
    let two = run_of(&world, 3, &["person"]);
    world.expect(7, &["exec", "--quiet", "--thread", "a", "--", "sh", "-c", "exit 7"]);
    let list = |args: &[&str]| world.expect(0, &[&["runs", "--json"], args].concat()).records();
    let all = list(&[]);
    let three = ids(&all)[0].to_owned();
    assert_eq!(ids(&all), [&three, &two, &one]);
    assert_eq!(ids(&list(&["--limit", "1"])), [&three]);
    assert_eq!(ids(&list(&["--before", &three])), [&two, &one]);
    assert_eq!(ids(&list(&["--thread", "a"])), [&three, &one]);
    assert_eq!(ids(&list(&["--status", "done,suspended"])), [&two, &one]);
    assert_eq!(list(&["--status", "cancelled"]), Vec::<Value>::new());
    // A list and a look tell the same of a run that rests.
    assert_eq!(world.expect(0, &["status", &two, "--json"]).json(), all[1]);
    // For people: a line each, below a line of names.
    let table = world.expect(0, &["runs"]).stdout;
    let lines: Vec<_> = table.lines().collect();
    assert_eq!(lines.len(), 4, "{table}");
    for (line, (run, status)) in lines[1..].iter().zip([(&three, "halt"), (&two, "suspended"), (&one, "done")]) {
        assert!(line.contains(run.as_str()) && line.contains(status), "{table}");
    }
    let text = world.expect(0, &["status", &two]).stdout;
    for word in ["suspended", "Deploy?", &format!("taffrail approve {two}")] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn snapshots_tell_what_there_is() {
    let world = World::new();
    let done = run_of(&world, 0, &["small"]);
    let suspended = run_of(&world, 3, &["question"]);
    let status = |run: &str| world.expect(0, &["status", run, "--json"]).json();
    let snapshot = status(&done);
    assert_eq!(snapshot["run"], done.as_str());
    assert_eq!(snapshot["head"].as_u64().unwrap() as usize, world.expect(0, &["logs", &done]).stdout.lines().count());
    assert_eq!(snapshot["spool"], world.data().join("spool").join(format!("{done}.jsonl")).to_str().unwrap());
    for absent in ["error", "at", "approval", "checkpoint"] {
        assert_eq!(snapshot.get(absent), None, "{snapshot}");
    }
    let snapshot = status(&suspended);
    assert_eq!((&snapshot["at"], &snapshot["approval"]["by"]), (&"region".into(), &"agent".into()));
    assert_eq!(snapshot["approval"]["schema"]["required"], json!(["region"]));
    assert!(snapshot["checkpoint"].as_str().unwrap().starts_with(&suspended));
    let mut all = String::new();
    for line in world.expect(0, &["runs", "--json"]).stdout.lines() {
        all.push_str(line);
        all.push('\n');
    }
    insta::assert_snapshot!("runs", redact(&all, &world.data()));
    insta::assert_snapshot!(
        "status",
        redact(&world.expect(0, &["status", &suspended, "--json"]).stdout, &world.data())
    );
}

#[test]
fn a_running_run_is_looked_at_while_it_runs() {
    let world = World::new();
    let mut run = world.start(&["run", "hold", "--json", "-i", "file=/no/such"]);
    let id = run.log("holding ")["run"].as_str().unwrap().to_owned();
    let snapshot = world.expect(0, &["status", &id, "--json"]).json();
    assert_eq!(
        (&snapshot["status"], &snapshot["state"], &snapshot["step"]),
        (&"running".into(), &"hold".into(), &2.into())
    );
    let listed = world.expect(0, &["runs", "--status", "running", "--json"]).records();
    assert_eq!(ids(&listed), [&id]);
    // Time goes on, and looking again tells.
    let later = crate::world::until("the time goes on", crate::world::PATIENCE, || {
        let later = world.expect(0, &["status", &id, "--json"]).json();
        (later["elapsed_ms"].as_u64() > snapshot["elapsed_ms"].as_u64()).then_some(later)
    });
    assert_eq!(later["head"], snapshot["head"]);
}

#[test]
fn anybody_else_may_not_read_the_data() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    let run = run_of(&world, 0, &["small"]);
    let mode = |path: std::path::PathBuf| std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    let data = world.data();
    for folder in [data.clone(), data.join("spool"), data.join("live")] {
        assert_eq!(mode(folder.clone()), 0o700, "{folder:?}");
    }
    for file in [data.join("taffrail.db"), data.join("taffrail.db-wal"), data.join(format!("spool/{run}.jsonl"))] {
        if file.exists() {
            assert_eq!(mode(file.clone()), 0o600, "{file:?}");
        }
    }
}

#[test]
fn suggested_commands_begin_with_what_was_typed() {
    let world = World::new();
    let program = env!("CARGO_BIN_EXE_taffrail");
    let by_env = world.expect(3, &["run", "person"]).stderr;
    let run = world.only_run();
    assert!(by_env.contains(&format!("{program} approve {run} --reject")), "{by_env}");
    let data = world.data().display().to_string();
    let by_flag = world.expect(0, &["status", &run, "--data-dir", &data]).stdout;
    assert!(by_flag.contains(&format!("{program} --data-dir {data} approve {run}")), "{by_flag}");
}
