//! Runs that live elsewhere.

use std::{num::NonZeroU64, time::Duration};

use serde_json::Value;
use taffrail_mcp_core::{
    Decision, Event, EventBatch, Level, Note, ProducerId, Reason, Record, RunFinished, RunFold, RunId, RunStatus, Seq,
    Timestamp, Usage,
};
use taffrail_relay::{Arrival, ListRuns, Numbered, Receipt, RelayError};
use taffrail_runs::{Cancel, Ingested, RunsError, Service, Start, Until, Work};

use crate::ground::{Ground, SOON, approve, begin, check, records, resume, wait};

const NAP: &str = "playbook: nap
states:
  nap: { run: sleep 600 }
";

/// Short, so that a test can wait for it; long for what happens in between.
const SILENCE: Duration = Duration::from_millis(600);

fn external(name: &str) -> Start {
    Start::new(Work::External { name: name.into() })
}

async fn started(service: &Service) -> RunId {
    service.start(external("build")).await.unwrap().run
}

fn line(text: &str) -> Event {
    let line = format!(r#"{{"type":"log","state":"exec","stream":"stdout","text":"{text}"}}"#);
    Record::parse_event(line.as_bytes()).unwrap().0
}

pub(crate) fn finished(status: RunStatus) -> Event {
    let (error, usage) = (None, Usage::default());
    RunFinished { machine: "build".into(), depth: 0, status, error, at: None, usage, detail: None }.into()
}

fn batch(events: impl IntoIterator<Item = Event>) -> EventBatch {
    let mut batch = EventBatch::new();
    events.into_iter().for_each(|event| batch.push(event));
    batch
}

fn arrival(events: impl IntoIterator<Item = Event>) -> Arrival {
    Arrival { parts: vec![(None, batch(events))], numbered: None }
}

fn numbered(first: u64, events: impl IntoIterator<Item = Event>) -> Arrival {
    let producer = ProducerId::new("worker-1").unwrap();
    Arrival { numbered: Some(Numbered { producer, first: NonZeroU64::new(first).unwrap() }), ..arrival(events) }
}

fn nothing() -> Arrival {
    Arrival::default()
}

fn cancel(run: &RunId) -> Cancel {
    Cancel { run: run.clone(), reason: Some("enough".into()), actor: "me".into(), kill: false }
}

fn is_over(answer: &Result<Ingested, RunsError>) -> bool {
    matches!(answer, Err(RunsError::Relay(RelayError::RunOver { .. })))
}

/// Waits until the run is `interrupted`, which whoever waits finds out.
async fn given_up(service: &Service, run: &RunId) -> RunFold {
    let fold = wait(service, run, Until::Ended).await;
    assert_eq!((fold.status, fold.error.clone()), (RunStatus::Interrupted, Some(Reason::PRODUCER_GONE)));
    fold
}

#[tokio::test(flavor = "multi_thread")]
async fn its_producer_writes_it_from_beginning_to_end() {
    for ground in Ground::each(&[]) {
        let (one, two) = (ground.service(), ground.service());
        let start = || Start { idempotency_key: Some("k".into()), ..external("build") };
        let begun = one.start(start()).await.unwrap();
        let again = two.start(start()).await.unwrap();
        assert_eq!((again.run, again.existing, begun.existing), (begun.run.clone(), true, false));
        let run = begun.run;

        // Through two processes in turn, with a retry at the other one.
        let first = one.ingest(&run, numbered(1, [line("a"), line("b")])).await.unwrap();
        let at = begun.after.0 + 2;
        assert_eq!(first.receipt, Receipt { first: Some(Seq(at)), last: Some(Seq(at + 1)), stored: 2, known: 0 });
        let retried = two.ingest(&run, numbered(1, [line("a"), line("b"), line("c")])).await.unwrap();
        assert_eq!((retried.receipt.stored, retried.receipt.known), (1, 2));
        let hole = one.ingest(&run, numbered(9, [line("z")])).await;
        assert!(matches!(hole, Err(RunsError::Relay(RelayError::Hole { expected: 4, given: 9, .. }))), "{hole:?}");
        two.ingest(&run, numbered(4, [finished(RunStatus::Done)])).await.unwrap();

        let fold = wait(&one, &run, Until::Ended).await;
        assert_eq!((fold.status, fold.external, fold.usage.log_lines), (RunStatus::Done, true, 3));
        assert_eq!(check(&two, &run).await, ["run-start", "log", "log", "log", "run-finished"]);
        for service in [&one, &two] {
            let late = service.ingest(&run, numbered(4, [finished(RunStatus::Done)])).await.unwrap();
            assert_eq!((late.receipt.stored, late.receipt.known), (0, 1), "a late retry is known");
            assert!(is_over(&service.ingest(&run, numbered(5, [line("z")])).await));
        }
        // What the other process knows of the run may be a second old.
        assert!(is_over(&ground.service().ingest(&run, nothing()).await), "nobody waits for a sign of life");
        assert_eq!(one.cancel(cancel(&run)).await.unwrap(), fold);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_refused_with_the_way_out() {
    let ground = Ground::sqlite(&[NAP]);
    let service = ground.service();
    let long = "x".repeat(201);
    for name in ["", "a\nb", &long] {
        let refused = service.start(external(name)).await;
        assert!(matches!(refused, Err(RunsError::BadName { limit: 200 })), "{refused:?}");
    }
    let mut inputs = external("build");
    inputs.inputs.insert("x".into(), Value::Null);
    assert!(matches!(service.start(inputs).await, Err(RunsError::ExternalInputs)));
    let named = RunId::new("mine").unwrap();
    let with_id = || Start { run: Some(named.clone()), ..external("build") };
    service.start(with_id()).await.unwrap();
    assert!(matches!(service.start(with_id()).await, Err(RunsError::WrongState { .. })));
    let other_work = Start { idempotency_key: Some("k".into()), ..external("build") };
    service.start(other_work.clone()).await.unwrap();
    let reused = service.start(Start { work: Work::External { name: "other".into() }, ..other_work }).await;
    assert!(matches!(reused, Err(RunsError::KeyReused { .. })), "{reused:?}");

    let missing = service.ingest(&RunId::new("missing").unwrap(), arrival([line("a")])).await;
    assert!(missing.as_ref().is_err_and(RunsError::is_not_found), "{missing:?}");
    let resumed = service.resume(resume(&named, Value::Null)).await;
    assert!(matches!(resumed, Err(RunsError::External { .. })), "{resumed:?}");
    let decided = service.approve(approve(&named, Decision::Approve)).await;
    assert!(matches!(decided, Err(RunsError::External { .. })), "{decided:?}");

    // A run that lives here takes remarks of others, but nothing that its state depends on.
    let hosted = begin(&service, "nap").await;
    let refused = service.ingest(&hosted, arrival([line("a"), finished(RunStatus::Done)])).await;
    assert!(matches!(&refused, Err(RunsError::NotExternal { kind, .. }) if kind == "run-finished"), "{refused:?}");
    service.ingest(&hosted, arrival([line("from elsewhere")])).await.unwrap();
    service.ingest(&hosted, nothing()).await.unwrap();
    assert_eq!(service.fold(&hosted).await.unwrap().status, RunStatus::Running);
    service.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_that_is_silent_is_gone_until_it_comes_back() {
    for ground in Ground::each(&[]) {
        let service = || ground.service_with(ground.store(), |config| config.external_silence = SILENCE);
        let (one, two) = (service(), service());
        let run = started(&one).await;
        one.ingest(&run, numbered(1, [line("a")])).await.unwrap();
        assert_eq!(two.fold(&run).await.unwrap().status, RunStatus::Running);
        given_up(&two, &run).await;
        // One that has not noticed yet, and signs of life and events at the same time.
        let (back, alive) = tokio::join!(one.ingest(&run, numbered(2, [line("b")])), two.ingest(&run, nothing()));
        assert_eq!((back.unwrap().receipt.stored, alive.unwrap().receipt), (1, Receipt::default()));
        let settled = wait(&one, &run, Until::RecordAfter(Seq(5))).await;
        assert!(settled.error.is_none() || settled.status == RunStatus::Interrupted);
        // It waits until the run is given up once more: in a list, by who looks after everything.
        let gone = async {
            loop {
                let listed = two.runs(ListRuns::default()).await.unwrap();
                if listed[0].status == RunStatus::Interrupted && listed[0].head.0 > 5 {
                    break;
                }
                tokio::time::sleep(SILENCE / 10).await;
            }
        };
        tokio::time::timeout(SOON, gone).await.unwrap();
        two.ingest(&run, numbered(3, [finished(RunStatus::Done)])).await.unwrap();
        let kinds = check(&one, &run).await;
        assert_eq!(kinds.iter().filter(|kind| *kind == "run-start").count(), 3, "{kinds:?}");
        assert_eq!(kinds.last().unwrap(), "run-finished");
        assert_eq!(one.fold(&run).await.unwrap().status, RunStatus::Done);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn signs_of_life_are_written_rarely_and_keep_it_going() {
    let ground = Ground::sqlite(&[]);
    let service = ground.service_with(ground.store(), |config| config.external_silence = SILENCE);
    let run = started(&service).await;
    let from = tokio::time::Instant::now();
    let mut sent = 0;
    while from.elapsed() < SILENCE * 3 {
        assert_eq!(service.ingest(&run, nothing()).await.unwrap().receipt, Receipt::default());
        sent += 1;
        tokio::time::sleep(SILENCE / 100).await;
    }
    assert_eq!(service.fold(&run).await.unwrap().status, RunStatus::Running);
    let kinds = check(&service, &run).await;
    let notes = kinds.len() - 1;
    assert!((3..=9).contains(&notes) && sent > 50, "{sent} signs of life made {notes} records");
}

/// Times of events that waited elsewhere are kept; that they came now is not forgotten over that.
#[tokio::test(flavor = "multi_thread")]
async fn old_events_do_not_make_a_producer_silent() {
    let ground = Ground::sqlite(&[]);
    let service = ground.service();
    let run = started(&service).await;
    // The run has begun an hour ago, and so has its producer's backlog.
    let begun = service.fold(&run).await.unwrap().started_at;
    let lately = Timestamp::from_micros(begun.micros() + 1);
    let parts = vec![(Some(lately), batch([line("a")]))];
    service.ingest(&run, Arrival { parts, numbered: None }).await.unwrap();
    assert_eq!(records(&service, &run).await[1].ts, lately);

    let short = ground.service_with(ground.store(), |config| config.external_silence = SILENCE);
    tokio::time::sleep(SILENCE * 5 / 6).await;
    let parts = vec![(Some(lately), batch([line("b")]))];
    short.ingest(&run, Arrival { parts, numbered: None }).await.unwrap();
    tokio::time::sleep(SILENCE / 2).await;
    assert_eq!(short.fold(&run).await.unwrap().status, RunStatus::Running);
    let records = records(&short, &run).await;
    assert_eq!(records[2].ts, lately);
    let note = Note { text: "producer-alive".into(), level: Level::Info };
    assert!(matches!(&records[3].event, Event::Note(told) if *told == note), "{records:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn its_producer_is_told_of_a_cancel_and_ends_it() {
    for ground in Ground::each(&[]) {
        let (one, two) = (ground.service(), ground.service());
        let run = started(&one).await;
        one.ingest(&run, numbered(1, [line("a")])).await.unwrap();
        let producer = async {
            // Told at the latest when what is known of the run is looked at again.
            let told = async {
                loop {
                    if let Some(asked) = one.ingest(&run, nothing()).await.unwrap().cancel {
                        break asked;
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            let asked = tokio::time::timeout(SOON, told).await.unwrap();
            assert_eq!((asked.actor.as_str(), asked.reason.as_deref()), ("me", Some("enough")));
            let end = one.ingest(&run, numbered(2, [line("cleaned up"), finished(RunStatus::Cancelled)])).await;
            assert_eq!(end.unwrap().cancel, None);
        };
        let (fold, ()) = tokio::join!(two.cancel(cancel(&run)), producer);
        assert_eq!(fold.unwrap().status, RunStatus::Cancelled);
        let kinds = check(&two, &run).await;
        assert_eq!(kinds, ["run-start", "log", "cancel-requested", "log", "run-finished"]);
    }
}

/// In simulated time.
#[tokio::test(start_paused = true)]
async fn runs_that_nothing_comes_for_are_let_go_of() {
    let ground = Ground::memory(&[]);
    let service = ground.service();
    for _ in 0..300 {
        let run = started(&service).await;
        service.ingest(&run, arrival([line("a")])).await.unwrap();
    }
    assert_eq!(service.gauges().ingested, 256, "not more than there is room for");
    let run = started(&service).await;
    for n in 1..=20 {
        tokio::time::sleep(Duration::from_secs(5)).await;
        service.ingest(&run, numbered(n, [line("a")])).await.unwrap();
    }
    assert_eq!(service.gauges().ingested, 1);
    tokio::time::sleep(Duration::from_secs(45)).await;
    assert_eq!(service.gauges().ingested, 0);
    service.ingest(&run, numbered(21, [line("a")])).await.unwrap();
    assert_eq!(service.fold(&run).await.unwrap().usage.log_lines, 21);
}

/// In simulated time.
#[tokio::test(start_paused = true)]
async fn a_cancel_does_not_wait_for_a_producer_for_ever() {
    let ground = Ground::memory(&[]);
    let service = ground.service();
    let run = started(&service).await;
    let from = tokio::time::Instant::now();
    let fold = service.cancel(cancel(&run)).await.unwrap();
    assert!((10..13).contains(&from.elapsed().as_secs()), "{:?}", from.elapsed());
    assert_eq!(fold.status, RunStatus::Cancelled);
    assert_eq!(check(&service, &run).await, ["run-start", "cancel-requested", "run-finished"]);
    assert!(is_over(&service.ingest(&run, arrival([line("late")])).await));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_was_given_up_is_cancelled_at_once_or_goes_on() {
    for ground in Ground::each(&[]) {
        let service = || ground.service_with(ground.store(), |config| config.external_silence = SILENCE);
        let (one, two) = (service(), service());
        let run = started(&one).await;
        let lost = given_up(&one, &run).await;
        let (cancelled, back) = tokio::join!(one.cancel(cancel(&run)), two.ingest(&run, arrival([line("back")])));
        match back {
            // It came back first: then it is asked, says nothing, and is ended when it is silent for too long.
            Ok(_) => assert_eq!(cancelled.unwrap().status, RunStatus::Cancelled),
            back => {
                assert!(is_over(&back), "{back:?}");
                assert_eq!(cancelled.unwrap().last.0, lost.last.0 + 2);
            }
        }
        let kinds = check(&two, &run).await;
        assert_eq!(kinds.last().unwrap(), "run-finished", "{kinds:?}");
    }
}
