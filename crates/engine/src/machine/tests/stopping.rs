//! Ending a run from outside.

use insta::assert_snapshot;
use serde_json::json;
use taffrail_mcp_core::Exit;

use super::{
    super::{Fact, ResumeData, Stop},
    sim::{Do, Sim, run},
};

const OUTER: &str = "
playbook: outer
states:
  each: { call: inner, over: [1, 2, 3] }
";
const INNER: &str = "
playbook: inner
states:
  work: { run: work, sample: 2 }
";

fn term(task: u64) -> Do {
    Do::Ends(task, Exit::Signal("SIGTERM".to_owned()))
}

#[test]
fn a_cancel_closes_everything_from_the_inside() {
    let script = [Do::Exit(0, 0, ""), Do::Stop(Stop::Cancel), Do::Stop(Stop::Shutdown), term(1), term(2), term(3)];
    assert_snapshot!(run(&[OUTER, INNER], json!({}), &script), @r#"
    run-start entry=each machine=outer
    checkpoint checkpoint=id-1 state=each step=0
    state-start kind=call machine=outer state=each step=1
    branch-start index=0 item=1 machine=outer state=each
      run-start entry=work machine=inner
      state-start kind=run machine=inner state=work step=2
    branch-start index=1 item=2 machine=outer state=each
      run-start entry=work machine=inner
      branch-start index=0 machine=inner state=work
    > 0 work[0] sh "work" in /base INDEX=0
      state-start kind=run machine=inner state=work step=3
      branch-start index=1 machine=inner state=work
    > 1 work[1] sh "work" in /base INDEX=1
      branch-start index=0 machine=inner state=work
    > 2 work[0] sh "work" in /base INDEX=0
      branch-start index=1 machine=inner state=work
    > 3 work[1] sh "work" in /base INDEX=1
      branch-done exit={"code":0} index=0 machine=inner state=work
    > end tasks
      branch-done exit={"signal":"SIGTERM"} index=1 machine=inner state=work
      branch-done exit={"signal":"SIGTERM"} index=0 machine=inner state=work
      branch-done exit={"signal":"SIGTERM"} index=1 machine=inner state=work
      state-done branches=2 machine=inner policy=cancelled state=work step=3
      run-finished at=work error=cancelled machine=inner status=cancelled
    branch-done exit={"code":1} index=1 machine=outer state=each
      state-done branches=2 machine=inner policy=cancelled state=work step=2
      run-finished at=work error=cancelled machine=inner status=cancelled
    branch-done exit={"code":1} index=0 machine=outer state=each
    state-done branches=3 machine=outer policy=cancelled state=each step=1
    run-finished at=each error=cancelled machine=outer status=cancelled
    "#);
}

#[test]
fn a_shutdown_leaves_the_state_to_a_resume() {
    let script = [Do::Stop(Stop::Shutdown), term(0), term(1), Do::Again, Do::Exit(0, 0, ""), Do::Exit(1, 0, "")];
    assert_snapshot!(run(&[INNER], json!({}), &script), @r#"
    run-start entry=work machine=inner
    checkpoint checkpoint=id-1 state=work step=0
    state-start kind=run machine=inner state=work step=1
    branch-start index=0 machine=inner state=work
    > 0 work[0] sh "work" in /base INDEX=0
    branch-start index=1 machine=inner state=work
    > 1 work[1] sh "work" in /base INDEX=1
    > end tasks
    run-finished at=work error=shutdown machine=inner status=interrupted
    ---
    run-start entry=work machine=inner resumed=true
    checkpoint checkpoint=id-2 state=work step=0
    state-start kind=run machine=inner state=work step=1
    branch-start index=0 machine=inner state=work
    > 0 work[0] sh "work" in /base INDEX=0
    branch-start index=1 machine=inner state=work
    > 1 work[1] sh "work" in /base INDEX=1
    branch-done exit={"code":0} index=0 machine=inner state=work
    branch-done exit={"code":0} index=1 machine=inner state=work
    state-done branches=2 machine=inner output=["",""] policy=ok state=work step=1 to=END
    run-finished machine=inner status=done
    "#);
}

#[test]
fn facts_after_the_end_are_ignored() {
    let script = [Do::Stop(Stop::Cancel), term(0), term(1), term(0), Do::Stop(Stop::Cancel), Do::Wall(9)];
    let text = run(&[INNER], json!({}), &script);
    assert_eq!(text.lines().filter(|line| line.starts_with("run-finished")).count(), 1, "{text}");
    assert!(text.ends_with("run-finished at=work error=cancelled machine=inner status=cancelled"), "{text}");
}

#[test]
fn a_resume_that_is_stopped_at_once_closes_what_was_open() {
    let mut sim = Sim::start(&[INNER], json!({}));
    [Do::Stop(Stop::Shutdown), term(0), term(1)].iter().for_each(|what| sim.act(what));
    let data = ResumeData::read(&sim.checkpoints()[0], &sim.checkpoints()[0]).unwrap();
    let mut machine = sim.resumed(data, None).unwrap();
    machine.handle(Fact::Stop(Stop::Cancel));
    sim.machine = machine;
    (sim.ended, sim.lines) = (None, Vec::new());
    sim.settle();
    assert_snapshot!(sim.lines.join("\n"), @r#"
    run-start entry=work machine=inner resumed=true
    state-done machine=inner policy=cancelled state=work step=1
    run-finished at=work error=cancelled machine=inner status=cancelled
    "#);
}
