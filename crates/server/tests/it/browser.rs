//! A browser: its own `EventSource` on a stream, and the page that the server has for it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use taffrail_testutils::browser::{Browser, Page};
use tokio::time::sleep;

use crate::{
    deployed::{Access, Deployed},
    elsewhere::Producer,
    world::World,
};

const STREAM: &str = "/api/v1/runs/{run}/stream";

/// Streams tell clients to wait so long before they come back.
const RETRY: Duration = Duration::from_secs(2);

/// Follows a run as any page would, and keeps all that it is told. It never closes the stream: stopping is the browser's
/// part, when the server has nothing more.
const FOLLOW: &str = r#"
    seen = []; ends = []; others = []; opened = 0;
    source = new EventSource("/api/v1/runs/RUN/stream");
    source.onopen = () => { opened += 1; };
    source.onmessage = (event) => seen.push([event.lastEventId, event.data]);
    source.addEventListener("end", (event) => ends.push([event.lastEventId, event.data]));
    source.addEventListener("gap", (event) => others.push(event.data));
    undefined"#;

fn follow(page: &Page<'_>, producer: &Producer) {
    page.eval(&FOLLOW.replace("RUN", producer.run.as_str()));
}

/// Waits until a page was told so many more records than now.
fn see_more(page: &Page<'_>, more: u64) {
    let seen = page.eval("seen.length").as_u64().unwrap();
    page.until("records come", &format!("seen.length >= {}", seen + more));
}

fn streams(server: &Deployed<'_>) -> Vec<Access> {
    server.access().into_iter().filter(|access| access.route == STREAM).collect()
}

/// Lines of any kind that output has.
fn texts(from: u64) -> Vec<String> {
    let odd = ["", "\"quoted\" \\ and /", "tabs\tand\u{7f}", "id: 7", "data: x", "\u{2028}\u{85}", "ünï🦀", "a\rb"];
    let lines = odd.iter().enumerate().map(|(n, odd)| format!("line {} {odd}", from + n as u64));
    lines.collect()
}

/// Prints a few lines now and then until told to stop; gives the number of lines.
async fn print_until(mut producer: Producer, stop: Arc<AtomicBool>) -> (Producer, u64) {
    let mut printed = 0;
    while !stop.load(Ordering::Relaxed) {
        let texts = texts(printed);
        producer.print(&texts).await;
        printed += texts.len() as u64;
        sleep(Duration::from_millis(15)).await;
    }
    (producer, printed)
}

/// What a page was told, as positions and records.
fn told(page: &Page<'_>, what: &str) -> Vec<(u64, String)> {
    let pairs: Vec<(String, String)> = serde_json::from_value(page.eval(what)).unwrap();
    pairs.into_iter().map(|(id, data)| (id.parse().unwrap(), data)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn event_source_follows_a_run_across_restarts_and_stops_at_its_end() {
    let world = World::new();
    let mut server = Deployed::start(&world, "server", &[]);
    let producer = Producer::start(server.client(), "job").await;
    let browser = Browser::start();
    let page = browser.page();
    assert_eq!(page.open(server.sign_in()), 200);
    follow(&page, &producer);

    let stop = Arc::new(AtomicBool::new(false));
    let printing = tokio::spawn(print_until(producer, Arc::clone(&stop)));
    see_more(&page, 100);
    server.terminate();
    server.begin();
    see_more(&page, 100);
    server.kill();
    server.begin();
    see_more(&page, 100);
    // In the middle of what a browser asks for to catch up.
    server.terminate();
    server.begin();
    page.until("it connects again", "opened >= 4");
    server.kill();
    server.begin();
    see_more(&page, 100);
    stop.store(true, Ordering::Relaxed);
    let (mut producer, printed) = printing.await.unwrap();
    producer.finish().await;

    page.until("the browser has stopped", "source.readyState === EventSource.CLOSED");
    let log = producer.log().await;
    assert_eq!(log.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), (1..=printed + 2).collect::<Vec<_>>());
    let seen = told(&page, "seen");
    let double = seen.windows(2).find(|two| two[0].0 >= two[1].0);
    assert_eq!(double, None);
    assert!(seen == log, "{} of {} records were seen", seen.len(), log.len());
    assert_eq!(page.eval("others"), Value::Array(Vec::new()));
    let ends = told(&page, "ends");
    assert_eq!(ends.len(), 1, "{ends:?}");
    let snapshot: Value = serde_json::from_str(&ends[0].1).unwrap();
    assert_eq!((ends[0].0, &snapshot["status"]), (printed + 2, &Value::from("done")));
    assert!(producer.again > 0, "no restart was met");

    // A browser that came back would do so within this time.
    sleep(RETRY * 5 / 2).await;
    let streams = streams(&server);
    let nothing_more = streams.iter().filter(|access| access.status == 204).count();
    assert_eq!((nothing_more, streams.last().map(|last| last.status)), (1, Some(204)), "{streams:?}");
    assert_eq!(page.eval("opened"), 5, "and no stream was opened after the last restart");
}

#[tokio::test(flavor = "multi_thread")]
async fn event_source_begins_in_the_middle_and_at_the_end() {
    let world = World::new();
    let server = Deployed::start(&world, "server", &[]);
    let mut producer = Producer::start(server.client(), "job").await;
    producer.print(&texts(0)).await;
    producer.finish().await;
    let log = producer.log().await;
    let browser = Browser::start();
    let page = browser.page();
    page.open(server.sign_in());
    let last = log.len();
    for after in [0, 1, last / 2, last - 1, last] {
        page.eval(&FOLLOW.replace("RUN/stream", &format!("{}/stream?after={after}", producer.run)));
        page.until("the browser has stopped", "source.readyState === EventSource.CLOSED");
        assert_eq!(told(&page, "seen"), log[after..], "after {after}");
        // At the end there is nothing to open: the browser's first request is answered with 204.
        let ends = usize::from(after < last);
        assert_eq!((page.eval("opened"), page.eval("ends.length")), (ends.into(), ends.into()), "after {after}");
    }
}
