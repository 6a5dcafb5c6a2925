//! Calls: what is sent, and what becomes of what comes back.

use std::{num::NonZeroU64, time::Duration};

use serde_json::{Value, json as value};
use taffrail_mcp_core::{Decision, ProducerId, RunId, RunStatus, Seq, Start, ThreadId};
use taffrail_transport::client::{ClientError, Decide, EventQuery, IngestBatch, ListRuns, StartRun, StartWork};

use super::{
    fake::{Act, Asked, Fake, answer, json, problem},
    run::Run,
};

fn id(text: &str) -> RunId {
    RunId::new(text).unwrap()
}

fn body(asked: &Asked) -> Value {
    serde_json::from_slice(&asked.body).unwrap()
}

#[tokio::test]
async fn each_call_asks_for_what_the_contract_says() {
    let run = Run::new(3);
    let snapshot = run.snapshot.clone();
    let fake = Fake::start(move |asked| match (asked.method.as_str(), asked.path.as_str()) {
        ("GET", "/api/v1/runs") => json(&format!(r#"{{"runs":[{snapshot}],"before":"x"}}"#)),
        ("GET", "/api/v1/runs/r/events") => json(&run.page(1, 1)),
        ("POST", "/api/v1/runs/r/events") => {
            json(r#"{"first":4,"last":5,"stored":2,"cancel":{"actor":"op","reason":"enough"}}"#)
        }
        ("POST", "/api/v1/threads/t/runs") => answer(202, "application/json", "Location: /x\r\n", &snapshot),
        _ => json(&snapshot),
    })
    .await;
    let client = fake.client();

    let work =
        StartWork::Playbook { name: "release".to_owned(), inputs: value!({"v": 1}).as_object().unwrap().clone() };
    let start = StartRun { work, idempotency_key: Some("k".to_owned()), run: None };
    assert_eq!(client.start(&ThreadId::new("t").unwrap(), &start).await.unwrap().run, id("r"));
    let external = StartRun { work: StartWork::External { name: "make".to_owned() }, ..start };
    client.start(&ThreadId::new("t").unwrap(), &external).await.unwrap();
    client.snapshot(&id("r")).await.unwrap();
    client.snapshot_after(&id("r"), Seq(3), Duration::from_millis(1500)).await.unwrap();
    let list = ListRuns {
        status: vec![RunStatus::Running, RunStatus::Done],
        thread: Some(ThreadId::new("t").unwrap()),
        limit: Some(5),
        before: Some(id("b")),
    };
    assert_eq!(client.runs(&list).await.unwrap().len(), 1);
    let query = EventQuery {
        start: Start::After(Seq(1)),
        grep: Some("a b&c".to_owned()),
        types: vec!["log".to_owned(), "note".to_owned()],
        tail: Some(3),
        wait: Duration::from_secs(1),
        ..EventQuery::default()
    };
    let page = client.events(&id("r"), &query).await.unwrap();
    assert_eq!((page.entries.len(), page.next, page.head, page.done), (1, Seq(2), Seq(3), false));
    let decide = Decide {
        run: id("r"),
        approval: "r:1".to_owned(),
        decision: Decision::Approve,
        hash: "ab".to_owned(),
        seen_seq: Seq(3),
        content: None,
        inputs: Default::default(),
    };
    client.approve(&decide).await.unwrap();
    client.resume(&id("r"), None, &Default::default()).await.unwrap();
    client.cancel(&id("r"), Some("enough"), true).await.unwrap();
    let batch = IngestBatch {
        producer: ProducerId::new("p").unwrap(),
        first: NonZeroU64::new(7).unwrap(),
        lines: "{}\n{}\n".into(),
    };
    let answer = client.ingest(&id("r"), &batch).await.unwrap();
    assert_eq!((answer.first, answer.last), (Some(Seq(4)), Some(Seq(5))));
    assert_eq!(answer.cancel.unwrap().reason.as_deref(), Some("enough"));

    let asked = fake.asked();
    assert!(asked.iter().all(|asked| asked.headers["authorization"] == "Bearer hunter2"));
    assert!(asked.iter().all(|asked| asked.headers["user-agent"].starts_with("taffrail/")));
    assert_eq!(body(&asked[0]), value!({"playbook": "release", "inputs": {"v": 1}, "idempotency_key": "k"}));
    assert_eq!(body(&asked[1]), value!({"external": true, "name": "make", "idempotency_key": "k"}));
    assert_eq!((asked[3].query["after"].as_str(), asked[3].query["wait_ms"].as_str()), ("3", "1500"));
    assert_eq!(asked[4].query["status"], "running%2Cdone");
    assert_eq!((asked[4].query["limit"].as_str(), asked[4].query["before"].as_str()), ("5", "b"));
    assert_eq!(asked[5].query["grep"], "a+b%26c");
    assert_eq!(asked[5].query.len(), 5);
    assert_eq!(asked[6].path, "/api/v1/runs/r/approvals/r:1");
    assert_eq!(body(&asked[6]), value!({"decision": "approve", "hash": "ab", "seen_seq": 3}));
    assert_eq!((asked[7].path.as_str(), body(&asked[7])), ("/api/v1/runs/r/resume", value!({})));
    assert_eq!(body(&asked[8]), value!({"reason": "enough", "kill": true}));
    assert_eq!(asked[9].headers["taffrail-producer"], "p:7");
    assert_eq!(asked[9].headers["content-type"], "application/x-ndjson");
    assert_eq!(asked[9].body, b"{}\n{}\n");
}

#[tokio::test]
async fn errors_say_what_happened_and_whether_to_try_again() {
    // Waits are asked of the machine's tests; here is what a call makes of each answer.
    let check = async |acts: Vec<Act>, transient: bool, part: &str| {
        let fake = Fake::start(move |_| acts.clone()).await;
        let error = fake.client().snapshot(&id("r")).await.unwrap_err();
        let text = format!("{error}");
        assert!(text.contains(part), "{part}: {text}");
        assert_eq!(error.is_transient(), transient, "{text}");
        assert!(!format!("{error:?}").contains("hunter2"));
        error
    };
    check(problem(401, "unauthorized", ""), false, "operator token").await;
    let missing = check(problem(404, "no-run", ""), false, "it is no-run (404 no-run)").await;
    assert!(missing.is_not_found());
    let busy = check(problem(503, "unavailable", "Retry-After: 7\r\n"), true, "it is unavailable").await;
    assert_eq!(busy.retry_after(), Some(Duration::from_secs(7)));
    check(problem(409, "hole", ""), false, "hole").await;
    check(answer(404, "text/html", "", "<html>"), false, "as no taffrail server does").await;
    let gateway = check(answer(502, "text/html", "Retry-After: 3\r\n", "<html>"), true, "502 and text/html").await;
    assert_eq!(gateway.retry_after(), Some(Duration::from_secs(3)));
    check(answer(200, "text/html", "", "<html>"), false, "200 and text/html").await;
    check(answer(200, "application/json", "", "{\"run\":1}"), false, "cannot read").await;
    check(answer(307, "text/html", "Location: http://evil/\r\n", ""), false, "http://evil/").await;
    check(vec![], true, "cannot reach http://127.0.0.1").await;
    check(vec![Act::Reset], true, "cannot reach").await;
    check(vec![Act::Send(b"SSH-2.0-x\r\n\r\n".to_vec())], true, "cannot reach").await;
    check(vec![Act::Hang], true, "has not answered within 2 s").await;
    let mut cut = json("{\"run\":\"r\"}");
    if let Some(Act::Send(bytes)) = cut.first_mut() {
        bytes.truncate(bytes.len() - 3);
    }
    check(cut, true, "cannot reach").await;
}

#[tokio::test]
async fn nobody_there_is_told_with_the_address() {
    let fake = Fake::start(|_| vec![]).await;
    let client = fake.client();
    let url = fake.url();
    drop(fake);
    let error = client.snapshot(&id("r")).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }));
    assert_eq!(error.to_string(), format!("cannot reach {url}: see that it runs there and that the address is right"));
}

#[tokio::test]
async fn an_answer_without_end_is_not_taken_in() {
    let fake = Fake::start(|_| {
        let mut acts =
            vec![Act::Send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n".to_vec())];
        acts.extend((0..80).map(|_| Act::Send(vec![b' '; 1 << 20])));
        acts
    })
    .await;
    let error = fake.client().snapshot(&id("r")).await.unwrap_err();
    assert!(matches!(error, ClientError::Malformed { .. } | ClientError::TimedOut { .. }), "{error:?}");
}
