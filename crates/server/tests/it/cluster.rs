//! Several servers on one database, behind a balancer, while everything is killed in turn.

mod fleet;
mod random;
mod subscriber;
mod verdict;
mod worker;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;
use taffrail_mcp_core::{RunId, RunStatus, Seq, Start, ThreadId, Timestamp};
use taffrail_relay::Store as _;
use taffrail_store_postgres::PostgresStore;
use taffrail_transport::client::{Client, EventQuery, Followed, StartRun, StartWork};
use tokio::time::{sleep, timeout};

use self::{
    fleet::Fleet,
    random::Random,
    subscriber::{Subscribers, Target},
    verdict::Truth,
    worker::Worker,
};
use crate::world::{PATIENCE, World, is_alive, until};

const SERVERS: usize = 3;
const WORKERS: usize = 4;

/// Subscribers of each thread; the others follow runs.
const OF_EACH_THREAD: usize = 21;
const OF_EACH_RUN: usize = 2;

/// A run whose host is gone is `interrupted` at the latest then.
const WITHIN: Duration = Duration::from_secs(10);

/// What happens to the system.
#[derive(Debug, Clone, Copy)]
enum Mishap {
    KillServer(usize),
    RestartServer(usize),
    KillWorker(usize),
    RestartDatabase,
    KillDatabase,
}

/// Each server and each worker in any order; the database in the middle, and a server that is told to end.
fn mishaps(random: &mut Random) -> Vec<Mishap> {
    let servers = (0..SERVERS).map(Mishap::KillServer);
    let mut all: Vec<_> = servers.chain((0..WORKERS).map(Mishap::KillWorker)).collect();
    all.push(Mishap::RestartServer(0));
    random.shuffle(&mut all);
    all.insert(3, Mishap::RestartDatabase);
    all.insert(6, Mishap::KillDatabase);
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn every_subscriber_gets_the_same_whole_log_whatever_is_killed() {
    let mut random = Random::from_environment();
    let seed = random.seed();
    let world = World::new();
    let mut fleet = Fleet::start(&world, SERVERS);
    let client = fleet.client();
    let threads = [0, 1].map(|n| ThreadId::new(format!("thread-{n}-{seed}")).unwrap());
    let mut workers: Vec<_> =
        (0..WORKERS).map(|n| Worker::start(&world, &fleet, n, &threads[n % threads.len()])).collect();
    let mut subscribers = Subscribers::default();
    for worker in &workers {
        let run = worker.run(&client).await;
        (0..OF_EACH_RUN).for_each(|_| subscribers.follow(&fleet, Target::Run(run.clone())));
    }
    for thread in &threads {
        (0..OF_EACH_THREAD).for_each(|_| subscribers.follow(&fleet, Target::Thread(thread.clone())));
    }
    assert_eq!(subscribers.count(), 50);
    subscribers.all_go_on(PATIENCE).await.unwrap();
    let mut killed = Vec::new();
    for mishap in mishaps(&mut random) {
        let pause = random.millis(100..800);
        let begun = Instant::now();
        match mishap {
            Mishap::KillServer(n) => fleet.servers[n].kill(),
            Mishap::RestartServer(n) => fleet.servers[n].terminate(),
            Mishap::KillWorker(n) => killed.push(workers[n].kill()),
            Mishap::RestartDatabase => fleet.database.stop(),
            Mishap::KillDatabase => fleet.database.kill(),
        }
        sleep(pause).await;
        match mishap {
            Mishap::KillServer(n) | Mishap::RestartServer(n) => fleet.servers[n].begin(),
            Mishap::KillWorker(n) => {
                workers[n] = workers[n].successor(&world, &fleet);
                workers[n].run(&client).await;
            }
            Mishap::RestartDatabase | Mishap::KillDatabase => fleet.database.begin(),
        }
        let went_on = subscribers.all_go_on(PATIENCE).await;
        assert!(went_on.is_ok(), "seed {seed}: after {mishap:?} {}\n{}", went_on.unwrap_err(), fleet.log());
        println!("{mishap:?}: everybody goes on after {:?}", begun.elapsed());
    }
    let (begun, mut ended) = (Instant::now(), Vec::new());
    for worker in workers {
        ended.push(worker.finish());
        println!("a worker has ended after {:?}", begun.elapsed());
    }
    let truth = Truth::read(&client, &threads).await;
    println!("the logs are read after {:?}", begun.elapsed());
    let problems = truth.check(&killed, &ended);
    assert!(problems.is_empty(), "seed {seed}:\n{}", problems.join("\n"));
    let logs = subscribers.finish(&truth, PATIENCE).await;
    let problems = truth.compare(&logs);
    assert!(problems.is_empty(), "seed {seed}:\n{}\n{}", problems.join("\n"), fleet.log());
    println!("everybody has everything after {:?}", begun.elapsed());
    let given = fleet.balancer.given();
    assert!(given.iter().all(|count| *count > 10), "the balancer has not spread connections: {given:?}");
    println!("{} records, connections {given:?}", truth.records());
}

/// Reads up to a line of output that begins so.
async fn until_printed(client: &Client, run: &RunId, start: &str) -> String {
    let mut follow = client.follow(run.clone(), Start::Beginning);
    loop {
        let item =
            timeout(PATIENCE, follow.next()).await.unwrap_or_else(|_| panic!("nothing that begins with {start}"));
        let Followed::Record { line, .. } = item.unwrap().unwrap() else { continue };
        let record: serde_json::Value = serde_json::from_slice(&line).unwrap();
        if let Some(text) = record["text"].as_str().filter(|text| text.starts_with(start)) {
            return text.to_owned();
        }
    }
}

/// The log as it stands in the database, without a server that could be moved to do something by being asked.
async fn head(store: &PostgresStore, thread: &ThreadId) -> Seq {
    store.extent(thread.clone()).await.unwrap().head
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_a_killed_server_is_interrupted_unasked_and_resumed_by_another() {
    let world = World::new();
    let mut fleet = Fleet::start(&world, SERVERS);
    let [host, other, third] = [0, 1, 2].map(|n| fleet.client_of(n));
    let gate = world.file("gate");
    let thread = ThreadId::new("t").unwrap();
    let serde_json::Value::Object(inputs) = json!({ "file": gate }) else { unreachable!() };
    let work = StartWork::Playbook { name: "hold".to_owned(), inputs };
    let run = host.start(&thread, &StartRun { work, ..StartRun::default() }).await.unwrap().run;
    let holding = until_printed(&other, &run, "holding ").await;
    let shell: i32 = holding.rsplit(' ').next().unwrap().parse().unwrap();
    let store = PostgresStore::open(&fleet.database_url, Default::default()).await.unwrap();
    let before = head(&store, &thread).await;

    let killed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    fleet.servers[0].kill();
    let deadline = Instant::now() + PATIENCE;
    while head(&store, &thread).await == before {
        assert!(Instant::now() < deadline, "nobody has noticed: {}", fleet.log());
        sleep(Duration::from_millis(50)).await;
    }
    let snapshot = other.snapshot(&run).await.unwrap();
    assert_eq!((snapshot.status, snapshot.head), (RunStatus::Interrupted, before.next()));
    let last = last_record(&other, &run).await;
    let told = Duration::from_micros(last["ts"].as_str().unwrap().parse::<Timestamp>().unwrap().micros());
    assert!(told - killed < WITHIN, "it took {:?}", told - killed);
    until("the command is gone, too", PATIENCE, || (!is_alive(shell)).then_some(()));

    let resumed = third.resume(&run, None, &serde_json::Map::new()).await.unwrap();
    assert_eq!(resumed.status, RunStatus::Running);
    until_printed(&third, &run, "holding ").await;
    fleet.servers[0].begin();
    std::fs::write(&gate, "").unwrap();
    let mut follow = other.follow(run.clone(), Start::After(before));
    let end = loop {
        match follow.next().await.unwrap().unwrap() {
            Followed::End(snapshot) if snapshot.status != RunStatus::Interrupted => break snapshot,
            Followed::End(_) => follow = other.follow(run.clone(), Start::After(before.next())),
            _ => {}
        }
    };
    assert_eq!(end.status, RunStatus::Done);
    let page = host.events(&run, &EventQuery { limit: Some(2000), ..EventQuery::default() }).await.unwrap();
    let texts: Vec<_> =
        verdict::records(&page.entries).filter_map(|record| Some(record["text"].as_str()?.to_owned())).collect();
    let counted = |start: &str| texts.iter().filter(|text| text.starts_with(start)).count();
    assert_eq!(["before", "holding", "released", "after"].map(counted), [1, 2, 1, 1], "{texts:?}");
}

async fn last_record(client: &Client, run: &RunId) -> serde_json::Value {
    let page = client.events(run, &EventQuery { tail: Some(1), ..EventQuery::default() }).await.unwrap();
    verdict::records(&page.entries).last().unwrap()
}
