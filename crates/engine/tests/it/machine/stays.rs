//! Runs that rest, and go on in what could be another process.

use std::fs;

use serde_json::json;
use taffrail_engine::{Resolution, ResumeError};
use taffrail_mcp_core::{Decision, RunStatus, Usage};

use super::harness::World;

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_run_goes_on_from_its_last_checkpoint() {
    let world = World::new(&["playbook: work
states:
  first: { run: 'echo x >> first; echo one', output: said }
  second: { run: 'echo x >> second; [ -e go ] || { echo up; sleep 60; }' }
  third: { exec: [echo, '{{ ctx.said }}'] }
"]);
    let shutdown = async {
        world.log.line("up").await;
        world.shutdown.cancel();
    };
    let (ended, ()) = tokio::join!(world.run("work"), shutdown);
    assert_eq!((ended.status, ended.error.unwrap().as_str()), (RunStatus::Interrupted, "shutdown"));
    assert_eq!(world.log.of_type("state-done").len(), 1);
    assert_eq!(world.log.events().last().unwrap()["status"], "interrupted");

    // The file has changed meanwhile; the run goes on with what it was started with.
    fs::write(world.path().join("work.yaml"), "playbook: work\nstates: { other: { run: exit 1 } }\n").unwrap();
    fs::write(world.path().join("go"), "").unwrap();
    let later = World { log: world.log.clone(), ..World::new(&[]) };
    let mut job = later.job();
    job.usage = Usage { log_lines: 40, ..Usage::default() };
    let ended = later.engine().resume(world.resume_data(), None, job).await.unwrap();
    assert_eq!(ended.status, RunStatus::Done, "{:?}", world.log.events());
    assert_eq!(fs::read_to_string(world.path().join("first")).unwrap(), "x\n");
    assert_eq!(fs::read_to_string(world.path().join("second")).unwrap(), "x\nx\n");
    assert_eq!(world.log.texts(), ["one", "up", "one"]);
    assert_eq!((ended.usage.steps, ended.usage.log_lines), (3, 41));
    let resumed = &world.log.of_type("run-start")[1];
    assert_eq!((&resumed["resumed"], &resumed["entry"]), (&json!(true), &json!("second")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_waits_without_a_process_and_takes_only_a_good_answer() {
    let world = World::new(&["playbook: ask
states:
  region:
    ask: Which region?
    schema: { type: object, properties: { region: { type: string, enum: [eu, us] } }, required: [region] }
    output: where
  deploy: { exec: [echo, 'to {{ ctx.where.region }}'] }
"]);
    assert_eq!(world.run("ask").await.status, RunStatus::Suspended);
    let asked = world.log.of_type("approval-requested").remove(0);
    let answer = |content| Resolution {
        approval: asked["approval"].as_str().unwrap().to_owned(),
        hash: asked["hash"].as_str().unwrap().to_owned(),
        decision: Decision::Approve,
        content: Some(content),
    };
    let before = world.log.events().len();
    let bad = answer(json!({ "region": "moon" }));
    let refused = world.engine().resume(world.resume_data(), Some(bad), world.job()).await;
    assert!(matches!(refused, Err(ResumeError::InvalidAnswer { .. })), "{refused:?}");
    assert_eq!(world.log.events().len(), before);

    let good = answer(json!({ "region": "eu" }));
    let ready = world.engine().prepare_resume(world.resume_data(), Some(good), world.job()).unwrap();
    assert_eq!(world.log.events().len(), before, "nothing is emitted before it is driven");
    assert_eq!(ready.drive().await.status, RunStatus::Done);
    assert_eq!(world.log.texts(), ["to eu"]);
}
