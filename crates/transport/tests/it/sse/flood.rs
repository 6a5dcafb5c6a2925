//! Streams of logs that grow fast.

use std::sync::Arc;

use taffrail_mcp_core::RunId;
use tokio::task::JoinHandle;

use super::Events;
use crate::web::{Web, client, json_of, lines};

/// Events of one publisher.
const EACH: u64 = 2_500;
const PUBLISHERS: u64 = 8;
/// Events of one body.
const BATCH: u64 = 100;
/// Events of one large body: more than some servers can number in a second.
const AT_ONCE: u64 = 40_000;

/// Eight publishers write as fast as they can.
async fn publish(web: &Web, run: &RunId) {
    let publishers: Vec<_> = (0..PUBLISHERS)
        .map(|publisher| {
            let request = client(false).post(format!("{}/api/v1/runs/{run}/events", web.url));
            tokio::spawn(async move {
                for first in (0..EACH).step_by(BATCH as usize) {
                    let request = request.try_clone().unwrap().header("content-type", "application/x-ndjson");
                    let producer = format!("p{publisher}:{}", first + 1);
                    let sent = request.header("taffrail-producer", producer).body(lines(first..first + BATCH)).send();
                    let answer = json_of(sent.await.unwrap()).await;
                    assert_eq!(answer["stored"], BATCH, "{answer}");
                }
            })
        })
        .collect();
    for publisher in publishers {
        publisher.await.unwrap();
    }
}

/// Follows a thread from its beginning to `last`, connecting again after every `every` events.
async fn follow(web: Arc<Web>, h2: bool, last: u64, every: u64) {
    let client = client(h2);
    let (mut at, mut open): (u64, Option<Events>) = (0, None);
    while at < last {
        if open.is_none() || at % every == 0 {
            let request = client.get(format!("{}/api/v1/threads/t/stream", web.url));
            let request = if at == 0 { request } else { request.header("last-event-id", at.to_string()) };
            open = Some(Events::of(request.send().await.unwrap()).await);
        }
        let sent = open.as_mut().unwrap().next().await.unwrap();
        // A comment says nothing about records.
        let Some(data) = sent.data else { continue };
        at += 1;
        assert_eq!(sent.id, Some(at));
        assert!(data.starts_with(&format!("{{\"seq\":{at},\"thread\":\"t\",")), "{data}");
    }
}

/// Two readers of each HTTP, one of which connects again all the time.
fn readers(web: &Arc<Web>, last: u64, every: u64) -> Vec<JoinHandle<()>> {
    let kinds = [(false, every), (true, every), (false, u64::MAX), (true, u64::MAX)];
    kinds.into_iter().map(|(h2, every)| tokio::spawn(follow(Arc::clone(web), h2, last, every))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_are_gapless_with_a_reconnect_every_hundred_events() {
    let web = Arc::new(Web::start());
    let run = web.external("t").await;
    let readers = readers(&web, 1 + EACH * PUBLISHERS, 100);
    publish(&web, &run).await;
    for reader in readers {
        reader.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forty_thousand_in_one_instant_are_gapless_too() {
    let web = Arc::new(Web::start());
    let run = web.external("t").await;
    let readers = readers(&web, 1 + AT_ONCE, 1000);
    let (status, answer) = web.events(&run, lines(0..AT_ONCE)).await;
    assert_eq!((status.as_u16(), answer["stored"].as_u64()), (200, Some(AT_ONCE)));
    for reader in readers {
        reader.await.unwrap();
    }
}
