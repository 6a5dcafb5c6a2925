//! `run` and `approve`: playbooks from start to end, over gates and questions.

use serde_json::{Value, json};

use crate::{
    proc::Done,
    records::{assert_whole, of_type, states, texts, types},
    world::{PATIENCE, World, here, until},
};

/// The playbook that shows everything, in the workspace as it is.
#[track_caller]
fn tour(world: &World, code: i32, args: &[&str]) -> Done {
    let root = here("../..");
    let playbooks = root.join("playbooks");
    let mut command = world.command(args);
    command.current_dir(root).env("TAFFRAIL_PLAYBOOKS", playbooks);
    let done = crate::proc::Proc::start(command).end();
    assert_eq!(done.code, Some(code), "{}\n{}", done.stdout, done.stderr);
    done
}

fn run_of(records: &[Value]) -> String {
    records[0]["run"].as_str().unwrap().to_owned()
}

const TOUR: [&str; 6] = ["run", "tour", "--json", "-i", "lines=1200", "--thread=the-tour"];

#[test]
fn the_tour_waits_for_a_person_and_goes_on_elsewhere() {
    let world = World::new();
    let first = tour(&world, 3, &TOUR).records();
    assert_whole(&first, "suspended");
    let run = run_of(&first);
    assert_eq!((&first[0]["thread"], first.last().unwrap()["at"].as_str()), (&"the-tour".into(), Some("agree")));
    let survey = of_type(&first, "state-done").into_iter().find(|done| done["state"] == "survey").unwrap();
    assert_eq!((&survey["branches"], of_type(&first, "branch-done").len()), (&8.into(), 8));
    assert_eq!(states(&first), ["survey", "warm-up", "warm-up", "chatter"]);
    let policies: Vec<_> = of_type(&first, "state-done").iter().map(|done| done["policy"].clone()).collect();
    assert_eq!(policies, ["ok", "repair", "ok", "ok"]);
    let chatter: Vec<_> = texts(&first, "stdout").into_iter().filter(|text| text.starts_with("chatter: ")).collect();
    assert_eq!(chatter, (1..=1200).map(|i| format!("chatter: line {i:06}")).collect::<Vec<_>>());
    let asked = of_type(&first, "approval-requested")[0];
    assert_eq!((&asked["message"], &asked["by"]), (&"Write the report on 8 crates?".into(), &"human".into()));

    let second = tour(&world, 0, &["approve", &run, "--json"]).records();
    let all = world.expect(0, &["logs", &run, "--json"]).records();
    assert_whole(&all, "done");
    assert_eq!(all[..first.len()], first);
    let resolved = of_type(&all, "approval-resolved")[0];
    assert_eq!((&resolved["hash"], &resolved["decision"]), (&asked["hash"], &"approve".into()));
    assert_eq!((&resolved["actor"], &resolved["seen_seq"]), (&"cli:tester".into(), &first.len().into()));
    // What going on shows begins where it goes on.
    assert_eq!(types(&second)[0], "run-start");
    assert_eq!((&second[0]["resumed"], second.last()), (&true.into(), all.last()));
    assert_eq!(second[..], all[all.len() - second.len()..]);
    let report: Vec<_> = texts(&second, "stdout");
    assert!(report.iter().any(|line| line.starts_with("mcp-core ")), "{report:?}");
    assert_eq!(world.status(&run), "done");
    // Decided is decided.
    let again = world.expect(1, &["approve", &run]);
    assert!(again.stderr.contains(&run) && again.stderr.contains("is done"), "{}", again.stderr);
}

#[test]
fn rejected_is_halted() {
    let world = World::new();
    let run = run_of(&world.expect(3, &["run", "person", "--json"]).records());
    let wrong = world.expect(1, &["approve", &run, "--reject", "--hash", &"0".repeat(64)]);
    assert!(wrong.stderr.contains("hash"), "{}", wrong.stderr);
    assert_eq!(world.status(&run), "suspended");
    world.expect(1, &["approve", &run, "--reject"]);
    let all = world.expect(0, &["logs", &run, "--json"]).records();
    assert_whole(&all, "halt");
    let end = all.last().unwrap();
    assert_eq!((&end["error"], &end["at"]), (&"approval-rejected".into(), &"agree".into()));
    assert_eq!(states(&all), ["build", "agree"]);
}

#[test]
fn a_decision_may_be_left_for_later() {
    let world = World::new();
    let run = run_of(&world.expect(3, &["run", "person", "--json"]).records());
    let snapshot = world.expect(0, &["status", &run, "--json"]).json();
    let hash = snapshot["approval"]["hash"].as_str().unwrap();
    let decided = world.expect(0, &["approve", &run, "--hash", hash, "--decide-only", "--json"]).json();
    assert_eq!((&decided["status"], &decided["approval"]["decision"]), (&"suspended".into(), &"approve".into()));
    let again = world.expect(1, &["approve", &run, "--reject"]);
    assert!(again.stderr.contains("decided already: approve"), "{}", again.stderr);
    world.expect(0, &["resume", &run]);
    let all = world.expect(0, &["logs", &run, "--json"]).records();
    assert_whole(&all, "done");
    assert_eq!((of_type(&all, "approval-resolved").len(), states(&all).last()), (1, Some(&"deploy")));
}

#[test]
fn a_resume_by_a_person_needs_the_decision() {
    let world = World::new();
    let run = run_of(&world.expect(3, &["run", "person", "--json"]).records());
    let bare = world.expect(1, &["resume", &run]);
    assert!(bare.stderr.contains("waits for a decision at agree"), "{}", bare.stderr);
    assert_eq!(world.status(&run), "suspended");
    world.expect(0, &["resume", &run, "-i", "decision=approve"]);
}

#[test]
fn a_detached_run_goes_on_by_itself() {
    let world = World::new();
    let file = world.file("go");
    let input = format!("file={}", file.display());
    let done = world.expect(0, &["run", "hold", "--detach", "-i", &input]);
    let run = done.stdout.trim().to_owned();
    assert_eq!(done.stdout.lines().count(), 1, "{}", done.stdout);
    assert_eq!(world.status(&run), "running");
    let json = world.expect(0, &["run", "small", "--detach", "--json"]).json();
    assert_eq!(json["playbook"], "small");
    let mut waiting = world.start(&["status", &run, "--wait", "--json"]);
    let mut follower = world.start(&["logs", "-f", "--json", &run]);
    follower.log("holding ");
    assert!(!waiting.has_ended());
    std::fs::write(file, "").unwrap();
    assert_eq!(waiting.end().json()["status"], "done");
    follower.record(|record| record["type"] == "run-finished");
    assert_whole(&follower.end().records(), "done");
    world.until_empty(PATIENCE);
    // What is wrong is told by the command itself.
    let done = world.expect(2, &["run", "hold", "--detach"]);
    assert!(done.stderr.contains("file"), "{}", done.stderr);
}

#[test]
fn a_key_starts_a_run_once() {
    let world = World::new();
    let args = ["run", "small", "--json", "--idempotency-key", "k1"];
    let first = world.expect(0, &args).records();
    let second = world.expect(0, &args).records();
    assert_eq!(first, second);
    assert_eq!(world.only_run(), run_of(&first));
    let other = world.expect(1, &[&args[..], &["-i", "who=me"]].concat());
    assert!(other.stderr.contains(&run_of(&first)) && other.stderr.contains("k1"), "{}", other.stderr);
    // While the first one runs, the second one watches it.
    let file = world.file("go");
    let input = format!("file={}", file.display());
    let args = ["run", "hold", "--json", "--idempotency-key", "k2", "-i", &input];
    let mut first = world.start(&args);
    first.log("holding ");
    let mut second = world.start(&args);
    second.log("holding ");
    std::fs::write(file, "").unwrap();
    let (first, second) = (first.end(), second.end());
    assert_eq!((first.code, second.code), (Some(0), Some(0)), "{}", second.stderr);
    assert_eq!(first.records(), second.records());
    let detached = |_| world.expect(0, &["run", "small", "--detach", "--idempotency-key", "k3"]).stdout;
    let [one, two] = [0, 1].map(detached);
    assert_eq!(one, two, "a detached run, too");
}

#[test]
fn who_watches_changes_nothing() {
    let world = World::new();
    let file = world.file("go");
    // Its reader goes after the first line, while the run goes on.
    let mut command = world.program("sh");
    let script = r#""$0" run hold --json -i "file=$1" | head -n 1; echo gone"#;
    command.args(["-c", script, env!("CARGO_BIN_EXE_taffrail")]).arg(&file);
    let mut shell = crate::proc::Proc::start(command);
    let run = shell.record(|record| record["type"] == "run-start")["run"].as_str().unwrap().to_owned();
    let mut follower = world.start(&["logs", "-f", "--json", &run]);
    follower.log("holding ");
    std::fs::write(&file, "").unwrap();
    assert_eq!(shell.line().as_deref(), Some("gone"));
    follower.record(|record| record["type"] == "run-finished");
    assert_whole(&follower.end().records(), "done");
    // A disk that is full, and a stream that is closed.
    for to in [">/dev/full 2>&1", ">&- 2>&-"] {
        for flags in ["", "--json"] {
            let mut command = world.program("sh");
            command.args(["-c", &format!(r#"exec "$0" run small {flags} {to}"#), env!("CARGO_BIN_EXE_taffrail")]);
            assert_eq!(crate::proc::Proc::start(command).end().code, Some(0), "{flags} {to}");
        }
    }
    let listed = world.expect(0, &["runs", "--status", "done", "--json"]).records();
    assert_eq!(listed.len(), 5);
}

#[test]
fn a_question_is_answered_and_a_wrong_answer_changes_nothing() {
    let world = World::new();
    let run = run_of(&world.expect(3, &["run", "question", "--json"]).records());
    for wrong in [&["-i", "region=mars"][..], &["-i", "place=eu"], &[]] {
        let done = world.expect(2, &[&["approve", &run], wrong].concat());
        assert!(done.stderr.contains("region"), "{}", done.stderr);
        assert_eq!(world.status(&run), "suspended");
    }
    let before = world.expect(0, &["logs", &run, "--json"]).records();
    assert_eq!(types(&before).last(), Some(&"run-finished"));
    world.expect(0, &["approve", &run, "-i", "region=eu"]);
    let all = world.expect(0, &["logs", &run, "--json"]).records();
    assert_whole(&all, "done");
    assert_eq!(texts(&all, "stdout"), ["to eu"]);
    assert_eq!(of_type(&all, "approval-resolved")[0]["content"], json!({"region": "eu"}));
}

#[test]
fn control_c_cancels_a_playbook_and_a_waiting_run() {
    let world = World::new();
    let mut run = world.start(&["run", "hold", "--json", "-i", "file=/no/such"]);
    run.log("holding ");
    run.signal(rustix::process::Signal::INT);
    let done = run.end();
    assert_eq!(done.code, Some(130));
    assert_whole(&done.records(), "cancelled");
    let run = run_of(&world.expect(3, &["run", "person", "--json"]).records());
    let snapshot = world.expect(0, &["cancel", &run, "--json"]).json();
    assert_eq!(snapshot["status"], "cancelled");
    assert_whole(&world.expect(0, &["logs", &run, "--json"]).records(), "cancelled");
    let late = world.expect(1, &["approve", &run]);
    assert!(late.stderr.contains("cancelled"), "{}", late.stderr);
    until("nothing is locked", PATIENCE, || {
        (std::fs::read_dir(world.data().join("live")).unwrap().count() == 0).then_some(())
    });
}
