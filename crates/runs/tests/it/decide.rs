//! Gates: who may decide, once, about what was seen.

use serde_json::{Value, json};
use taffrail_mcp_core::{Decision, RunStatus, Seq};
use taffrail_runs::{Approve, RunsError, Until};

use crate::ground::{Ground, approve, begin, check, go_on, output, playbook, records, resume, run_to, wait};

const GATE: &str = "playbook: gate
states:
  before: { run: echo before }
  agree:
    approve: Go on?
    by: human
    gates: [{ when: 'approval.decision == \"approve\"', then: ok, to: after }, { when: otherwise, then: fail }]
  after: { run: echo after }
";

const GATES: &str = "playbook: gates
states:
  a: { approve: A?, by: agent }
  b: { approve: B?, by: agent }
  c: { approve: C?, by: agent }
  d: { approve: D?, by: agent }
";

const ASK: &str = "playbook: ask
inputs: { token: { type: string, required: true, secret: true } }
states:
  region:
    ask: Which region?
    schema: { type: object, properties: { region: { type: string, enum: [eu, us] } }, required: [region] }
    output: where
  deploy: { run: 'echo $WHERE ${#TOKEN}', env: { WHERE: '{{ ctx.where.region }}', TOKEN: '{{ inputs.token }}' } }
";

/// The record that says that a run rests comes a moment before its host has let go of it.
#[tokio::test(flavor = "multi_thread")]
async fn who_resumes_at_once_is_not_turned_away() {
    for ground in Ground::each(&[GATES]) {
        let (host, other) = (ground.service(), ground.service());
        for round in 0..5 {
            let mut fold = run_to(&host, "gates", RunStatus::Suspended).await;
            for i in 0..4 {
                let service = if (round + i) % 2 == 0 { &other } else { &host };
                fold = go_on(service, &fold.run, json!({ "decision": "approve" })).await.unwrap();
            }
            assert_eq!(fold.status, RunStatus::Done);
            check(&host, &fold.run).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_decides_once_about_what_was_seen() {
    for ground in Ground::each(&[GATE]) {
        let service = ground.service();
        let fold = run_to(&service, "gate", RunStatus::Suspended).await;
        let run = &fold.run;
        let before = check(&service, run).await;

        let agent = service.resume(resume(run, json!({ "decision": "approve" }))).await;
        assert!(agent.as_ref().is_err_and(RunsError::is_denied), "{agent:?}");
        let yes = || approve(run, Decision::Approve);
        let moved = service.approve(Approve { hash: Some("0".repeat(64)), ..yes() }).await;
        assert!(matches!(moved, Err(RunsError::HashMoved { .. })), "{moved:?}");
        for seen in [Seq(1), fold.last.next()] {
            let unseen = service.approve(Approve { seen_seq: Some(seen), ..yes() }).await;
            assert!(matches!(unseen, Err(RunsError::NotSeen { .. })), "{unseen:?}");
        }
        let other = service.approve(Approve { approval: Some("other".into()), ..yes() }).await;
        assert!(matches!(other, Err(RunsError::NotWaitingFor { .. })), "{other:?}");
        assert_eq!(check(&service, run).await, before, "nothing of all that is in the log");

        let pending = fold.approval.clone().unwrap();
        let exact = Approve {
            approval: Some(pending.approval.clone()),
            hash: Some(pending.hash.clone()),
            seen_seq: Some(fold.last),
            ..yes()
        };
        let decided = service.approve(exact.clone()).await.unwrap();
        assert_eq!(decided.status, RunStatus::Suspended, "deciding is not going on");
        for again in [exact, approve(run, Decision::Reject)] {
            let again = service.approve(again).await;
            assert!(matches!(again, Err(RunsError::Decided { .. })), "{again:?}");
        }
        let fold = go_on(&service, run, Value::Null).await.unwrap();
        assert_eq!(fold.status, RunStatus::Done);
        assert_eq!(output(&records(&service, run).await), ["before", "after"]);
        assert_eq!(check(&service, run).await.iter().filter(|kind| *kind == "approval-resolved").count(), 1);
        let late = service.approve(yes()).await;
        assert!(matches!(late, Err(RunsError::WrongState { .. })), "{late:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_is_a_decision_too() {
    for ground in Ground::each(&[GATE]) {
        let service = ground.service();
        let fold = run_to(&service, "gate", RunStatus::Suspended).await;
        service.approve(approve(&fold.run, Decision::Reject)).await.unwrap();
        let fold = go_on(&service, &fold.run, Value::Null).await.unwrap();
        assert_eq!(fold.status, RunStatus::Halt);
        assert_eq!(output(&records(&service, &fold.run).await), ["before"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_decisions_at_once_one_counts() {
    for ground in Ground::each(&[GATE]) {
        let services = [ground.service(), ground.service()];
        for _ in 0..5 {
            let fold = run_to(&services[0], "gate", RunStatus::Suspended).await;
            let (yes, no) = tokio::join!(
                services[0].approve(approve(&fold.run, Decision::Approve)),
                services[1].approve(approve(&fold.run, Decision::Reject)),
            );
            assert_eq!(u32::from(yes.is_ok()) + u32::from(no.is_ok()), 1, "{yes:?} {no:?}");
            let lost = if yes.is_ok() { no } else { yes.clone() };
            assert!(matches!(lost, Err(RunsError::Decided { .. })), "{lost:?}");
            let fold = go_on(&services[1], &fold.run, Value::Null).await.unwrap();
            assert_eq!(fold.status, if yes.is_ok() { RunStatus::Done } else { RunStatus::Halt });
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_answer_is_refused_and_secrets_are_asked_for_again() {
    let secret = "hunter2-hunter2";
    for ground in Ground::each(&[ASK]) {
        let service = ground.service();
        let run = service.start(playbook("ask", json!({ "token": secret }))).await.unwrap().run;
        let fold = wait(&service, &run, Until::Settled).await;
        let before = check(&service, &run).await;
        let refused = [
            json!({ "region": "moon", "token": secret }),
            json!({ "region": "eu" }),
            json!({ "token": secret }),
            Value::Null,
        ];
        for inputs in refused {
            let error = service.resume(resume(&run, inputs)).await.unwrap_err();
            assert!(matches!(error, RunsError::Resume(_) | RunsError::Undecided { .. }), "{error:?}");
            let wait = service.fold(&run).await.unwrap();
            assert_eq!(wait, fold, "still suspended");
        }
        assert_eq!(check(&service, &run).await, before);
        let fold = go_on(&service, &run, json!({ "region": "eu", "token": secret })).await.unwrap();
        assert_eq!(fold.status, RunStatus::Done, "{fold:?}");
        let records = records(&service, &run).await;
        assert_eq!(output(&records), [format!("eu {}", secret.len())]);
        assert!(!format!("{records:?}").contains(secret));
        service.finish(&run, crate::ground::SOON).await;
        service.close().await;
        drop(service);
        assert_eq!(files_with(ground.path(), secret.as_bytes()), Vec::<std::path::PathBuf>::new());
    }
}

/// Files below a folder that hold these bytes.
fn files_with(folder: &std::path::Path, needle: &[u8]) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_with(&entry.path(), needle));
        } else {
            // What the last connection leaves as it closes may be gone by now.
            let bytes = match std::fs::read(entry.path()) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                bytes => bytes.unwrap(),
            };
            if bytes.windows(needle.len()).any(|window| window == needle) {
                found.push(entry.path());
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_is_used_once() {
    for ground in Ground::each(&[GATES]) {
        let service = ground.service();
        let fold = run_to(&service, "gates", RunStatus::Suspended).await;
        let (checkpoint, _) = fold.checkpoint.unwrap();
        let by_checkpoint = taffrail_runs::Resume {
            run: None,
            checkpoint: Some(checkpoint),
            ..resume(&fold.run, json!({ "decision": "approve" }))
        };
        service.resume(by_checkpoint.clone()).await.unwrap();
        wait(&service, &fold.run, Until::Settled).await;
        let again = service.resume(by_checkpoint).await;
        assert!(matches!(again, Err(RunsError::CheckpointUsed { .. })), "{again:?}");
        let _ = begin(&service, "gates").await;
    }
}
