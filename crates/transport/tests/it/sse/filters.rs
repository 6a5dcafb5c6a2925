//! Streams of some records.

use std::time::Duration;

use serde_json::json;
use taffrail_transport::http::HttpConfig;

use super::Events;
use crate::web::{Web, config, finished};

fn log(state: &str, n: u64) -> String {
    json!({"type": "log", "state": state, "stream": "stdout", "text": n.to_string()}).to_string() + "\n"
}

#[tokio::test]
async fn only_what_passes_comes_and_the_end_always() {
    let web = Web::start();
    let run = web.external("t").await;
    let body: String = (0..10).map(|n| log(if n % 2 == 0 { "even" } else { "odd" }, n)).collect();
    web.events(&run, format!("{body}{{\"type\":\"x\"}}\n{}", finished("done"))).await;
    let path = format!("/api/v1/runs/{run}/stream");
    let mut events = Events::open(&web, &format!("{path}?types=log,x&state=odd"), Some(4)).await;
    for seq in [5, 7, 9, 11] {
        assert_eq!(events.record().await["seq"], seq);
    }
    let end = events.next().await.unwrap();
    assert_eq!((end.event.as_deref(), end.id), (Some("end"), Some(13)));
    assert_eq!(events.next().await, None);
    let mut events = Events::open(&web, &format!("{path}?types=run-start,x"), None).await;
    assert_eq!((events.record().await["seq"].clone(), events.record().await["seq"].clone()), (json!(1), json!(12)));
    assert_eq!(events.next().await.unwrap().event.as_deref(), Some("end"));
}

#[tokio::test]
async fn the_cursor_moves_past_what_is_left_out() {
    let web = Web::with(HttpConfig { keep_alive: Duration::from_millis(20), ..config() });
    let run = web.external("t").await;
    let mut events = Events::open(&web, "/api/v1/threads/t/stream?types=rare", None).await;
    web.events(&run, (0..10).map(|n| log("s", n)).collect::<String>()).await;
    loop {
        let sent = events.next().await.unwrap();
        assert_eq!((sent.data, sent.event), (None, None));
        if sent.id == Some(11) {
            break;
        }
    }
    // Many at once do not wait for a silence.
    let web = Web::with(HttpConfig { keep_alive: Duration::from_secs(1000), ..config() });
    let run = web.external("t").await;
    let mut events = Events::open(&web, "/api/v1/threads/t/stream?types=rare", None).await;
    web.events(&run, (0..10_000).map(|n| log("s", n)).collect::<String>()).await;
    let sent = events.next().await.unwrap();
    assert!(sent.id.unwrap() > 4000 && sent.data.is_none(), "{sent:?}");
}
