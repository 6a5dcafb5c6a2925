//! One playbook, one state at a time.

use insta::assert_snapshot;
use serde_json::json;
use taffrail_mcp_core::Exit;

use super::sim::{Do, run};

const PLAIN: &str = "
playbook: plain
states:
  first: { run: one }
  second: { run: two, output: word }
";

#[test]
fn states_follow_each_other_in_file_order() {
    assert_snapshot!(run(&[PLAIN], json!({}), &[Do::Exit(0, 0, "1\n"), Do::Exit(1, 0, "")]), @r#"
    run-start entry=first machine=plain
    checkpoint checkpoint=id-1 state=first step=0
    state-start kind=run machine=plain state=first step=1
    > 0 first sh "one" in /base
    state-done exit={"code":0} machine=plain output=1 policy=ok state=first step=1 to=second
    checkpoint checkpoint=id-2 state=second step=1
    state-start kind=run machine=plain state=second step=2
    > 1 second sh "two" in /base
    state-done exit={"code":0} machine=plain policy=ok state=second step=2 to=END
    run-finished machine=plain status=done
    "#);
}

#[test]
fn a_state_without_gates_fails_with_its_cause() {
    assert_snapshot!(run(&[PLAIN], json!({}), &[Do::Exit(0, 3, "")]), @r#"
    run-start entry=first machine=plain
    checkpoint checkpoint=id-1 state=first step=0
    state-start kind=run machine=plain state=first step=1
    > 0 first sh "one" in /base
    state-done exit={"code":3} machine=plain policy=fail state=first step=1
    run-finished at=first detail=exit code 3 error=gate-failed machine=plain status=halt
    "#);
    assert_snapshot!(run(&[PLAIN], json!({}), &[Do::Ends(0, Exit::Signal("SIGKILL".to_owned()))]), @r#"
    run-start entry=first machine=plain
    checkpoint checkpoint=id-1 state=first step=0
    state-start kind=run machine=plain state=first step=1
    > 0 first sh "one" in /base
    state-done exit={"signal":"SIGKILL"} machine=plain policy=fail state=first step=1
    run-finished at=first detail=ended by SIGKILL error=gate-failed machine=plain status=halt
    "#);
    assert_snapshot!(run(&[PLAIN], json!({}), &[Do::Ends(0, Exit::Timeout(true))]), @r#"
    run-start entry=first machine=plain
    checkpoint checkpoint=id-1 state=first step=0
    state-start kind=run machine=plain state=first step=1
    > 0 first sh "one" in /base
    state-done exit={"timeout":true} machine=plain policy=fail state=first step=1
    run-finished at=first detail=it ran into its time limit error=timeout machine=plain status=halt
    "#);
    assert_snapshot!(run(&[PLAIN], json!({}), &[Do::NoSpawn(0)]), @r#"
    run-start entry=first machine=plain
    checkpoint checkpoint=id-1 state=first step=0
    state-start kind=run machine=plain state=first step=1
    > 0 first sh "one" in /base
    state-done exit={"code":127} machine=plain policy=fail state=first step=1
    run-finished at=first detail=no such program error=spawn-failed machine=plain status=halt
    "#);
    assert_snapshot!(run(&[PLAIN], json!({}), &[Do::Lost(0)]), @r#"
    run-start entry=first machine=plain
    checkpoint checkpoint=id-1 state=first step=0
    state-start kind=run machine=plain state=first step=1
    > 0 first sh "one" in /base
    state-done machine=plain policy=fail state=first step=1
    run-finished at=first detail=it panicked error=internal-error machine=plain status=halt
    "#);
}

#[test]
fn the_first_true_gate_fires() {
    let source = "
playbook: gates
states:
  work:
    run: work
    gates:
      - { when: exit.code == 0, then: ok, to: END }
      - { when: exit.code == 75, repair: 2 }
      - { when: exit.code == 9, escalate: true, to: tidy }
      - { when: exit.code == 8, escalate: true, to: END }
      - { when: exit.code == 7, then: fail }
      - { when: attempt == 99, then: ok }
  tidy: { run: tidy }
";
    assert_snapshot!(run(&[source], json!({}), &[Do::Exit(0, 75, ""), Do::Exit(1, 0, "x")]), @r#"
    run-start entry=work machine=gates
    checkpoint checkpoint=id-1 state=work step=0
    state-start kind=run machine=gates state=work step=1
    > 0 work sh "work" in /base
    state-done exit={"code":75} gate=exit.code == 75 machine=gates policy=repair state=work step=1 to=work
    checkpoint checkpoint=id-2 state=work step=1
    state-start kind=run machine=gates state=work step=2
    > 1 work sh "work" in /base
    state-done exit={"code":0} gate=exit.code == 0 machine=gates output=x policy=ok state=work step=2 to=END
    run-finished machine=gates status=done
    "#);
    assert_snapshot!(run(&[source], json!({}), &[Do::Exit(0, 75, ""), Do::Exit(1, 75, ""), Do::Exit(2, 75, "")]), @r#"
    run-start entry=work machine=gates
    checkpoint checkpoint=id-1 state=work step=0
    state-start kind=run machine=gates state=work step=1
    > 0 work sh "work" in /base
    state-done exit={"code":75} gate=exit.code == 75 machine=gates policy=repair state=work step=1 to=work
    checkpoint checkpoint=id-2 state=work step=1
    state-start kind=run machine=gates state=work step=2
    > 1 work sh "work" in /base
    state-done exit={"code":75} gate=exit.code == 75 machine=gates policy=repair state=work step=2 to=work
    checkpoint checkpoint=id-3 state=work step=2
    state-start kind=run machine=gates state=work step=3
    > 2 work sh "work" in /base
    state-done exit={"code":75} gate=exit.code == 75 machine=gates policy=repair state=work step=3
    run-finished at=work detail=repaired 2 times in vain at the gate `exit.code == 75`: exit code 75 error=repair-exhausted machine=gates status=halt
    "#);
    assert_snapshot!(run(&[source], json!({}), &[Do::Exit(0, 9, ""), Do::Exit(1, 0, "")]), @r#"
    run-start entry=work machine=gates
    checkpoint checkpoint=id-1 state=work step=0
    state-start kind=run machine=gates state=work step=1
    > 0 work sh "work" in /base
    state-done exit={"code":9} gate=exit.code == 9 machine=gates policy=escalate state=work step=1 to=tidy
    checkpoint checkpoint=id-2 state=tidy step=1
    state-start kind=run machine=gates state=tidy step=2
    > 1 tidy sh "tidy" in /base
    state-done exit={"code":0} machine=gates policy=ok state=tidy step=2 to=END
    run-finished machine=gates status=done
    "#);
    assert_snapshot!(run(&[source], json!({}), &[Do::Exit(0, 8, "")]), @r#"
    run-start entry=work machine=gates
    checkpoint checkpoint=id-1 state=work step=0
    state-start kind=run machine=gates state=work step=1
    > 0 work sh "work" in /base
    state-done exit={"code":8} gate=exit.code == 8 machine=gates policy=escalate state=work step=1
    run-finished at=work detail=escalated at the gate `exit.code == 8`: exit code 8 error=escalated machine=gates status=halt
    "#);
    assert_snapshot!(run(&[source], json!({}), &[Do::Exit(0, 7, "")]), @r#"
    run-start entry=work machine=gates
    checkpoint checkpoint=id-1 state=work step=0
    state-start kind=run machine=gates state=work step=1
    > 0 work sh "work" in /base
    state-done exit={"code":7} gate=exit.code == 7 machine=gates policy=fail state=work step=1
    run-finished at=work detail=failed at the gate `exit.code == 7`: exit code 7 error=gate-failed machine=gates status=halt
    "#);
    assert_snapshot!(run(&[source], json!({}), &[Do::Exit(0, 1, "")]), @r#"
    run-start entry=work machine=gates
    checkpoint checkpoint=id-1 state=work step=0
    state-start kind=run machine=gates state=work step=1
    > 0 work sh "work" in /base
    state-done exit={"code":1} machine=gates policy=no-gate-matched state=work step=1
    run-finished at=work detail=no gate was true: exit code 1 error=no-gate-matched machine=gates status=halt
    "#);
}

#[test]
fn outputs_and_inputs_reach_later_states() {
    let source = "
playbook: values
inputs: { who: { type: string, default: you } }
states:
  get: { run: get, parse: json, output: got }
  use:
    exec: [say, '{{ inputs.who }}', 'n={{ ctx.got.n }}']
    env: { LIST: '{{ ctx.got.list }}' }
    cwd: 'sub/{{ inputs.who }}'
    gates:
      - { when: 'output == \"yes\" && ctx.got.n == 1', then: ok }
";
    assert_snapshot!(run(&[source], json!({}), &[Do::Exit(0, 0, r#"{"n":1,"list":["a"]}"#), Do::Exit(1, 0, "yes\n")]), @r#"
    run-start entry=get machine=values
    checkpoint checkpoint=id-1 state=get step=0
    state-start kind=run machine=values state=get step=1
    > 0 get sh "get" in /base
    state-done exit={"code":0} machine=values output={"list":["a"],"n":1} policy=ok state=get step=1 to=use
    checkpoint checkpoint=id-2 state=use step=1
    state-start kind=run machine=values state=use step=2
    > 1 use ["say", "you", "n=1"] in /base/sub/you LIST=["a"]
    state-done exit={"code":0} gate=output == "yes" && ctx.got.n == 1 machine=values output=yes policy=ok state=use step=2 to=END
    run-finished machine=values status=done
    "#);
    assert_snapshot!(run(&[source], json!({}), &[Do::Exit(0, 0, "not json")]), @r#"
    run-start entry=get machine=values
    checkpoint checkpoint=id-1 state=get step=0
    state-start kind=run machine=values state=get step=1
    > 0 get sh "get" in /base
    state-done exit={"code":0} machine=values policy=fail state=get step=1
    run-finished at=get detail=stdout is not JSON: expected ident at line 1 column 2 error=gate-failed machine=values status=halt
    "#);
    assert_snapshot!(run(&[source], json!({}), &[Do::Exit(0, 0, "{}")]), @r#"
    run-start entry=get machine=values
    checkpoint checkpoint=id-1 state=get step=0
    state-start kind=run machine=values state=get step=1
    > 0 get sh "get" in /base
    state-done exit={"code":0} machine=values output={} policy=ok state=get step=1 to=use
    checkpoint checkpoint=id-2 state=use step=1
    state-start kind=run machine=values state=use step=2
    state-done machine=values policy=fail state=use step=2
    run-finished at=use detail=cannot render `n={{ ctx.got.n }}`: a value it uses is undefined (`ctx.got.n` is undefined) error=template-error machine=values status=halt
    "#);
    assert_snapshot!(run(&[source], json!({ "who": 3 }), &[]), @r#"
    run-start entry=get machine=values
    run-finished at=get detail=input `who` must be a string, not a number error=invalid-inputs machine=values status=halt
    "#);
}

#[test]
fn a_condition_that_has_no_answer_halts() {
    let source = "
playbook: bad
states:
  work: { run: work, gates: [{ when: 'output > 3', then: ok }] }
";
    assert_snapshot!(run(&[source], json!({}), &[Do::Exit(0, 0, "x")]), @r#"
    run-start entry=work machine=bad
    checkpoint checkpoint=id-1 state=work step=0
    state-start kind=run machine=bad state=work step=1
    > 0 work sh "work" in /base
    state-done exit={"code":0} machine=bad output=x policy=fail state=work step=1
    run-finished at=work detail=condition `output > 3` failed: found no matching overload for '_>_' applied to '(string, int)' error=condition-error machine=bad status=halt
    "#);
}

#[test]
fn a_repair_may_lead_elsewhere() {
    let source = "
playbook: repair
states:
  test:
    run: test
    gates:
      - { when: exit.code == 0, then: ok, to: END }
      - { when: otherwise, repair: 1, to: mend }
  mend: { exec: [mend, '{{ attempt }}'], gates: [{ when: otherwise, then: ok, to: test }] }
";
    let script = [Do::Exit(0, 1, ""), Do::Exit(1, 0, ""), Do::Exit(2, 1, "")];
    assert_snapshot!(run(&[source], json!({}), &script), @r#"
    run-start entry=test machine=repair
    checkpoint checkpoint=id-1 state=test step=0
    state-start kind=run machine=repair state=test step=1
    > 0 test sh "test" in /base
    state-done exit={"code":1} gate=otherwise machine=repair policy=repair state=test step=1 to=mend
    checkpoint checkpoint=id-2 state=mend step=1
    state-start kind=run machine=repair state=mend step=2
    > 1 mend ["mend", "1"] in /base
    state-done exit={"code":0} gate=otherwise machine=repair policy=ok state=mend step=2 to=test
    checkpoint checkpoint=id-3 state=test step=2
    state-start kind=run machine=repair state=test step=3
    > 2 test sh "test" in /base
    state-done exit={"code":1} gate=otherwise machine=repair policy=repair state=test step=3
    run-finished at=test detail=repaired 1 times in vain at the gate `otherwise`: exit code 1 error=repair-exhausted machine=repair status=halt
    "#);
}

#[test]
fn budgets_end_every_loop() {
    let source = "
playbook: endless
budget: { steps: 2, wall: 10s }
states:
  work: { run: work, gates: [{ when: otherwise, then: ok, to: work }] }
";
    assert_snapshot!(run(&[source], json!({}), &[Do::Exit(0, 0, ""), Do::Exit(1, 0, "")]), @r#"
    run-start entry=work machine=endless
    checkpoint checkpoint=id-1 state=work step=0
    state-start kind=run machine=endless state=work step=1
    > 0 work sh "work" in /base
    state-done exit={"code":0} gate=otherwise machine=endless policy=ok state=work step=1 to=work
    checkpoint checkpoint=id-2 state=work step=1
    state-start kind=run machine=endless state=work step=2
    > 1 work sh "work" in /base
    state-done exit={"code":0} gate=otherwise machine=endless policy=ok state=work step=2 to=work
    run-finished at=work detail=its 2 steps are used up error=budget-exhausted machine=endless status=halt
    "#);
    let script = [Do::Exit(0, 0, ""), Do::Wall(10), Do::Ends(1, Exit::Signal("SIGTERM".to_owned()))];
    assert_snapshot!(run(&[source], json!({}), &script), @r#"
    run-start entry=work machine=endless
    checkpoint checkpoint=id-1 state=work step=0
    state-start kind=run machine=endless state=work step=1
    > 0 work sh "work" in /base
    state-done exit={"code":0} gate=otherwise machine=endless policy=ok state=work step=1 to=work
    checkpoint checkpoint=id-2 state=work step=1
    state-start kind=run machine=endless state=work step=2
    > 1 work sh "work" in /base
    > end tasks
    state-done exit={"signal":"SIGTERM"} machine=endless policy=fail state=work step=2
    run-finished at=work detail=its 10s of wall time are used up error=budget-exhausted machine=endless status=halt
    "#);
}
