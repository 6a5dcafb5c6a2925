//! Starting and waiting.

use serde_json::{Value, json};
use taffrail_mcp_core::{RunId, RunStatus, Seq};
use taffrail_relay::Leases as _;
use taffrail_runs::{RunsError, Start, Until};

use crate::ground::{Ground, SOON, begin, check, output, playbook, records, wait};

const HELLO: &str = "playbook: hello
inputs: { name: { type: string, default: you } }
states:
  greet: { exec: [echo, 'hello {{ inputs.name }}'] }
  after: { run: echo after }
";

const STEPS: &str = "playbook: steps
states:
  one: { run: 'while [ ! -e go1 ]; do sleep 0.01; done; echo said' }
  two: { run: 'while [ ! -e go2 ]; do sleep 0.01; done' }
";

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_started_waited_for_and_read() {
    for ground in Ground::each(&[HELLO]) {
        let service = ground.service();
        let started = service.start(playbook("hello", json!({ "name": "Ann" }))).await.unwrap();
        assert!(!started.existing);
        let run = started.run;
        let fold = wait(&service, &run, Until::Ended).await;
        assert_eq!((fold.status, fold.usage.steps), (RunStatus::Done, 2));
        assert_eq!(output(&records(&service, &run).await), ["hello Ann", "after"]);
        let state = ["checkpoint", "state-start", "log", "state-done"];
        assert_eq!(check(&service, &run).await, [&["run-start"], &state[..], &state[..], &["run-finished"]].concat());
        service.finish(&run, SOON).await;
        let spooled = std::fs::read_to_string(service.spools().path(&run)).unwrap();
        let lines: Vec<_> = spooled.lines().skip(1).map(str::to_owned).collect();
        let mut bytes = Vec::new();
        records(&service, &run).await.iter().for_each(|record| record.encode(&mut bytes));
        assert_eq!(lines, String::from_utf8(bytes).unwrap().lines().collect::<Vec<_>>());
        // Nothing says that it has a host.
        let locks = std::fs::read_dir(ground.layout().live()).map_or(0, Iterator::count);
        assert_eq!(locks, 0);
        service.close().await;
        if let Some(leases) = &ground.leases {
            assert_eq!(leases.holder(format!("run:{run}")).await.unwrap(), None);
            assert_eq!(leases.holders().await.unwrap(), []);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_starts_one_run_however_often_and_wherever_it_is_used() {
    for ground in Ground::each(&[HELLO]) {
        let services = [ground.service(), ground.service()];
        let request = |key: &str, name: &str| Start {
            idempotency_key: Some(key.into()),
            ..playbook("hello", json!({ "name": name }))
        };
        let starts = (0..8).map(|i| {
            let (service, request) = (services[i % 2].clone(), request("k", "Ann"));
            tokio::spawn(async move { service.start(request).await.unwrap() })
        });
        let mut started = Vec::new();
        for start in starts.collect::<Vec<_>>() {
            started.push(start.await.unwrap());
        }
        assert_eq!(started.iter().filter(|started| !started.existing).count(), 1);
        assert!(started.iter().all(|other| other.run == started[0].run));
        assert_eq!(services[0].runs(Default::default()).await.unwrap().len(), 1);
        wait(&services[1], &started[0].run, Until::Ended).await;

        let reused = services[0].start(request("k", "Bob")).await;
        assert!(matches!(reused, Err(RunsError::KeyReused { .. })), "{reused:?}");
        for key in [String::new(), "k".repeat(257)] {
            let refused = services[0].start(request(&key, "Ann")).await;
            assert!(matches!(refused, Err(RunsError::KeyLength { .. })), "{refused:?}");
        }
        // The answer is about the run, whatever became of its playbook.
        std::fs::remove_file(ground.path().join("playbooks/hello.yaml")).unwrap();
        assert!(services[0].start(request("k", "Ann")).await.unwrap().existing);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_given_to_one_run() {
    for ground in Ground::each(&[HELLO]) {
        let services = [ground.service(), ground.service()];
        let named = || Start { run: Some(RunId::new("mine").unwrap()), ..playbook("hello", Value::Null) };
        let (one, two) = tokio::join!(services[0].start(named()), services[1].start(named()));
        assert_eq!(u32::from(one.is_ok()) + u32::from(two.is_ok()), 1, "{one:?} {two:?}");
        wait(&services[0], &RunId::new("mine").unwrap(), Until::Ended).await;
        let refused = services[1].start(named()).await;
        assert!(matches!(refused, Err(RunsError::WrongState { .. })), "{refused:?}");
        assert_eq!(check(&services[0], &RunId::new("mine").unwrap()).await.len(), 10);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_wait_ends_with_what_it_waits_for() {
    for ground in Ground::each(&[STEPS]) {
        let (host, other) = (ground.service(), ground.service());
        let run = begin(&host, "steps").await;
        let fold = wait(&other, &run, Until::ChangedAfter(Seq(1))).await;
        assert_eq!(fold.state.as_deref(), Some("one"));
        let pending = [
            tokio::spawn(wait_for(other.clone(), run.clone(), Until::Settled)),
            tokio::spawn(wait_for(other.clone(), run.clone(), Until::ChangedAfter(fold.changed))),
            tokio::spawn(wait_for(other.clone(), run.clone(), Until::RecordAfter(fold.last))),
        ];
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        assert!(pending.iter().all(|wait| !wait.is_finished()));
        std::fs::write(ground.path().join("go1"), "").unwrap();
        let [settled, changed, record] = pending;
        assert!(record.await.unwrap() > fold.last);
        assert!(changed.await.unwrap() > fold.changed);
        assert!(!settled.is_finished());
        // A wait that is given up changes nothing.
        settled.abort();
        std::fs::write(ground.path().join("go2"), "").unwrap();
        let fold = wait(&other, &run, Until::Ended).await;
        assert_eq!(fold.status, RunStatus::Done);
        for until in
            [Until::Settled, Until::Ended, Until::ChangedAfter(Seq(u64::MAX)), Until::RecordAfter(Seq(u64::MAX))]
        {
            assert_eq!(wait(&host, &run, until).await, fold, "at once for a run that is over");
        }
        let unknown = host.wait(&RunId::new("unknown").unwrap(), Until::Ended).await;
        assert!(matches!(unknown, Err(RunsError::NoRun { .. })));
    }
}

async fn wait_for(service: taffrail_runs::Service, run: RunId, until: Until) -> Seq {
    wait(&service, &run, until).await.last
}
