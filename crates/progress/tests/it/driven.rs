//! The tokio driver, in simulated time, with clients that read, stall and go away.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use taffrail_progress::{
    BoxFuture, Config, Notification, ProgressSink, ProgressSource as _, ProgressToken, RequestProgress, SinkError,
};
use tokio::{
    sync::Semaphore,
    time::{Instant, advance},
};

use crate::support::{check, numbers};

/// Takes as many notifications as there are permits.
struct Client {
    seen: Mutex<Vec<(Notification, Instant)>>,
    takes: Semaphore,
    gone: bool,
}

impl Client {
    fn new(takes: usize) -> Arc<Self> {
        Arc::new(Self { seen: Mutex::default(), takes: Semaphore::new(takes), gone: false })
    }

    fn seen(&self) -> Vec<Notification> {
        self.seen.lock().unwrap().iter().map(|(one, _)| one.clone()).collect()
    }
}

impl ProgressSink for Client {
    fn send(&self, notification: Notification) -> BoxFuture<'_, Result<(), SinkError>> {
        Box::pin(async move {
            self.takes.acquire().await?.forget();
            self.seen.lock().unwrap().push((notification, Instant::now()));
            if self.gone { Err("gone".into()) } else { Ok(()) }
        })
    }
}

fn start(client: &Arc<Client>) -> RequestProgress {
    let sink: Arc<dyn ProgressSink> = Arc::clone(client) as _;
    RequestProgress::start(Some(ProgressToken::Text("t".into())), sink, Config::default())
}

#[tokio::test(start_paused = true)]
async fn at_most_two_a_second_the_last_before_the_end_and_none_after() {
    let client = Client::new(1000);
    let progress = start(&client);
    let p = progress.counting_progress(Some(1000));
    for step in 1..=1000 {
        p.emit_with(step).unwrap();
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    progress.finish().await;
    let seen = client.seen();
    check(&seen);
    assert_eq!(seen.last().map(|last| (last.progress, last.message.as_deref())), Some((1000.0, Some("1000"))));
    let times: Vec<_> = client.seen.lock().unwrap().iter().map(|(_, at)| *at).collect();
    let (_, before) = times.split_last().unwrap();
    assert_eq!(before.len(), 6, "three seconds");
    assert!(before.windows(2).all(|pair| pair[1] - pair[0] >= Duration::from_millis(500)));
    let _ = p.emit_with("late");
    advance(Duration::from_secs(100)).await;
    progress.finish().await;
    assert_eq!(client.seen().len(), seen.len());
}

#[tokio::test(start_paused = true)]
async fn a_report_from_another_thread_wakes_the_driver() {
    let client = Client::new(1000);
    let progress = start(&client);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let p = Arc::new(progress.counting_progress(None));
    let from_elsewhere = Arc::clone(&p);
    std::thread::spawn(move || from_elsewhere.emit()).join().unwrap().unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(numbers(&client.seen()), [1.0]);
    tokio::time::sleep(Duration::from_secs(45)).await;
    assert_eq!(client.seen().len(), 4, "and three beats");
    progress.finish().await;
    check(&client.seen());
    assert_eq!(client.seen().len(), 4, "a beat more would say nothing");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stalls_gets_the_latest_when_it_reads_again() {
    let client = Client::new(1);
    let progress = start(&client);
    let p = progress.counting_progress(None);
    for _ in 0..100 {
        p.emit().unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(numbers(&client.seen()), [1.0]);
    client.takes.add_permits(100);
    progress.finish().await;
    let seen = client.seen();
    check(&seen);
    assert_eq!(seen.last().map(|last| last.progress), Some(100.0));
    assert_eq!(seen.len(), 3, "the first, the one that was on its way, the last");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stays_stalled_holds_the_response_up_no_longer_than_agreed() {
    let client = Client::new(1);
    let progress = start(&client);
    let p = progress.counting_progress(None);
    p.emit().unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    p.emit().unwrap();
    let begin = Instant::now();
    progress.finish().await;
    assert_eq!(begin.elapsed(), Duration::from_millis(500));
    client.takes.add_permits(100);
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(numbers(&client.seen()), [1.0], "and gets nothing after it");
}

#[tokio::test(start_paused = true)]
async fn dropped_or_stopped_it_sends_no_more() {
    for stopped in [true, false] {
        let client = Client::new(100);
        let progress = start(&client);
        let p = progress.counting_progress(None);
        p.emit().unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        p.emit().unwrap();
        if stopped {
            progress.stop();
            progress.finish().await;
        } else {
            drop(progress);
        }
        tokio::time::sleep(Duration::from_secs(100)).await;
        p.emit().unwrap();
        assert_eq!(numbers(&client.seen()), [1.0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_gone_ends_the_stream_and_not_the_work() {
    let client = Arc::new(Client { gone: true, ..Arc::into_inner(Client::new(100)).unwrap() });
    let progress = start(&client);
    let p = progress.counting_progress(None);
    for _ in 0..10 {
        p.emit().unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    progress.finish().await;
    assert_eq!(numbers(&client.seen()), [1.0]);
}

#[tokio::test(start_paused = true)]
async fn without_a_token_nothing_is_sent() {
    let client = Client::new(100);
    let sink: Arc<dyn ProgressSink> = Arc::clone(&client) as _;
    let progress = RequestProgress::start(None, sink, Config::default());
    progress.counting_progress(None).emit_with("x").unwrap();
    tokio::time::sleep(Duration::from_secs(100)).await;
    progress.finish().await;
    assert!(client.seen().is_empty());
}
