//! How streams end.

use std::time::Duration;

use serde_json::json;
use taffrail_transport::http::HttpConfig;

use super::{Events, Sent};
use crate::web::{PATIENCE, Web, client, config, finished, json_of, lines};

/// Reads up to the `end` of a stream; gives the records before it and it.
async fn to_the_end(events: &mut Events) -> (Vec<serde_json::Value>, Sent) {
    let mut records = Vec::new();
    loop {
        let sent = events.next().await.unwrap();
        match sent.event.as_deref() {
            None if sent.data.is_some() => records.push(sent.json()),
            None => {}
            Some("end") => {
                assert_eq!(events.next().await, None);
                return (records, sent);
            }
            Some(other) => panic!("{other}"),
        }
    }
}

fn types(records: &[serde_json::Value]) -> Vec<&str> {
    records.iter().map(|record| record["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_run_that_is_over_ends_its_streams_and_then_there_is_nothing_more() {
    let web = Web::start();
    let run = web.external("t").await;
    let path = format!("/api/v1/runs/{run}/stream");
    let mut before = Events::open(&web, &path, None).await;
    assert_eq!(before.record().await["type"], "run-start");
    web.events(&run, format!("{}{}", lines(0..3), finished("halt"))).await;
    let (records, end) = to_the_end(&mut before).await;
    assert_eq!(types(&records), ["n", "n", "n", "run-finished"]);
    assert_eq!((end.id, end.json()["status"].clone()), (Some(5), json!("halt")));
    let snapshot = json_of(web.get(&format!("/api/v1/runs/{run}"), &[]).await).await;
    assert_eq!(end.json(), snapshot);
    // From anywhere before the end the rest and the end come again; from there on nothing will.
    let (records, again) = to_the_end(&mut Events::open(&web, &path, Some(3)).await).await;
    assert_eq!((types(&records), again), (vec!["n", "run-finished"], end));
    for after in ["5", "live"] {
        let response = web.get(&format!("{path}?after={after}"), &[]).await;
        assert_eq!(response.status(), 204);
    }
    // Also when others wrote on in the same thread.
    web.external("t").await;
    assert_eq!(web.get(&path, &[("last-event-id", "6")]).await.status(), 204);
    assert_eq!(web.get(&path, &[("last-event-id", "7")]).await.status(), 409);
}

#[tokio::test]
async fn a_remark_after_the_end_does_not_keep_streams_open() {
    let web = Web::start();
    let run = web.external("t").await;
    // Not over for good, so that more is taken.
    let (status, _) = web.events(&run, format!("{}\n{}", finished("interrupted"), lines(0..1))).await;
    assert_eq!(status, 200);
    let path = format!("/api/v1/runs/{run}/stream");
    for after in [1, 2] {
        let (records, end) = to_the_end(&mut Events::open(&web, &path, Some(after)).await).await;
        assert_eq!((types(&records).last(), end.id), (Some(&"n"), Some(3)), "{after}");
    }
    assert_eq!(web.get(&path, &[("last-event-id", "3")]).await.status(), 204);
}

#[tokio::test]
async fn a_thread_goes_on_and_a_run_sees_only_its_own() {
    let web = Web::start();
    let (one, two) = (web.external("t").await, web.external("t").await);
    let mut thread = Events::open(&web, "/api/v1/threads/t/stream", None).await;
    let mut of_two = Events::open(&web, &format!("/api/v1/runs/{two}/stream"), None).await;
    web.events(&one, format!("{}{}", lines(0..1), finished("done"))).await;
    web.events(&two, format!("{}{}", lines(1..2), finished("done"))).await;
    let mut seen = Vec::new();
    for _ in 0..6 {
        seen.push(thread.record().await["seq"].as_u64().unwrap());
    }
    assert_eq!(seen, [1, 2, 3, 4, 5, 6]);
    let (records, end) = to_the_end(&mut of_two).await;
    assert_eq!(records.iter().map(|record| record["seq"].as_u64().unwrap()).collect::<Vec<_>>(), [2, 5, 6]);
    assert_eq!(end.id, Some(6));
}

const GATED: &str = "
playbook: gated
states:
  work: { exec: [echo, hello] }
  agree: { approve: Go on?, by: agent }
  rest: { exec: [echo, bye] }
";

#[tokio::test]
async fn a_run_goes_on_through_a_suspension_and_a_turn_ends_at_it() {
    let web = Web::start();
    web.playbook("gated", GATED);
    let body = json!({"playbook": "gated", "phase": "console_turn"});
    let mut turn = Events::of(web.posting("/api/v1/threads/t/runs", &body).send().await.unwrap()).await;
    let (records, end) = to_the_end(&mut turn).await;
    assert_eq!((records[0]["type"].as_str(), records[0]["seq"].as_u64()), (Some("run-start"), Some(1)));
    assert_eq!(records.last().unwrap()["status"], "suspended");
    let snapshot = end.json();
    assert_eq!((&snapshot["status"], end.id), (&json!("suspended"), records.last().unwrap()["seq"].as_u64()));
    let run = snapshot["run"].as_str().unwrap();
    let mut stream = Events::open(&web, &format!("/api/v1/runs/{run}/stream"), None).await;
    for record in &records {
        assert_eq!(stream.record().await, *record);
    }
    let decided = json!({"inputs": {"decision": "approve"}});
    let (status, answer) = web.post(&format!("/api/v1/runs/{run}/resume"), decided).await;
    assert!(status.is_success(), "{answer}");
    let (records, end) = to_the_end(&mut stream).await;
    assert_eq!(types(&records).last(), Some(&"run-finished"));
    assert_eq!(end.json()["status"], "done");
}

#[tokio::test]
async fn a_turn_that_is_left_goes_on() {
    let web = Web::start();
    web.playbook("slow", "playbook: slow\nstates:\n  work: { run: \"echo a; read x < gate; echo b\" }\n");
    let gate = web.service.config().cwd.join("gate");
    rustix::fs::mknodat(rustix::fs::CWD, &gate, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let body = json!({"playbook": "slow", "phase": "console_turn"});
    let mut turn = Events::of(web.posting("/api/v1/threads/t/runs", &body).send().await.unwrap()).await;
    let run = turn.record().await["run"].as_str().unwrap().to_owned();
    drop(turn);
    // Opens only when the process reads: it is still there, long after its client went.
    tokio::task::spawn_blocking(move || std::fs::write(gate, "x\n").unwrap()).await.unwrap();
    let (records, end) = to_the_end(&mut Events::open(&web, &format!("/api/v1/runs/{run}/stream"), None).await).await;
    assert_eq!(end.json()["status"], "done");
    assert!(records.iter().any(|record| record["text"] == "b"), "{records:?}");
}

#[tokio::test]
async fn a_run_whose_producer_is_gone_ends() {
    let web = Web::start();
    let dir = tempfile::tempdir().unwrap();
    // Another process, to which silence is an end at once.
    let mut config = taffrail_runs::Config::new(
        taffrail_runs::Layout::new(dir.path().join("data")),
        dir.path().to_owned(),
        dir.path().to_owned(),
    );
    config.external_silence = Duration::from_millis(1);
    let other = taffrail_runs::Service::open(web.service.relay().clone(), config).unwrap();
    let server =
        taffrail_transport::http::HttpServer::bind(other, crate::web::config(), ([127, 0, 0, 1], 0).into()).unwrap();
    let url = format!("http://{}", server.local_addr());
    let serving = tokio::spawn(server.serve(std::future::pending()));
    let run = web.external("t").await;
    let response = client(false).get(format!("{url}/api/v1/runs/{run}/stream")).send().await.unwrap();
    // Opening the stream looks already; the thread's stream looks by itself.
    drop(response);
    let second = web.external("u").await;
    let response = client(false).get(format!("{url}/api/v1/threads/u/stream")).send().await.unwrap();
    let mut events = Events::of(response).await;
    assert_eq!(events.record().await["run"], second.as_str());
    let end = events.record().await;
    assert_eq!((&end["type"], &end["status"]), (&json!("run-finished"), &json!("interrupted")));
    serving.abort();
}

#[tokio::test]
async fn at_shutdown_each_stream_ends_in_good_order_and_comes_back_at_its_own_time() {
    let mut web = Web::with(HttpConfig { retry: Duration::from_secs(2), ..config() });
    let run = web.external("t").await;
    let h2 = client(true);
    let mut streams = Vec::new();
    for n in 0..20 {
        let client = if n % 2 == 0 { &web.client } else { &h2 };
        let response = client.get(format!("{}/api/v1/runs/{run}/stream", web.url)).send().await.unwrap();
        let mut events = Events::of(response).await;
        assert_eq!(events.record().await["seq"], 1);
        streams.push(events);
    }
    web.stop();
    let mut waits = Vec::new();
    for events in &mut streams {
        let last = events.next().await.unwrap();
        let wait = last.retry.unwrap();
        assert_eq!(last, Sent { retry: Some(wait), ..Sent::default() });
        assert_eq!(events.next().await, None);
        waits.push(wait);
    }
    assert!(waits.iter().all(|wait| (2000..7000).contains(wait)), "{waits:?}");
    waits.sort_unstable();
    waits.dedup();
    assert!(waits.len() > 10, "{waits:?}");
    tokio::time::timeout(PATIENCE, web.stopped()).await.unwrap();
}
