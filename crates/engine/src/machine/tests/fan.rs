//! Fan-out.

use insta::assert_snapshot;
use serde_json::{Value, json};
use taffrail_mcp_core::Event;

use super::sim::{Do, Sim, run};

const FAN: &str = "
playbook: fan
inputs: { targets: { type: array, default: [a, { b: 1 }, c] } }
states:
  each:
    over: '{{ inputs.targets }}'
    max_parallel: 2
    exec: [do, '{{ item }}', '{{ index }}']
    output: results
    gates:
      - { when: 'branches.all(b, b.exit.code == 0)', then: ok }
      - { when: 'branches[1].output == \"no\"', escalate: true }
  after: { exec: [show, '{{ ctx.results }}'] }
";

#[test]
fn branches_start_in_order_and_end_in_any() {
    let script = [Do::Exit(1, 0, "two\n"), Do::Exit(2, 0, "three"), Do::Exit(0, 0, "one"), Do::Exit(3, 0, "")];
    assert_snapshot!(run(&[FAN], json!({}), &script), @r#"
    run-start entry=each machine=fan
    checkpoint checkpoint=id-1 state=each step=0
    state-start kind=run machine=fan state=each step=1
    branch-start index=0 item=a machine=fan state=each
    > 0 each[0] ["do", "a", "0"] in /base ITEM=a INDEX=0
    branch-start index=1 item={"b":1} machine=fan state=each
    > 1 each[1] ["do", "{\"b\":1}", "1"] in /base ITEM={"b":1} INDEX=1
    branch-done exit={"code":0} index=1 machine=fan state=each
    branch-start index=2 item=c machine=fan state=each
    > 2 each[2] ["do", "c", "2"] in /base ITEM=c INDEX=2
    branch-done exit={"code":0} index=2 machine=fan state=each
    branch-done exit={"code":0} index=0 machine=fan state=each
    state-done branches=3 gate=branches.all(b, b.exit.code == 0) machine=fan output=["one","two","three"] policy=ok state=each step=1 to=after
    checkpoint checkpoint=id-2 state=after step=1
    state-start kind=run machine=fan state=after step=2
    > 3 after ["show", "[\"one\",\"two\",\"three\"]"] in /base
    state-done exit={"code":0} machine=fan policy=ok state=after step=2 to=END
    run-finished machine=fan status=done
    "#);
}

#[test]
fn a_failed_branch_does_not_stop_the_others() {
    let script = [Do::Exit(0, 0, ""), Do::Exit(1, 4, "no"), Do::NoSpawn(2), Do::Exit(3, 0, "")];
    assert_snapshot!(run(&[FAN], json!({}), &script), @r#"
    run-start entry=each machine=fan
    checkpoint checkpoint=id-1 state=each step=0
    state-start kind=run machine=fan state=each step=1
    branch-start index=0 item=a machine=fan state=each
    > 0 each[0] ["do", "a", "0"] in /base ITEM=a INDEX=0
    branch-start index=1 item={"b":1} machine=fan state=each
    > 1 each[1] ["do", "{\"b\":1}", "1"] in /base ITEM={"b":1} INDEX=1
    branch-done exit={"code":0} index=0 machine=fan state=each
    branch-start index=2 item=c machine=fan state=each
    > 2 each[2] ["do", "c", "2"] in /base ITEM=c INDEX=2
    branch-done exit={"code":4} index=1 machine=fan state=each
    branch-done exit={"code":127} index=2 machine=fan state=each
    state-done branches=3 gate=branches[1].output == "no" machine=fan output=["","no",null] policy=escalate state=each step=1 to=after
    checkpoint checkpoint=id-2 state=after step=1
    state-start kind=run machine=fan state=after step=2
    > 3 after ["show", "[\"\",\"no\",null]"] in /base
    state-done exit={"code":0} machine=fan policy=ok state=after step=2 to=END
    run-finished machine=fan status=done
    "#);
}

#[test]
fn no_branches_are_a_success() {
    assert_snapshot!(run(&[FAN], json!({ "targets": [] }), &[Do::Exit(0, 0, "")]), @r#"
    run-start entry=each machine=fan
    checkpoint checkpoint=id-1 state=each step=0
    state-start kind=run machine=fan state=each step=1
    state-done branches=0 gate=branches.all(b, b.exit.code == 0) machine=fan output=[] policy=ok state=each step=1 to=after
    checkpoint checkpoint=id-2 state=after step=1
    state-start kind=run machine=fan state=after step=2
    > 0 after ["show", "[]"] in /base
    state-done exit={"code":0} machine=fan policy=ok state=after step=2 to=END
    run-finished machine=fan status=done
    "#);
}

#[test]
fn samples_have_an_index_only() {
    let source = "
playbook: many
states:
  each: { run: work, sample: 3 }
";
    assert_snapshot!(run(&[source], json!({}), &[Do::Exit(0, 0, "a"), Do::Exit(1, 1, "b"), Do::Exit(2, 2, "c")]), @r#"
    run-start entry=each machine=many
    checkpoint checkpoint=id-1 state=each step=0
    state-start kind=run machine=many state=each step=1
    branch-start index=0 machine=many state=each
    > 0 each[0] sh "work" in /base INDEX=0
    branch-start index=1 machine=many state=each
    > 1 each[1] sh "work" in /base INDEX=1
    branch-done exit={"code":0} index=0 machine=many state=each
    branch-start index=2 machine=many state=each
    > 2 each[2] sh "work" in /base INDEX=2
    branch-done exit={"code":1} index=1 machine=many state=each
    branch-done exit={"code":2} index=2 machine=many state=each
    state-done branches=3 machine=many output=["a","b","c"] policy=fail state=each step=1
    run-finished at=each detail=2 failed: branch 1: exit code 1; branch 2: exit code 2 error=gate-failed machine=many status=halt
    "#);
}

#[test]
fn too_many_branches_and_bad_lists_are_told() {
    let source = "
playbook: bad
inputs: { what: { type: object } }
states:
  each: { run: work, over: '{{ inputs.what.list }}' }
";
    let detail = |list: Value| {
        let sim = Sim::start(&[source], json!({ "what": { "list": list } }));
        let end = sim.ended.clone().expect("it has ended");
        (end.error.unwrap().to_string(), end.detail.unwrap())
    };
    assert_eq!(
        detail(json!("x")),
        ("template-error".to_owned(), "state `each` of `bad`: `over` gives text, not a list".to_owned())
    );
    let (error, text) = detail(json!(vec![0; 10_001]));
    assert_eq!(error, "template-error");
    assert!(text.contains("more than 10000 branches"), "{text}");
}

#[test]
fn nothing_starts_when_the_last_item_cannot_be_rendered() {
    let source = "
playbook: late
states:
  each: { exec: [do, '{{ item.name }}'], over: [{ name: a }, { other: b }] }
";
    assert_snapshot!(run(&[source], json!({}), &[]), @r#"
    run-start entry=each machine=late
    checkpoint checkpoint=id-1 state=each step=0
    state-start kind=run machine=late state=each step=1
    state-done machine=late policy=fail state=each step=1
    run-finished at=each detail=state `each` of `late`: branch 1: cannot render `{{ item.name }}`: a value it uses is undefined; it uses item.name error=template-error machine=late status=halt
    "#);
}

#[test]
fn many_branches_run_in_bounded_numbers() {
    let items: Vec<u32> = (0..2000).collect();
    let mut sim = Sim::start(&[FAN], json!({ "targets": items }));
    while let Some(task) = sim.running.keys().next_back().copied() {
        assert!(sim.running.len() <= 2);
        sim.exit(task, taffrail_mcp_core::Exit::Code(0), "out");
    }
    let count = |kind: &str| sim.events.iter().filter(|event| event.kind() == kind).count();
    assert_eq!((count("branch-start"), count("branch-done")), (2000, 2000));
    let Some(Event::StateDone(done)) = sim.events.iter().find(|event| event.kind() == "state-done") else { panic!() };
    assert_eq!(done.branches, Some(2000));
}
