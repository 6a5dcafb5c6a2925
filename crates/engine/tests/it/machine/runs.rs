//! Runs that reach their end by themselves.

use serde_json::json;
use taffrail_mcp_core::{RunStatus, Usage};

use super::harness::World;

#[tokio::test(flavor = "multi_thread")]
async fn events_stand_in_the_order_of_what_happened() {
    let world = World::new(&["playbook: two
states:
  first: { run: 'echo $TAFFRAIL_RUN $TAFFRAIL_THREAD $TAFFRAIL_STATE $EXTRA', output: said }
  second: { exec: [echo, 'again: {{ ctx.said }}'] }
"]);
    let mut job = world.job();
    job.env.push(("EXTRA".to_owned(), "more".to_owned()));
    let ended = world.engine().start(&world.playbook("two"), job).await;
    assert_eq!(ended.status, RunStatus::Done, "{:?}", world.log.events());
    let state = ["checkpoint", "state-start", "log", "state-done"];
    let expected = [&["run-start"], &state[..], &state[..], &["run-finished"]].concat();
    assert_eq!(world.log.kinds(), expected);
    assert_eq!(world.log.texts(), ["run-1 run-1 first more", "again: run-1 run-1 first more"]);
    let Usage { steps, log_lines, log_bytes, clipped_lines, .. } = ended.usage;
    assert_eq!((steps, log_lines, log_bytes, clipped_lines), (2, 2, 53, 0));
    assert_eq!(world.log.of_type("run-finished")[0]["usage"], json!(ended.usage));
}

#[tokio::test(flavor = "multi_thread")]
async fn branches_run_side_by_side_and_answer_in_order() {
    // Each branch waits for all to have begun.
    let world = World::new(&["playbook: wide
states:
  each:
    over: [c, b, a]
    run: |
      touch began-$ITEM
      while [ ! -e began-a ] || [ ! -e began-b ] || [ ! -e began-c ]; do sleep 0.01; done
      echo $ITEM-$INDEX
    output: all
    gates: [{ when: 'ctx.all == [\"c-0\", \"b-1\", \"a-2\"]', then: ok }]
"]);
    let ended = world.run("wide").await;
    assert_eq!(ended.status, RunStatus::Done, "{:?}", world.log.events());
    let indexes = |kind: &str| -> Vec<u64> {
        world.log.of_type(kind).iter().map(|event| event["index"].as_u64().unwrap()).collect()
    };
    assert_eq!(indexes("branch-start"), [0, 1, 2]);
    for kind in ["log", "branch-done"] {
        let mut of_all = indexes(kind);
        of_all.sort_unstable();
        assert_eq!(of_all, [0, 1, 2], "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn playbooks_are_called_from_the_folder() {
    let world = World::new(&[
        "playbook: top
states:
  all: { call: part, with: { n: '{{ item }}' }, over: [1, 2], output: parts }
  one: { call: part, with: { n: '{{ ctx.parts[1].ctx.twice }}' }, output: part }
  show: { exec: [echo, '{{ ctx.part.ctx.twice }}'] }
",
        "playbook: part
inputs: { n: { type: integer, required: true } }
states:
  work: { exec: [expr, '{{ inputs.n }}', +, '{{ inputs.n }}'], parse: json, output: twice }
",
    ]);
    let ended = world.run("top").await;
    assert_eq!(ended.status, RunStatus::Done, "{:?}", world.log.events());
    assert_eq!(world.log.texts().last().map(String::as_str), Some("8"));
    assert_eq!(ended.usage.steps, 6);
    let depths: Vec<_> = world.log.of_type("run-finished").iter().map(|event| event["depth"].clone()).collect();
    assert_eq!(depths, [1, 1, 1, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn gates_see_how_processes_end() {
    let world = World::new(&["playbook: ends
states:
  code: { run: exit 7, gates: [{ when: exit.code == 7, then: ok }] }
  signal: { run: kill -KILL $$, gates: [{ when: 'exit.signal == \"SIGKILL\"', then: ok }] }
  late: { run: sleep 60, timeout: 1s, gates: [{ when: exit.timeout, then: ok }] }
  flaky:
    run: '[ -e tried ] || { touch tried; exit 1; }'
    gates: [{ when: exit.code == 0, then: ok }, { when: otherwise, repair: 1 }]
  missing: { exec: [no-such-program-here] }
"]);
    let ended = world.run("ends").await;
    assert_eq!(ended.status, RunStatus::Halt);
    assert_eq!(ended.error.unwrap().as_str(), "spawn-failed");
    assert_eq!(ended.at.as_deref(), Some("missing"));
    assert!(ended.detail.unwrap().contains("no-such-program-here"));
    let exits: Vec<_> = world.log.of_type("state-done").iter().map(|event| event["exit"].clone()).collect();
    let expected = json!([
        { "code": 7 }, { "signal": "SIGKILL" }, { "timeout": true }, { "code": 1 }, { "code": 0 }, { "code": 127 }
    ]);
    assert_eq!(json!(exits), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn output_past_the_budget_is_clipped_and_counted() {
    let world = World::new(&["playbook: loud
budget: { output: 1KiB }
states:
  first: { run: seq 1 1000 }
  second: { run: echo more }
"]);
    let ended = world.run("loud").await;
    assert_eq!(ended.status, RunStatus::Done);
    let usage = ended.usage;
    let printed: usize = (1..=1000).map(|n: u32| n.to_string().len() + 1).sum::<usize>() + "more\n".len();
    assert_eq!(usage.log_bytes + usage.clipped_bytes, printed as u64, "{usage:?}");
    assert_eq!(usage.log_lines + usage.clipped_lines, 1001, "{usage:?}");
    assert!(usage.log_bytes <= 1024 && usage.clipped_lines > 0, "{usage:?}");
    assert_eq!(world.log.texts().len() as u64, usage.log_lines);
}
