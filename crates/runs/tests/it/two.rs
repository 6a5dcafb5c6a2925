//! Two processes on one data directory.

use std::time::Duration;

use serde_json::{Value, json};
use taffrail_mcp_core::{CancelRequested, Event, RunId, RunStart, RunStatus, Start};
use taffrail_relay::Delivery;
use taffrail_runs::{Cancel, RunsError, Service, Until};

use crate::ground::{Ground, SOON, begin, check, go_on, output, records, resume, run_to, wait};

const GATE: &str = "playbook: gate
states:
  agree: { approve: Go on?, by: agent }
  after: { run: echo after }
";

const NAP: &str = "playbook: nap
states:
  first: { run: echo first }
  nap: { run: 'echo up; [ -e go ] || sleep 600' }
";

fn cancel(run: &RunId) -> Cancel {
    Cancel { run: run.clone(), reason: Some("enough".into()), actor: "me".into(), kill: false }
}

/// Waits for a line of output.
async fn said(service: &Service, run: &RunId, line: &str) {
    let seen = async {
        while !output(&records(service, run).await).iter().any(|text| text == line) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, seen).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_resumes_at_once_one_goes_on() {
    for ground in Ground::each(&[GATE]) {
        let services = [ground.service(), ground.service()];
        for _ in 0..10 {
            let fold = run_to(&services[0], "gate", RunStatus::Suspended).await;
            let request = || resume(&fold.run, json!({ "decision": "approve" }));
            let (one, two) = tokio::join!(services[0].resume(request()), services[1].resume(request()));
            assert_eq!(u32::from(one.is_ok()) + u32::from(two.is_ok()), 1, "{one:?} {two:?}");
            let lost = if one.is_ok() { two } else { one };
            assert!(lost.as_ref().is_err_and(RunsError::is_conflict), "{lost:?}");
            let fold = wait(&services[1], &fold.run, Until::Ended).await;
            assert_eq!(fold.status, RunStatus::Done);
            assert_eq!(output(&records(&services[0], &fold.run).await), ["after"], "it went on once");
            let kinds = check(&services[1], &fold.run).await;
            assert_eq!(kinds.iter().filter(|kind| *kind == "checkpoint-claimed").count(), 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_cancelled_from_elsewhere() {
    for ground in Ground::each(&[NAP]) {
        let (host, other) = (ground.service(), ground.service());
        let run = begin(&host, "nap").await;
        said(&other, &run, "up").await;
        let fold = tokio::time::timeout(SOON, other.cancel(cancel(&run))).await.unwrap().unwrap();
        assert_eq!(fold.status, RunStatus::Cancelled);
        let kinds = check(&other, &run).await;
        assert_eq!(kinds.iter().filter(|kind| *kind == "run-finished").count(), 1);
        assert_eq!(other.cancel(cancel(&run)).await.unwrap(), fold, "a run that is over stays as it is");
        let late = host.resume(resume(&run, Value::Null)).await;
        assert!(matches!(late, Err(RunsError::WrongState { .. })), "{late:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_and_a_resume_of_a_run_that_rests_do_not_both_win() {
    for ground in Ground::each(&[GATE]) {
        let services = [ground.service(), ground.service()];
        for _ in 0..10 {
            let fold = run_to(&services[0], "gate", RunStatus::Suspended).await;
            let request = resume(&fold.run, json!({ "decision": "approve" }));
            let (resumed, cancelled) = tokio::join!(services[0].resume(request), services[1].cancel(cancel(&fold.run)));
            let cancelled = cancelled.unwrap();
            let end = wait(&services[0], &fold.run, Until::Ended).await;
            assert_eq!(end, cancelled);
            if resumed.is_err() {
                assert_eq!(end.status, RunStatus::Cancelled);
            }
            check(&services[1], &fold.run).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_a_host_is_found_by_whoever_looks() {
    for ground in Ground::each(&[NAP]) {
        let service = ground.service();
        let start = || {
            RunStart { machine: "nap".into(), depth: 0, entry: "first".into(), resumed: false, external: false }.into()
        };
        let lost = RunId::new("lost").unwrap();
        service.relay().commit(&lost.clone().into(), &lost, &[start()], None).await.unwrap();
        let given_up = RunId::new("given-up").unwrap();
        let asked = CancelRequested { actor: "me".into(), reason: None, kill: false };
        let events = [start(), Event::from(asked)];
        service.relay().commit(&given_up.clone().into(), &given_up, &events, None).await.unwrap();
        let live = begin(&service, "nap").await;
        said(&service, &live, "up").await;

        let mut recovered = ground.service().recover().await.unwrap().runs;
        recovered.sort();
        assert_eq!(recovered, [given_up.clone(), lost.clone()]);
        let fold = service.fold(&lost).await.unwrap();
        assert_eq!((fold.status, fold.error.unwrap().as_str()), (RunStatus::Interrupted, "process-gone"));
        assert_eq!(service.fold(&given_up).await.unwrap().status, RunStatus::Cancelled);
        assert_eq!(service.fold(&live).await.unwrap().status, RunStatus::Running);
        assert!(service.recover().await.unwrap().runs.is_empty(), "once");
        assert_eq!(check(&service, &lost).await, ["run-start", "run-finished"]);
        let nothing = service.resume(resume(&lost, Value::Null)).await;
        assert!(matches!(nothing, Err(RunsError::NoCheckpoint { .. })), "{nothing:?}");
        service.close().await;
    }
}

/// Many look at the same time: one end is stored.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_a_host_ends_once() {
    for ground in Ground::each(&[]) {
        let services = [ground.service(), ground.service()];
        let run = RunId::new("lost").unwrap();
        let start = RunStart { machine: "m".into(), depth: 0, entry: "s".into(), resumed: false, external: false };
        services[0].relay().commit(&run.clone().into(), &run, &[start.into()], None).await.unwrap();
        let waits = (0..8).map(|i| {
            let (service, run) = (services[i % 2].clone(), run.clone());
            tokio::spawn(async move { wait(&service, &run, Until::Settled).await })
        });
        for wait in waits.collect::<Vec<_>>() {
            assert_eq!(wait.await.unwrap().status, RunStatus::Interrupted);
        }
        assert_eq!(check(&services[0], &run).await, ["run-start", "run-finished"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_closes_leaves_runs_that_others_resume() {
    for ground in Ground::each(&[NAP]) {
        let (host, other) = (ground.service(), ground.service());
        let run = begin(&host, "nap").await;
        said(&other, &run, "up").await;
        tokio::time::timeout(SOON, host.close()).await.unwrap();
        let fold = other.fold(&run).await.unwrap();
        let interrupted = fold.changed;
        assert_eq!((fold.status, fold.error.unwrap().as_str()), (RunStatus::Interrupted, "shutdown"));
        // Its end is no news any more; that it goes on is.
        let mut goes_on = Box::pin(wait(&other, &run, Until::GoesOnAfter(interrupted)));
        tokio::select! {
            biased;
            fold = &mut goes_on => panic!("{fold:?}"),
            fold = wait(&other, &run, Until::ChangedAfter(interrupted)) => assert_eq!(fold.changed, interrupted),
        }
        std::fs::write(ground.path().join("go"), "").unwrap();
        let (fold, went_on) = tokio::join!(go_on(&other, &run, Value::Null), goes_on);
        let fold = fold.unwrap();
        assert!(went_on.changed > interrupted, "{went_on:?}");
        assert_eq!(fold.status, RunStatus::Done, "{fold:?}");
        assert_eq!(output(&records(&other, &run).await), ["first", "up", "up"]);
        check(&other, &run).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_follows_goes_on_through_a_suspension() {
    for ground in Ground::each(&[GATE]) {
        let (host, other, third) = (ground.service(), ground.service(), ground.service());
        let run = begin(&host, "gate").await;
        let mut follower = third.follow(&run, Start::Beginning).await.unwrap();
        wait(&host, &run, Until::Settled).await;
        let follow = async {
            let mut lines = Vec::new();
            while !lines
                .last()
                .is_some_and(|line: &Vec<u8>| String::from_utf8_lossy(line).contains("\"status\":\"done\""))
            {
                let Delivery::Blocks(blocks) = follower.next().await.unwrap() else { panic!("a gap") };
                lines.extend(
                    blocks.iter().flat_map(|block| block.lines().map(|line| line.to_vec()).collect::<Vec<_>>()),
                );
            }
            lines
        };
        let (lines, resumed) =
            tokio::join!(tokio::time::timeout(SOON, follow), go_on(&other, &run, json!({ "decision": "approve" })),);
        assert_eq!(resumed.unwrap().status, RunStatus::Done);
        let mut log = Vec::new();
        records(&other, &run).await.iter().for_each(|record| record.encode(&mut log));
        assert_eq!(lines.unwrap().concat(), log);
    }
}
