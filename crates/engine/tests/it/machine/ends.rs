//! Runs that are ended: by budgets, from outside, by faults.

use std::{sync::Arc, time::Duration};

use taffrail_mcp_core::{BoxFuture, Event, EventBatch, EventSink, RunStatus};

use super::harness::World;

const SLEEPER: &str = "playbook: sleeper
budget: { wall: 1h }
states:
  nap: { run: 'trap \"echo bye; exit 3\" TERM; echo up; while true; do sleep 0.02; done' }
  after: { run: echo after }
";

fn last(world: &World) -> serde_json::Value {
    let events = world.log.events();
    let finished = events.iter().filter(|event| event["type"] == "run-finished" && event["depth"] == 0).count();
    assert_eq!(finished, 1, "{events:?}");
    let last = events.last().unwrap().clone();
    assert_eq!(last["type"], "run-finished");
    last
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_ends_the_process_and_the_run() {
    let world = World::new(&[SLEEPER]);
    let cancel = async {
        world.log.line("up").await;
        world.cancel.cancel();
    };
    let (ended, ()) = tokio::join!(world.run("sleeper"), cancel);
    assert_eq!((ended.status, ended.at.as_deref()), (RunStatus::Cancelled, Some("nap")));
    let done = world.log.of_type("state-done");
    assert_eq!((done.len(), &done[0]["policy"], &done[0]["exit"]["code"]), (1, &"cancelled".into(), &3.into()));
    assert_eq!(world.log.texts(), ["up", "bye"]);
    assert_eq!((&last(&world)["status"], &last(&world)["error"]), (&"cancelled".into(), &"cancelled".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_before_the_start_starts_nothing() {
    let world = World::new(&[SLEEPER]);
    world.cancel.cancel();
    assert_eq!(world.run("sleeper").await.status, RunStatus::Cancelled);
    assert_eq!(world.log.kinds(), ["run-start", "run-finished"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn wall_time_ends_the_process_and_the_run() {
    let world = World::new(&[&SLEEPER.replace("1h", "1s")]);
    let ended = world.run("sleeper").await;
    assert_eq!((ended.status, ended.error.unwrap().as_str()), (RunStatus::Halt, "budget-exhausted"));
    assert_eq!(world.log.texts(), ["up", "bye"]);
    assert!(ended.usage.wall_ms >= 1000);
    assert_eq!(last(&world)["at"], "nap");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_that_never_waits_can_be_cancelled() {
    let world = World::new(&["playbook: spin
budget: { steps: 1000000000 }
inputs: { items: { type: array, default: [] } }
states:
  spin: { run: 'true', over: '{{ inputs.items }}', gates: [{ when: otherwise, then: ok, to: spin }] }
"]);
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        world.cancel.cancel();
    };
    let (ended, ()) = tokio::join!(world.run("spin"), cancel);
    assert_eq!(ended.status, RunStatus::Cancelled);
    assert!(ended.usage.steps > 1);
    last(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_ours_is_the_end_of_the_run_and_of_its_processes() {
    let world = World::new(&["playbook: two
states:
  first: { run: echo one }
  second: { run: echo two }
"]);
    let mut job = world.job();
    let calls = std::sync::atomic::AtomicU64::new(0);
    job.ids = Arc::new(move || match calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
        0 => "id-1".to_owned(),
        _ => panic!("no more ids"),
    });
    let ended = world.engine().start(&world.playbook("two"), job).await;
    assert_eq!((ended.status, ended.error.unwrap().as_str()), (RunStatus::Halt, "internal-error"));
    let last = last(&world);
    assert_eq!(last["detail"], "the engine panicked: no more ids");
    assert_eq!((&last["usage"]["steps"], &last["usage"]["log_lines"]), (&1.into(), &1.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_dropped_says_so_and_leaves_no_process() {
    let world = World::new(&[SLEEPER]);
    tokio::select! {
        _ = world.run("sleeper") => panic!("it sleeps"),
        () = world.log.line("up") => {}
    }
    let finished = world.log.of_type("run-finished");
    assert_eq!((finished.len(), &finished[0]["status"]), (1, &"interrupted".into()));
}

struct Broken;

impl EventSink for Broken {
    fn emit(&self, _: Event) {
        panic!("broken");
    }
    fn send<'a>(&'a self, _: &'a mut EventBatch) -> BoxFuture<'a, ()> {
        panic!("broken");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_sink_does_not_hurt_the_run() {
    let world = World::new(&["playbook: fine
states:
  first: { run: 'echo one; touch ran' }
"]);
    let mut job = world.job();
    job.sink = Arc::new(Broken);
    let ended = world.engine().start(&world.playbook("fine"), job).await;
    assert_eq!(ended.status, RunStatus::Done);
    assert!(world.path().join("ran").exists());
}
