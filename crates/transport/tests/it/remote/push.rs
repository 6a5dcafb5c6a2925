//! Sending events to a server that takes them as the contract says, when it does.

use std::{
    num::NonZeroU64,
    sync::{Arc, Mutex},
    time::Duration,
};

use proptest::{
    prelude::*,
    strategy::ValueTree as _,
    test_runner::{RngAlgorithm, TestRng, TestRunner},
};
use taffrail_mcp_core::{ProducerId, RunId, ThreadId};
use taffrail_transport::client::{Batch, ClientError, PushRun, Pushed, Source, StartRun, StartWork};

use super::{
    fake::{Act, Asked, Fake, answer, json, problem},
    run::Run,
};

/// Events in memory, of which a few more are there each time.
struct Events {
    lines: Vec<String>,
    there: usize,
}

impl Events {
    fn new(count: usize) -> Self {
        Self { lines: (1..=count).map(|n| format!("{{\"type\":\"note\",\"text\":\"{n}\"}}\n")).collect(), there: 0 }
    }
}

impl Source for Events {
    async fn read(&mut self, from: NonZeroU64, most_bytes: usize) -> Batch {
        let mut batch = Batch::default();
        let mut bytes = String::new();
        for (n, line) in self.lines.iter().enumerate().take(self.there).skip(usize::try_from(from.get()).unwrap() - 1) {
            if batch.count > 0 && bytes.len() + line.len() > most_bytes {
                break;
            }
            bytes += line;
            batch.count += 1;
            batch.last = n + 1 == self.lines.len();
        }
        Batch { lines: bytes.into(), ..batch }
    }

    async fn more(&mut self) {
        match self.there < self.lines.len() {
            true => self.there = (self.there + 7).min(self.lines.len()),
            false => std::future::pending().await,
        }
    }
}

/// The taking side, by the contract.
#[derive(Debug, Default)]
struct Log {
    lines: Vec<String>,
    made: u32,
}

impl Log {
    fn take(&mut self, asked: &Asked) -> Vec<Act> {
        let (producer, first) = asked.headers["taffrail-producer"].split_once(':').unwrap();
        assert_eq!((producer, asked.path.as_str()), ("p", "/api/v1/runs/r/events"));
        let first: usize = first.parse().unwrap();
        if first > self.lines.len() + 1 {
            let body = format!(r#"{{"status":409,"code":"hole","detail":"x","expected":{}}}"#, self.lines.len() + 1);
            return answer(409, "application/problem+json", "", &body);
        }
        let text = String::from_utf8(asked.body.clone()).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'));
        let new = text.split_inclusive('\n').map(str::to_owned).skip(self.lines.len() + 1 - first);
        self.lines.extend(new);
        json(&format!(r#"{{"first":{first},"last":{}}}"#, self.lines.len()))
    }

    fn make(&mut self, asked: &Asked) -> Vec<Act> {
        assert_eq!(asked.path, "/api/v1/threads/t/runs");
        let body: serde_json::Value = serde_json::from_slice(&asked.body).unwrap();
        assert_eq!(body, serde_json::json!({"external": true, "name": "make", "idempotency_key": "k"}));
        self.made += 1;
        answer(202, "application/json", "", &Run::new(1).snapshot)
    }
}

fn run(made: bool, acknowledged: u64) -> PushRun {
    PushRun {
        thread: ThreadId::new("t").unwrap(),
        start: StartRun {
            work: StartWork::External { name: "make".to_owned() },
            idempotency_key: Some("k".to_owned()),
            run: None,
        },
        made: made.then(|| RunId::new("r").unwrap()),
        producer: ProducerId::new("p").unwrap(),
        acknowledged,
    }
}

/// Sends so many events to a server that behaves so, and returns what was told and what arrived.
async fn push(
    count: usize,
    run: PushRun,
    script: impl Fn(&Asked, &mut Log) -> Vec<Act> + Send + Sync + 'static,
) -> (Vec<Result<Pushed, ClientError>>, Vec<String>, Vec<Asked>) {
    let log = Arc::<Mutex<Log>>::default();
    let taking = Arc::clone(&log);
    let fake = Fake::start(move |asked| script(asked, &mut taking.lock().unwrap())).await;
    let mut push = fake.client().push(run, Events::new(count));
    push.hurry();
    let mut told = Vec::new();
    let pushing = async {
        while let Some(item) = push.next().await {
            told.push(item);
        }
    };
    tokio::time::timeout(Duration::from_secs(55), pushing).await.expect("the sending hangs");
    assert!(push.next().await.is_none());
    let lines = log.lock().unwrap().lines.clone();
    (told, lines, fake.asked())
}

fn take(asked: &Asked, log: &mut Log) -> Vec<Act> {
    if asked.path.ends_with("/runs") { log.make(asked) } else { log.take(asked) }
}

#[tokio::test]
async fn everything_arrives_in_good_order() {
    let (told, lines, asked) = push(100, run(false, 0), take).await;
    assert_eq!(lines, Events::new(100).lines);
    assert!(matches!(&told[0], Ok(Pushed::Made(snapshot)) if snapshot.run.as_str() == "r"), "{told:?}");
    assert!(matches!(&told[told.len() - 2..], [Ok(Pushed::Acknowledged(100)), Ok(Pushed::Done)]), "{told:?}");
    assert!(asked.len() <= 2 + 100 / 7 + 1, "{}", asked.len());
    // Where the run is made and half of it has arrived, the rest is sent; what was known is found out.
    for acknowledged in [0, 40, 50, 60, 90] {
        let (told, lines, asked) = push(100, run(true, acknowledged), |asked, log| {
            if log.lines.is_empty() {
                log.lines = Events::new(50).lines;
            }
            take(asked, log)
        })
        .await;
        assert_eq!(lines, Events::new(100).lines);
        assert!(matches!(told.last(), Some(Ok(Pushed::Done))), "{told:?}");
        assert_eq!(asked[0].headers["taffrail-producer"], format!("p:{}", acknowledged + 1));
    }
}

#[tokio::test]
async fn a_wish_for_its_end_is_told_once() {
    let (told, _, _) = push(100, run(true, 0), |asked, log| {
        let acts = take(asked, log);
        match (asked.n, &acts[..]) {
            (0..2, _) => acts,
            (n, _) => {
                let kill = n > 5;
                json(&format!(r#"{{"first":1,"last":1,"cancel":{{"actor":"op","reason":"enough","kill":{kill}}}}}"#))
            }
        }
    })
    .await;
    let kills: Vec<_> = told
        .iter()
        .filter_map(|told| if let Ok(Pushed::Cancel(cancel)) = told { Some(cancel.kill) } else { None })
        .collect();
    assert_eq!(kills, [false, true]);
}

#[tokio::test]
async fn what_is_in_vain_is_an_error_and_the_end() {
    for (status, code) in [(401, "unauthorized"), (403, "unknown-host"), (404, "no-run"), (409, "run-over")] {
        let (told, _, asked) = push(10, run(true, 0), move |_, _| problem(status, code, "")).await;
        let [Err(ClientError::Refused(refusal))] = &told[..] else { panic!("{told:?}") };
        assert_eq!((refusal.status, refusal.code.as_str()), (status, code));
        assert_eq!(asked.len(), 1);
    }
}

#[derive(Debug, Clone)]
enum Fate {
    Good,
    /// The request is lost.
    Lost,
    /// The request is taken, the answer lost.
    Unheard,
    /// It is taken after a while, when it was sent again long ago; that is left to the server's tests.
    Twice,
    Busy(u16),
    Between(u16),
    Garbled,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        4 => Just(Fate::Good),
        2 => Just(Fate::Lost),
        3 => Just(Fate::Unheard),
        1 => Just(Fate::Twice),
        1 => prop_oneof![Just(429u16), Just(500), Just(503)].prop_map(Fate::Busy),
        1 => prop_oneof![Just(200u16), Just(404), Just(502)].prop_map(Fate::Between),
        1 => Just(Fate::Garbled),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_event_arrives_once_whatever_happens() {
    for seed in 0..25u8 {
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
        let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
        let plan = prop::collection::vec(fate(), 1..8).new_tree(&mut runner).unwrap().current();
        let fates = plan.clone();
        let (told, lines, _) =
            push(60, run(false, 0), move |asked, log| match fates.get(asked.n).unwrap_or(&Fate::Good) {
                Fate::Good => take(asked, log),
                Fate::Lost => vec![Act::Reset],
                Fate::Unheard => {
                    take(asked, log);
                    vec![Act::Reset]
                }
                Fate::Twice => {
                    take(asked, log);
                    take(asked, log)
                }
                Fate::Busy(status) => problem(*status, "busy", "Retry-After: 0\r\n"),
                Fate::Between(status) => answer(*status, "text/html", "", "<html>"),
                Fate::Garbled => json("[]"),
            })
            .await;
        assert_eq!(lines, Events::new(60).lines, "seed {seed}: {plan:?}");
        assert!(matches!(told.last(), Some(Ok(Pushed::Done))), "seed {seed}: {plan:?} {told:?}");
        let acknowledged: Vec<_> = told
            .iter()
            .filter_map(|told| if let Ok(Pushed::Acknowledged(n)) = told { Some(*n) } else { None })
            .collect();
        assert!(acknowledged.is_sorted() && acknowledged.last() == Some(&60), "{acknowledged:?}");
    }
}
