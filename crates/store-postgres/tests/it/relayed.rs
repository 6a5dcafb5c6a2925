//! Whole relays on the store, and what happens to it meanwhile: nothing is lost, nothing is there twice.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use taffrail_mcp_core::{Event, EventBatch, EventSink, Note, Record, RunId, Seq, Start};
use taffrail_relay::{Delivery, Relay, RelayError};
use taffrail_store_postgres::{Config, PostgresStore};
use taffrail_testutils::{postgres::PgCluster, store_suite::thread_id};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

/// Records of each publisher, and publishers.
const EACH: u64 = 400;
const PUBLISHERS: u64 = 3;
/// Nothing here takes that long.
const LONG: Duration = Duration::from_secs(120);

/// Two relays on one database, as in two processes, with publishers and followers.
struct Crew {
    publishers: Vec<JoinHandle<()>>,
    followers: Vec<JoinHandle<Vec<Bytes>>>,
    /// Records that publishers know to be durable.
    durable: Arc<AtomicU64>,
    relays: Vec<Relay>,
}

impl Crew {
    async fn start(url: &str) -> Self {
        let durable = Arc::new(AtomicU64::new(0));
        let mut crew = Self { publishers: vec![], followers: vec![], durable, relays: vec![] };
        for _ in 0..2 {
            let store = Arc::new(PostgresStore::open(url, Config::default()).await.unwrap());
            crew.relays.push(Relay::start(store, taffrail_relay::Config::default()).unwrap());
        }
        for number in 0..PUBLISHERS {
            let relay = crew.relays[number as usize % 2].clone();
            crew.publishers.push(tokio::spawn(publish(relay, number, Arc::clone(&crew.durable))));
        }
        for number in 0..4 {
            crew.followers.push(tokio::spawn(follow(crew.relays[number % 2].clone())));
        }
        crew
    }

    /// Waits until a part of all is durable.
    async fn reach(&self, percent: u64) {
        let enough = EACH * PUBLISHERS * percent / 100;
        let deadline = Instant::now() + LONG;
        while self.durable.load(Relaxed) < enough {
            assert!(Instant::now() < deadline, "{} of {enough} are durable", self.durable.load(Relaxed));
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits for all, and checks what everybody saw against what is stored.
    async fn finish(self) {
        for publisher in self.publishers {
            timeout(LONG, publisher).await.unwrap().unwrap();
        }
        let stored = timeout(LONG, follow(self.relays[0].clone())).await.unwrap();
        for follower in self.followers {
            let seen = timeout(LONG, follower).await.unwrap().unwrap();
            let same = seen.iter().zip(&stored).all(|(a, b)| a == b);
            assert!(same, "a follower saw another log than the stored one");
        }
        for relay in &self.relays {
            relay.close().await;
        }
    }
}

fn run(number: u64) -> RunId {
    RunId::new(format!("run-{number}")).unwrap()
}

async fn publish(relay: Relay, number: u64, durable: Arc<AtomicU64>) {
    let publisher = loop {
        match relay.publisher(&thread_id("t"), &run(number)).await {
            Ok(publisher) => break publisher,
            Err(error) => may_pass(error).await,
        }
    };
    for i in 0..EACH {
        let mut batch = EventBatch::new();
        batch.push(Note::info(format!("{number} {i}")).into());
        publisher.send(&mut batch).await;
        if i % 5 == 4 {
            publisher.flush().await.unwrap();
            durable.fetch_add(5, Relaxed);
        }
    }
}

/// A reader may be told that the store is away; then it comes again.
async fn may_pass(error: RelayError) {
    match error {
        RelayError::Store(error) if error.is_transient() => sleep(Duration::from_millis(50)).await,
        other => panic!("{other}"),
    }
}

/// Reads until the last record of each publisher was there. What comes has to be dense, and each publisher's records
/// once and in order.
async fn follow(relay: Relay) -> Vec<Bytes> {
    let mut follower = loop {
        match relay.follow(&thread_id("t"), None, Start::Beginning).await {
            Ok(follower) => break follower,
            Err(error) => may_pass(error).await,
        }
    };
    let mut log = Vec::new();
    let mut next: BTreeMap<String, u64> = (0..PUBLISHERS).map(|number| (number.to_string(), 0)).collect();
    while next.values().any(|next| *next < EACH) {
        let blocks = match follower.next().await {
            Ok(Delivery::Blocks(blocks)) => blocks,
            Ok(Delivery::Gap(gap)) => panic!("{gap:?}"),
            Err(error) => {
                may_pass(error).await;
                continue;
            }
        };
        for line in blocks.iter().flat_map(|block| block.lines().collect::<Vec<_>>()) {
            let record = Record::parse(&line).unwrap();
            assert_eq!(record.seq, Seq(log.len() as u64 + 1), "dense");
            if let Event::Note(note) = &record.event
                && let Some((number, i)) = note.text.split_once(' ')
                // Else it is a remark of the relay, that the store was away.
                && let Some(next) = next.get_mut(number)
            {
                assert_eq!(i.parse(), Ok(*next), "publisher {number}: once, and in order");
                *next += 1;
            }
            log.push(line);
        }
    }
    log
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_and_a_crash_of_the_server() {
    let server = PgCluster::start();
    let crew = Crew::start(&server.url(&server.fresh_database())).await;
    crew.reach(25).await;
    server.restart();
    crew.reach(50).await;
    server.kill();
    server.begin();
    crew.reach(75).await;
    server.kill();
    // Away for longer than a first attempt.
    sleep(Duration::from_secs(2)).await;
    server.begin();
    crew.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_dropped_all_the_time() {
    let server = PgCluster::start();
    let database = server.fresh_database();
    let crew = Crew::start(&server.url(&database)).await;
    let mut dropped = 0;
    for percent in (5..95).step_by(5) {
        crew.reach(percent).await;
        dropped += server.drop_connections(&database, "true");
    }
    println!("{dropped} connections dropped");
    // Some are just being opened again when the next drop comes.
    assert!(dropped > 18, "{dropped}: more than one each time");
    crew.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_takes_over() {
    let primary = PgCluster::start();
    let database = primary.fresh_database();
    let standby = primary.standby();
    primary.require_standby();
    let crew = Crew::start(&primary.url_with(&standby, &database)).await;
    crew.reach(40).await;
    primary.kill();
    standby.promote();
    crew.reach(60).await;
    crew.finish().await;
    assert!(standby.sql(&database, "SELECT head FROM taffrail.threads").parse::<u64>().unwrap() >= EACH * PUBLISHERS);
}
