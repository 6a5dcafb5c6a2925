//! Approvals and questions, and the runs that wait for them.

use insta::assert_snapshot;
use serde_json::{Value, json};
use taffrail_mcp_core::{Decision, Usage};

use super::{
    super::{ResumeData, ResumeError},
    sim::{Do, Sim, line, run},
};

const RELEASE: &str = "
playbook: release
inputs: { version: { type: string, default: '1' } }
states:
  build: { run: build, output: built }
  agree:
    approve: 'Deploy {{ inputs.version }} ({{ ctx.built }})?'
    gates:
      - { when: approval.decision == \"approve\", then: ok, to: region }
      - { when: otherwise, then: fail }
  region:
    ask: Which region?
    schema: { type: object, properties: { region: { type: string, enum: [eu, us] } }, required: [region] }
    output: where
    gates: [{ when: 'answer.region == \"eu\"', then: ok }]
  deploy: { exec: [deploy, '{{ ctx.where.region }}'] }
";

const YES: Do = Do::Decide(Decision::Approve, None);

#[test]
fn a_run_waits_and_goes_on() {
    let answer = Do::Decide(Decision::Approve, Some(json!({ "region": "eu" })));
    let script = [Do::Exit(0, 0, "ok"), YES, answer, Do::Exit(0, 0, "")];
    assert_snapshot!(run(&[RELEASE], json!({}), &script), @r#"
    run-start entry=build machine=release
    checkpoint checkpoint=id-1 state=build step=0
    state-start kind=run machine=release state=build step=1
    > 0 build sh "build" in /base
    state-done exit={"code":0} machine=release output=ok policy=ok state=build step=1 to=agree
    checkpoint checkpoint=id-3 state=agree step=1
    state-start kind=approve machine=release state=agree step=2
    approval-requested approval=id-2 by=human message=Deploy 1 (ok)? state=agree
    run-finished at=agree machine=release status=suspended
    ---
    run-start entry=agree machine=release resumed=true
    state-done gate=approval.decision == "approve" machine=release output={"decision":"approve"} policy=ok state=agree step=2 to=region
    checkpoint checkpoint=id-5 state=region step=2
    state-start kind=ask machine=release state=region step=3
    approval-requested approval=id-4 by=agent message=Which region? schema={"properties":{"region":{"enum":["eu","us"],"type":"string"}},"required":["region"],"type":"object"} state=region
    run-finished at=region machine=release status=suspended
    ---
    run-start entry=region machine=release resumed=true
    state-done gate=answer.region == "eu" machine=release output={"region":"eu"} policy=ok state=region step=3 to=deploy
    checkpoint checkpoint=id-6 state=deploy step=3
    state-start kind=run machine=release state=deploy step=4
    > 0 deploy ["deploy", "eu"] in /base
    state-done exit={"code":0} machine=release policy=ok state=deploy step=4 to=END
    run-finished machine=release status=done
    "#);
}

#[test]
fn a_rejection_is_for_the_gates() {
    assert_snapshot!(run(&[RELEASE], json!({}), &[Do::Exit(0, 0, ""), Do::Decide(Decision::Reject, None)]), @r#"
    run-start entry=build machine=release
    checkpoint checkpoint=id-1 state=build step=0
    state-start kind=run machine=release state=build step=1
    > 0 build sh "build" in /base
    state-done exit={"code":0} machine=release policy=ok state=build step=1 to=agree
    checkpoint checkpoint=id-3 state=agree step=1
    state-start kind=approve machine=release state=agree step=2
    approval-requested approval=id-2 by=human message=Deploy 1 ()? state=agree
    run-finished at=agree machine=release status=suspended
    ---
    run-start entry=agree machine=release resumed=true
    state-done gate=otherwise machine=release output={"decision":"reject"} policy=fail state=agree step=2
    run-finished at=agree detail=failed at the gate `otherwise`: it was rejected error=approval-rejected machine=release status=halt
    "#);
    let plain = "
playbook: plain
states:
  agree: { approve: Really?, by: agent }
";
    assert_snapshot!(run(&[plain], json!({}), &[Do::Decide(Decision::Reject, None)]), @r#"
    run-start entry=agree machine=plain
    checkpoint checkpoint=id-2 state=agree step=0
    state-start kind=approve machine=plain state=agree step=1
    approval-requested approval=id-1 by=agent message=Really? state=agree
    run-finished at=agree machine=plain status=suspended
    ---
    run-start entry=agree machine=plain resumed=true
    state-done machine=plain output={"decision":"reject"} policy=fail state=agree step=1
    run-finished at=agree detail=it was rejected error=approval-rejected machine=plain status=halt
    "#);
}

#[test]
fn a_resume_without_a_decision_asks_again_under_the_same_id() {
    assert_snapshot!(run(&[RELEASE], json!({}), &[Do::Exit(0, 0, "ok"), Do::Again, YES]), @r#"
    run-start entry=build machine=release
    checkpoint checkpoint=id-1 state=build step=0
    state-start kind=run machine=release state=build step=1
    > 0 build sh "build" in /base
    state-done exit={"code":0} machine=release output=ok policy=ok state=build step=1 to=agree
    checkpoint checkpoint=id-3 state=agree step=1
    state-start kind=approve machine=release state=agree step=2
    approval-requested approval=id-2 by=human message=Deploy 1 (ok)? state=agree
    run-finished at=agree machine=release status=suspended
    ---
    run-start entry=agree machine=release resumed=true
    checkpoint checkpoint=id-4 state=agree step=1
    state-start kind=approve machine=release state=agree step=2
    approval-requested approval=id-2 by=human message=Deploy 1 (ok)? state=agree
    run-finished at=agree machine=release status=suspended
    ---
    run-start entry=agree machine=release resumed=true
    state-done gate=approval.decision == "approve" machine=release output={"decision":"approve"} policy=ok state=agree step=2 to=region
    checkpoint checkpoint=id-6 state=region step=2
    state-start kind=ask machine=release state=region step=3
    approval-requested approval=id-5 by=agent message=Which region? schema={"properties":{"region":{"enum":["eu","us"],"type":"string"}},"required":["region"],"type":"object"} state=region
    run-finished at=region machine=release status=suspended
    "#);
}

#[test]
fn wrong_decisions_change_nothing() {
    let mut sim = Sim::start(&[RELEASE], json!({}));
    sim.act(&Do::Exit(0, 0, "ok"));
    let events = sim.events.len();
    let right = sim.resolution(Decision::Approve, None);
    let mut other = right.clone();
    other.approval = "id-99".to_owned();
    assert!(matches!(sim.resume(Some(other)), Err(ResumeError::OtherApproval { .. })));
    let mut stale = right.clone();
    stale.hash = "0".repeat(64);
    assert!(matches!(sim.resume(Some(stale)), Err(ResumeError::HashMismatch { .. })));

    // What was built is replaced in the checkpoint: the decision was not about this.
    let checkpoints = sim.checkpoints();
    let mut data = ResumeData::read(&checkpoints[0], checkpoints.last().unwrap()).unwrap();
    data.frames[0].ctx.insert("built".to_owned(), json!("something else"));
    assert!(matches!(sim.resume_from(data, Some(right.clone())), Err(ResumeError::HashMismatch { .. })));
    assert_eq!(sim.events.len(), events);

    sim.resume(Some(right)).unwrap();
    for (content, problem) in [
        (None, "null is not of type \"object\""),
        (Some(json!({})), "\"region\" is a required property"),
        (Some(json!({ "region": "mars" })), "/region: "),
    ] {
        let bad = sim.resolution(Decision::Approve, content);
        let error = sim.resume(Some(bad)).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn a_decision_without_a_question_is_refused() {
    let mut sim = Sim::start(&[RELEASE], json!({}));
    let resolution = super::super::Resolution {
        approval: String::new(),
        hash: String::new(),
        decision: Decision::Approve,
        content: None,
    };
    assert!(matches!(sim.resume(Some(resolution)), Err(ResumeError::NotWaiting)));
}

#[test]
fn a_called_playbook_may_wait() {
    let outer = "
playbook: outer
states:
  part: { call: inner }
  after: { run: after }
";
    let inner = "
playbook: inner
states:
  agree: { approve: Really? }
";
    assert_snapshot!(run(&[outer, inner], json!({}), &[YES, Do::Exit(0, 0, "")]), @r#"
    run-start entry=part machine=outer
    checkpoint checkpoint=id-1 state=part step=0
    state-start kind=call machine=outer state=part step=1
      run-start entry=agree machine=inner
    checkpoint checkpoint=id-3 state=agree step=1
      state-start kind=approve machine=inner state=agree step=2
    approval-requested approval=id-2 by=human message=Really? state=agree
      run-finished at=agree machine=inner status=suspended
    run-finished at=part machine=outer status=suspended
    ---
    run-start entry=part machine=outer resumed=true
      run-start entry=agree machine=inner resumed=true
      state-done machine=inner output={"decision":"approve"} policy=ok state=agree step=2 to=END
      run-finished machine=inner status=done
    state-done machine=outer output={"ctx":{},"status":"done"} policy=ok state=part step=1 to=after
    checkpoint checkpoint=id-4 state=after step=2
    state-start kind=run machine=outer state=after step=3
    > 0 after sh "after" in /base
    state-done exit={"code":0} machine=outer policy=ok state=after step=3 to=END
    run-finished machine=outer status=done
    "#);
}

#[test]
fn secrets_are_never_stored_and_asked_for_again() {
    let outer = "
playbook: outer
inputs:
  token: { type: string, secret: true, required: true }
  other: { type: string, secret: true }
states:
  part: { call: inner, with: { plain: '{{ inputs.token }}' } }
";
    let inner = "
playbook: inner
inputs: { plain: { type: string } }
states:
  agree: { approve: Really? }
  use: { exec: [use], env: { T: '{{ inputs.plain }}' } }
";
    let mut sim = Sim::start(&[outer, inner], json!({ "token": "hush-hush" }));
    let stored = serde_json::to_string(&sim.events).unwrap();
    assert!(!stored.contains("hush"), "{stored}");

    let yes = sim.resolution(Decision::Approve, None);
    let given = std::mem::take(&mut sim.inputs);
    let error = sim.resume(Some(yes.clone())).unwrap_err();
    assert!(matches!(&error, ResumeError::SecretsNeeded { names } if names == &["token"]), "{error}");
    sim.inputs = given;
    sim.resume(Some(yes)).unwrap();
    assert!(sim.lines.last().unwrap().ends_with("T=hush-hush"), "{:?}", sim.lines);
}

#[test]
fn inputs_cannot_change() {
    let mut sim = Sim::start(&[RELEASE], json!({ "version": "2" }));
    sim.inputs.insert("version".to_owned(), json!("3"));
    assert!(matches!(sim.resume(None), Err(ResumeError::InputFixed { name }) if name == "version"));
}

#[test]
fn newer_and_broken_checkpoints_are_refused() {
    let sim = Sim::start(&[RELEASE], json!({}));
    let good = sim.checkpoints().remove(0);
    let read = |change: &dyn Fn(&mut Value)| {
        let mut value = good.clone();
        change(&mut value);
        ResumeData::read(&value, &value).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(read(&|_| ()), Ok(()));
    assert_eq!(read(&|value| value["unknown"] = json!(1)), Ok(()), "additions are allowed");
    let newer = read(&|value| *value = json!({ "version": 2, "shape": "new" })).unwrap_err();
    assert_eq!(newer, "the checkpoint has version 2, and this program reads up to 1; resume it with a newer one");
    assert_eq!(read(&|value| value["frames"] = json!([])).unwrap_err(), "the checkpoint is empty");
    assert_eq!(read(&|value| value["frames"] = json!(3)).unwrap_err(), "the checkpoint cannot be read");
    let no_origin = read(&|value| drop(value.as_object_mut().unwrap().remove("origin"))).unwrap_err();
    assert!(no_origin.starts_with("the run's first checkpoint is missing"), "{no_origin}");
}

#[test]
fn checkpoints_say_what_a_resume_needs() {
    let mut sim = Sim::start(&[RELEASE], json!({ "version": "2" }));
    sim.act(&Do::Exit(0, 0, "ok"));
    let mut checkpoints = sim.checkpoints();
    assert_eq!(checkpoints[0]["origin"]["sources"]["release"], RELEASE);
    checkpoints[0]["origin"]["sources"]["release"] = json!("...");
    // The hash is made anew at a resume, perhaps by another version: one that makes it otherwise voids what waits.
    assert_snapshot!(checkpoints[0], @r#"{"frames":[{"attempts":{"build":1},"playbook":"release","state":"build"}],"origin":{"budget":{"output_bytes":1073741824,"steps":200,"wall_ms":86400000},"cwd":"/base","inputs":{"version":"2"},"sources":{"release":"..."}},"steps":0,"usage":{"clipped_bytes":0,"clipped_lines":0,"log_bytes":0,"log_lines":0,"steps":0,"wall_ms":0},"version":1}"#);
    assert_snapshot!(checkpoints[1], @r#"{"frames":[{"attempts":{"agree":1,"build":1},"ctx":{"built":"ok"},"playbook":"release","state":"agree"}],"pending":{"approval":"id-2","hash":"cb0731f02e94a825a04a10b40dffe67093c521eb2e5bd9ffc68962b9f3e89942","message":"Deploy 2 (ok)?"},"steps":1,"usage":{"clipped_bytes":0,"clipped_lines":0,"log_bytes":0,"log_lines":0,"steps":1,"wall_ms":0},"version":1}"#);
}

#[test]
fn a_run_that_waits_can_be_cancelled() {
    let outer = "
playbook: outer
inputs: { key: { type: string, secret: true } }
states:
  part: { call: inner }
";
    let inner = "
playbook: inner
states:
  agree: { approve: Really? }
";
    let sim = Sim::start(&[outer, inner], json!({ "key": "k" }));
    let checkpoints = sim.checkpoints();
    let data = ResumeData::read(&checkpoints[0], checkpoints.last().unwrap()).unwrap();
    let lines: Vec<_> = data.cancel(Usage::default()).iter().map(line).collect();
    assert_snapshot!(lines.join("\n"), @r#"
      state-done machine=inner policy=cancelled state=agree step=2
      run-finished at=agree error=cancelled machine=inner status=cancelled
    state-done machine=outer policy=cancelled state=part step=1
    run-finished at=part error=cancelled machine=outer status=cancelled
    "#);
}
