//! What is stored, and what is answered.

use serde_json::{Value, json};

use crate::{
    sse::Events,
    web::{Web, finished, json_of, lines},
};

#[tokio::test]
async fn events_are_answered_with_their_places_and_read_as_they_were_sent() {
    let web = Web::start();
    let run = web.external("t").await;
    let body = "{\"type\":\"metric\",\"value\":1e400,\"ts\":\"2020-01-01T00:00:00Z\"}\n\n  \r\n{\"n\":7,\"type\":\"x\",\"seq\":99}";
    let (status, answer) = web.events(&run, body).await;
    assert_eq!((status.as_u16(), answer), (200, json!({"first": 2, "last": 3, "stored": 2, "known": 0})));
    let mut events = Events::open(&web, "/api/v1/threads/t/stream", Some(1)).await;
    let [metric, x] = [events.next().await.unwrap(), events.next().await.unwrap()].map(|sent| sent.data.unwrap());
    assert!(metric.ends_with("\"type\":\"metric\",\"value\":1e400}"), "{metric}");
    assert!(x.starts_with("{\"seq\":3,") && x.ends_with("\"type\":\"x\",\"n\":7}"), "{x}");
}

#[tokio::test]
async fn times_are_kept_between_the_last_one_and_now() {
    let web = Web::start();
    let run = web.external("t").await;
    let start = Events::open(&web, "/api/v1/threads/t/stream", None).await.record().await;
    let (early, late) = ("2001-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z");
    let body =
        format!("{{\"type\":\"a\",\"ts\":\"{early}\"}}\n{{\"type\":\"b\",\"ts\":\"{late}\"}}\n{{\"type\":\"c\"}}\n");
    web.events(&run, body).await;
    let mut events = Events::open(&web, "/api/v1/threads/t/stream", Some(1)).await;
    let mut last = start["ts"].as_str().unwrap().to_owned();
    for _ in 0..3 {
        let record = events.record().await;
        let ts = record["ts"].as_str().unwrap();
        assert!(ts >= last.as_str() && ts < late, "{record}");
        last = ts.to_owned();
    }
}

#[tokio::test]
async fn an_empty_body_says_that_the_producer_lives() {
    let web = Web::start();
    let run = web.external("t").await;
    let nothing = json!({"first": null, "last": null, "stored": 0, "known": 0});
    for body in ["", "\n", " \r\n\n"] {
        let (status, answer) = web.events(&run, body).await;
        assert_eq!((status.as_u16(), &answer), (200, &nothing));
    }
    let bare = web.client.post(format!("{}/api/v1/runs/{run}/events", web.url)).send().await.unwrap();
    assert_eq!((bare.status().as_u16(), json_of(bare).await), (200, nothing));
}

#[tokio::test]
async fn numbered_events_are_stored_once_whatever_is_sent_again() {
    let web = Web::start();
    let run = web.external("t").await;
    let answer = |first, last, stored, known| json!({"first": first, "last": last, "stored": stored, "known": known});
    for (producer, range, expected) in [
        ("p:1", 0..5, answer(Some(2), Some(6), 5, 0)),
        ("p:1", 0..5, answer(Some(2), Some(6), 0, 5)),
        ("p:4", 3..8, answer(Some(5), Some(9), 3, 2)),
        ("q:1", 0..1, answer(Some(10), Some(10), 1, 0)),
        ("p:1", 0..2, answer(None, None, 0, 2)),
        ("p:9", 8..9, answer(Some(11), Some(11), 1, 0)),
    ] {
        let (status, told) = web.events_of(&run, Some(producer), lines(range.clone())).await;
        assert_eq!((status.as_u16(), told), (200, expected), "{producer} {range:?}");
    }
    let (status, hole) = web.events_of(&run, Some("p:11"), lines(10..11)).await;
    assert_eq!((status.as_u16(), &hole["code"], &hole["expected"]), (409, &json!("hole"), &json!(10)));
}

#[tokio::test]
async fn a_long_body_goes_on_numbering_through_its_parts() {
    let web = Web::start();
    let run = web.external("t").await;
    // Some 6 MiB, handed over in a dozen parts.
    let text = "x".repeat(2000);
    let body: String = (0..3000).map(|n| format!("{{\"type\":\"n\",\"n\":{n},\"text\":\"{text}\"}}\n")).collect();
    let (status, answer) = web.events_of(&run, Some("p:1"), body.clone()).await;
    assert_eq!((status.as_u16(), &answer), (200, &json!({"first": 2, "last": 3001, "stored": 3000, "known": 0})));
    let (_, again) = web.events_of(&run, Some("p:1"), body).await;
    assert_eq!((&again["stored"], &again["known"], &again["last"]), (&json!(0), &json!(3000), &json!(3001)));
    let mut events = Events::open(&web, "/api/v1/threads/t/stream", Some(1)).await;
    for n in 0..3000 {
        assert_eq!(events.record().await["n"], n);
    }
}

#[tokio::test]
async fn a_run_that_is_over_takes_no_more() {
    let web = Web::start();
    let run = web.external("t").await;
    let body = format!("{}{}", lines(0..1), finished("done"));
    let (_, answer) = web.events_of(&run, Some("p:1"), body.clone()).await;
    assert_eq!(answer["stored"], 2);
    // What it has is known still: who did not hear the answer may ask again.
    let (status, again) = web.events_of(&run, Some("p:1"), body).await;
    assert_eq!((status.as_u16(), &again["known"]), (200, &json!(2)));
    let (status, problem) = web.events(&run, lines(0..1)).await;
    let told = (status.as_u16(), &problem["code"], &problem["run_status"], &problem["stored"]);
    assert_eq!(told, (409, &json!("run-over"), &json!("done"), &json!(0)));
}

#[tokio::test]
async fn who_is_asked_to_end_is_told_with_the_next_answer() {
    let web = Web::start();
    let run = web.external("t").await;
    let cancelling = tokio::spawn({
        let request = web.posting(&format!("/api/v1/runs/{run}/cancel"), &json!({"reason": "enough"}));
        async move { request.send().await.unwrap().status().as_u16() }
    });
    let cancel = loop {
        let (_, answer) = web.events(&run, lines(0..1)).await;
        if answer["cancel"] != Value::Null {
            break answer["cancel"].clone();
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(cancel["reason"], "enough");
    web.events(&run, finished("cancelled")).await;
    assert_eq!(cancelling.await.unwrap(), 200);
}

#[tokio::test]
async fn runs_of_our_own_take_remarks_and_nothing_that_would_change_them() {
    let web = Web::start();
    web.playbook("gated", "playbook: gated\nstates:\n  agree: { approve: Go on?, by: agent }\n");
    let (_, snapshot) = web.post("/api/v1/threads/t/runs", json!({"playbook": "gated"})).await;
    let run = taffrail_mcp_core::RunId::new(snapshot["run"].as_str().unwrap()).unwrap();
    let (status, problem) = web.events(&run, format!("{}\n{}", lines(0..2), finished("done"))).await;
    assert_eq!((status.as_u16(), &problem["code"], &problem["line"]), (409, &json!("not-external"), &json!(4)));
    assert_eq!(problem["stored"], 2);
    assert!(problem["detail"].as_str().unwrap().contains("type run-finished"), "{problem}");
}
