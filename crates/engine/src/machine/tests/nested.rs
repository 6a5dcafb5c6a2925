//! Calls.

use insta::assert_snapshot;
use serde_json::json;

use super::sim::{Do, run};

const OUTER: &str = "
playbook: outer
states:
  before: { run: before, output: version }
  inner-call: { call: inner, with: { v: '{{ ctx.version }}' }, output: result }
  after: { exec: [after, '{{ ctx.result.ctx.word }}'] }
";
const INNER: &str = "
playbook: inner
inputs: { v: { type: string, required: true } }
states:
  work: { exec: [work, '{{ inputs.v }}'], output: word }
";

#[test]
fn a_call_is_a_run_within_the_run() {
    let script = [Do::Exit(0, 0, "1.2\n"), Do::Exit(1, 0, "hello"), Do::Exit(2, 0, "")];
    assert_snapshot!(run(&[OUTER, INNER], json!({}), &script), @r#"
    run-start entry=before machine=outer
    checkpoint checkpoint=id-1 state=before step=0
    state-start kind=run machine=outer state=before step=1
    > 0 before sh "before" in /base
    state-done exit={"code":0} machine=outer output=1.2 policy=ok state=before step=1 to=inner-call
    checkpoint checkpoint=id-2 state=inner-call step=1
    state-start kind=call machine=outer state=inner-call step=2
      run-start entry=work machine=inner
    checkpoint checkpoint=id-3 state=work step=2
      state-start kind=run machine=inner state=work step=3
    > 1 work ["work", "1.2"] in /base
      state-done exit={"code":0} machine=inner output=hello policy=ok state=work step=3 to=END
      run-finished machine=inner status=done
    state-done machine=outer output={"ctx":{"word":"hello"},"status":"done"} policy=ok state=inner-call step=2 to=after
    checkpoint checkpoint=id-4 state=after step=3
    state-start kind=run machine=outer state=after step=4
    > 2 after ["after", "hello"] in /base
    state-done exit={"code":0} machine=outer policy=ok state=after step=4 to=END
    run-finished machine=outer status=done
    "#);
}

#[test]
fn a_call_that_halts_fails_its_state() {
    assert_snapshot!(run(&[OUTER, INNER], json!({}), &[Do::Exit(0, 0, "1.2\n"), Do::Exit(1, 5, "")]), @r#"
    run-start entry=before machine=outer
    checkpoint checkpoint=id-1 state=before step=0
    state-start kind=run machine=outer state=before step=1
    > 0 before sh "before" in /base
    state-done exit={"code":0} machine=outer output=1.2 policy=ok state=before step=1 to=inner-call
    checkpoint checkpoint=id-2 state=inner-call step=1
    state-start kind=call machine=outer state=inner-call step=2
      run-start entry=work machine=inner
    checkpoint checkpoint=id-3 state=work step=2
      state-start kind=run machine=inner state=work step=3
    > 1 work ["work", "1.2"] in /base
      state-done exit={"code":5} machine=inner policy=fail state=work step=3
      run-finished at=work detail=exit code 5 error=gate-failed machine=inner status=halt
    state-done machine=outer output={"at":"work","ctx":{"word":""},"error":"gate-failed","status":"halt"} policy=fail state=inner-call step=2
    run-finished at=inner-call detail=playbook `inner` halted at `work`: gate-failed: exit code 5 error=call-failed machine=outer status=halt
    "#);
}

#[test]
fn a_call_that_cannot_begin_fails_its_state() {
    assert_snapshot!(run(&[OUTER], json!({}), &[Do::Exit(0, 0, "1.2\n")]), @r#"
    run-start entry=before machine=outer
    checkpoint checkpoint=id-1 state=before step=0
    state-start kind=run machine=outer state=before step=1
    > 0 before sh "before" in /base
    state-done exit={"code":0} machine=outer output=1.2 policy=ok state=before step=1 to=inner-call
    checkpoint checkpoint=id-2 state=inner-call step=1
    state-start kind=call machine=outer state=inner-call step=2
    state-done machine=outer policy=fail state=inner-call step=2
    run-finished at=inner-call detail=there is no playbook `inner` error=call-failed machine=outer status=halt
    "#);
    let wrong = INNER.replace("type: string", "type: integer");
    assert_snapshot!(run(&[OUTER, &wrong], json!({}), &[Do::Exit(0, 0, "1.2\n")]), @r#"
    run-start entry=before machine=outer
    checkpoint checkpoint=id-1 state=before step=0
    state-start kind=run machine=outer state=before step=1
    > 0 before sh "before" in /base
    state-done exit={"code":0} machine=outer output=1.2 policy=ok state=before step=1 to=inner-call
    checkpoint checkpoint=id-2 state=inner-call step=1
    state-start kind=call machine=outer state=inner-call step=2
    state-done machine=outer policy=fail state=inner-call step=2
    run-finished at=inner-call detail=input `v` must be a whole number, not a string error=call-failed machine=outer status=halt
    "#);
}

#[test]
fn calls_fan_out_and_cannot_wait_for_anyone() {
    let top = "
playbook: top
states:
  each:
    call: part
    with: { n: '{{ item }}' }
    over: [1, 2]
    output: parts
    gates: [{ when: 'branches[0].output.ctx.said == \"1\"', then: ok }]
";
    let part = "
playbook: part
inputs: { n: { type: integer } }
states:
  work:
    exec: [work, '{{ inputs.n }}']
    output: said
    gates: [{ when: exit.code == 0, then: ok, to: END }, { when: otherwise, escalate: true }]
  agree: { approve: 'Go on with {{ inputs.n }}?' }
";
    assert_snapshot!(run(&[top, part], json!({}), &[Do::Exit(1, 1, "2"), Do::Exit(0, 0, "1")]), @r#"
    run-start entry=each machine=top
    checkpoint checkpoint=id-1 state=each step=0
    state-start kind=call machine=top state=each step=1
    branch-start index=0 item=1 machine=top state=each
      run-start entry=work machine=part
      state-start kind=run machine=part state=work step=2
    > 0 work[0] ["work", "1"] in /base
    branch-start index=1 item=2 machine=top state=each
      run-start entry=work machine=part
      state-start kind=run machine=part state=work step=3
    > 1 work[1] ["work", "2"] in /base
      state-done exit={"code":1} gate=otherwise machine=part output=2 policy=escalate state=work step=3 to=agree
      state-start kind=approve machine=part state=agree step=4
      state-done machine=part policy=fail state=agree step=4
      run-finished at=agree detail=state `agree` waits for someone, which a branch of a fan-out cannot do error=call-failed machine=part status=halt
    branch-done exit={"code":1} index=1 machine=top state=each
      state-done exit={"code":0} gate=exit.code == 0 machine=part output=1 policy=ok state=work step=2 to=END
      run-finished machine=part status=done
    branch-done exit={"code":0} index=0 machine=top state=each
    state-done branches=2 gate=branches[0].output.ctx.said == "1" machine=top output=[{"ctx":{"said":"1"},"status":"done"},{"at":"agree","ctx":{"said":"2"},"error":"call-failed","status":"halt"}] policy=ok state=each step=1 to=END
    run-finished machine=top status=done
    "#);
}

#[test]
fn a_playbook_that_calls_itself_ends() {
    let source = "
playbook: me
states:
  again: { call: me }
";
    let text = run(&[source], json!({}), &[]);
    assert!(text.contains("calls go deeper than 16"), "{text}");
    assert!(text.lines().last().unwrap().starts_with("run-finished at=again"), "{text}");
}
