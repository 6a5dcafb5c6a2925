//! What is answered before a stream begins.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use taffrail_mcp_core::{Seq, ThreadId};
use taffrail_relay::{MemoryStore, Store};
use taffrail_transport::http::HttpConfig;

use super::{Events, Sent};
use crate::web::{Web, config, finished, lines};

#[tokio::test]
async fn headers_are_those_that_proxies_need() {
    let web = Web::start();
    web.external("t").await;
    let response = web.get("/api/v1/threads/t/stream", &[("accept", "text/event-stream")]).await;
    let headers = response.headers();
    for (name, value) in [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-store, no-transform"),
        ("x-accel-buffering", "no"),
    ] {
        assert_eq!(headers[name], value);
    }
    assert!(!headers.contains_key("content-length") && !headers.contains_key("content-encoding"));
    let head = web.client.head(format!("{}/api/v1/threads/t/stream", web.url)).send().await.unwrap();
    assert_eq!((head.status().as_u16(), &head.headers()["content-type"]), (200, &headers["content-type"]));
    let put = web.client.put(format!("{}/api/v1/threads/t/stream", web.url)).send().await.unwrap();
    assert_eq!((put.status().as_u16(), put.headers()["allow"].to_str().unwrap()), (405, "GET,HEAD"));
}

#[tokio::test]
async fn a_bad_cursor_is_told() {
    let web = Web::start();
    let run = web.external("t").await;
    for path in ["/api/v1/threads/t/stream".to_owned(), format!("/api/v1/runs/{run}/stream")] {
        for bad in ["-1", "x", "1.5", "0x1", "+1", "%201", ""] {
            let (status, problem) = web.mistake(&format!("{path}?after={bad}"), &[]).await;
            assert_eq!((status, &problem["code"]), (400, &json!("bad-cursor")), "{bad}: {problem}");
        }
        let (status, problem) = web.mistake(&format!("{path}?after=1"), &[("last-event-id", "x")]).await;
        assert_eq!((status, &problem["parameter"]), (400, &json!("Last-Event-ID")));
        for ahead in ["2", "18446744073709551615", "99999999999999999999999"] {
            let (status, problem) = web.mistake(&format!("{path}?after={ahead}"), &[]).await;
            assert_eq!((status, &problem["code"], &problem["head"]), (409, &json!("cursor-ahead"), &json!(1)));
        }
        let (status, problem) = web.mistake(&format!("{path}?afer=1"), &[]).await;
        assert_eq!((status, &problem["code"]), (400, &json!("bad-parameter")));
    }
    let (status, problem) = web.mistake("/api/v1/runs/nobody/stream", &[]).await;
    assert_eq!((status, &problem["code"]), (404, &json!("no-run")));
    let (status, problem) = web.mistake("/api/v1/threads/t/stream", &[("accept", "application/json")]).await;
    assert_eq!((status, &problem["code"]), (406, &json!("not-acceptable")));
}

#[tokio::test]
async fn the_header_wins_over_the_parameter() {
    let web = Web::start();
    let run = web.external("t").await;
    web.events(&run, lines(0..10)).await;
    let mut events = Events::open(&web, "/api/v1/threads/t/stream?after=2", Some(7)).await;
    assert_eq!(events.record().await["seq"], 8);
    let mut events = Events::open(&web, "/api/v1/threads/t/stream?after=2", None).await;
    assert_eq!(events.record().await["seq"], 3);
    let mut events = Events::open(&web, "/api/v1/threads/t/stream", None).await;
    assert_eq!(events.record().await["seq"], 1);
    let mut events = Events::open(&web, "/api/v1/threads/t/stream?after=live", None).await;
    web.events(&run, lines(10..11)).await;
    assert_eq!(events.record().await["seq"], 12);
}

#[tokio::test]
async fn a_thread_that_nobody_wrote_yet_can_be_followed() {
    let web = Web::start();
    let mut events = Events::open(&web, "/api/v1/threads/later/stream", None).await;
    web.external("later").await;
    assert_eq!(events.record().await["type"], "run-start");
}

#[tokio::test]
async fn there_are_only_so_many_streams() {
    let mut config = config();
    config.limits.streams = 2;
    let web = Web::with(config);
    let first = Events::open(&web, "/api/v1/threads/t/stream", None).await;
    let _second = Events::open(&web, "/api/v1/threads/t/stream", None).await;
    let (status, problem) = web.mistake("/api/v1/threads/t/stream", &[]).await;
    assert_eq!((status, &problem["code"]), (503, &json!("too-many-streams")));
    drop(first);
    // The server sees the end of a connection when it looks at it next.
    while web.get("/api/v1/threads/t/stream", &[]).await.status() != 200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_retention_removed_is_a_gap_and_the_rest_follows() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let writer = Web::on(Arc::clone(&store), config());
    let run = writer.external("t").await;
    for n in 0..20 {
        writer.events(&run, lines(n..n + 1)).await;
    }
    let thread = ThreadId::new("t").unwrap();
    store.trim(thread.clone(), Seq(9)).await.unwrap();
    // Another process: this one still has what it wrote in memory.
    let web = Web::on(Arc::clone(&store), config());
    let mut events = Events::open(&web, "/api/v1/threads/t/stream", Some(4)).await;
    let gap = events.next().await.unwrap();
    assert_eq!((gap.event.as_deref(), gap.id), (Some("gap"), Some(9)));
    let told = json!({"type": "gap", "thread": "t", "from": 5, "to": 9, "reason": "retention", "next": 9});
    assert_eq!(gap.json(), told);
    assert_eq!(events.record().await["seq"], 10);
    drop((web, events));
    // Of a run whose end is gone, the end is told all the same.
    writer.events(&run, finished("done")).await;
    store.trim(thread, Seq(22)).await.unwrap();
    let web = Web::on(store, config());
    let mut events = Events::open(&web, &format!("/api/v1/runs/{run}/stream"), Some(4)).await;
    assert_eq!(events.next().await.unwrap().id, Some(22));
    let end = events.next().await.unwrap();
    assert_eq!((end.event.as_deref(), end.id, &end.json()["status"]), (Some("end"), Some(22), &json!("done")));
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn silence_is_broken_by_a_comment() {
    let web = Web::with(HttpConfig { keep_alive: Duration::from_millis(20), ..config() });
    let mut events = Events::open(&web, "/api/v1/threads/t/stream", None).await;
    for _ in 0..3 {
        assert_eq!(events.next().await.unwrap(), Sent { comment: Some("alive".into()), ..Sent::default() });
    }
}
