//! Row 11 of the performance goals: appends of 100 events by 8 clients at once, against one multi-row INSERT of 100
//! rows by 8 connections at once.
//!
//! The peer gets its best form: a plain table with a key that the server counts, a prepared statement, and rows of only
//! the 200 bytes that an event is, where ours are whole records of about 310. Both talk to one scratch server with
//! `fsync` on and a checkpoint before each round. Rounds alternate; ratios are medians over the rounds. Prints one JSON
//! line a comparison, and fails when a goal is missed. `EVENTS` sets how many events a client has in a round (default
//! 30,000; they are made beforehand), `ROUNDS` how many rounds (default 9), `DISK` the folder to measure on.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench reports and stops at the first failure")]

use std::{fmt::Write, path::PathBuf, process::ExitCode, sync::Arc, time::Instant};

use bytes::Bytes;
use taffrail_mcp_core::{RunFold, RunId, Seq, ThreadId, Timestamp};
use taffrail_relay::{Append, Appended, Block, Store};
use taffrail_store_postgres::{Config, PostgresStore};
use taffrail_testutils::postgres::{PgCluster, PgOptions};
use tokio::task::JoinSet;
use tokio_postgres::{NoTls, types::ToSql};

const CLIENTS: u64 = 8;
const PER_APPEND: u64 = 100;
const MUST: f64 = 1.0;
const AIM: f64 = 3.0;

/// A way to append, with its name, whether each client has a store of its own, and whether the run's state goes along.
const WAYS: [(&str, bool, bool); 3] = [
    ("one store", false, false),
    ("one store, with the run's state", false, true),
    ("a store each, with the run's state", true, true),
];

fn main() -> ExitCode {
    let number = |name: &str, usual: u64| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(usual);
    let (batches, rounds) = (number("EVENTS", 30_000) / PER_APPEND, number("ROUNDS", 9));
    let disk = std::env::var("DISK").map_or_else(|_| env!("CARGO_TARGET_TMPDIR").into(), PathBuf::from);
    let settings = vec!["max_wal_size = 8GB".into(), "checkpoint_timeout = 1h".into()];
    let server = PgCluster::with(&PgOptions {
        fsync: std::env::var("NOSYNC").is_err(),
        within: Some(disk),
        settings,
        ..PgOptions::default()
    });
    let url = server.url(&server.fresh_database());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut peer = runtime.block_on(Peer::open(&url));
    let mut ours: Vec<Ours> = Vec::new();
    for (name, each, with_state) in WAYS {
        ours.push(runtime.block_on(Ours::open(&url, name, each, with_state)));
    }
    let mut ratios = vec![Vec::new(); WAYS.len()];
    let mut rates = vec![Vec::new(); WAYS.len() + 1];
    if let Ok(only) = std::env::var("ONLY") {
        let only: usize = only.parse().unwrap();
        for _ in 0..rounds {
            let before = cpu(&server);
            let mine = if only == WAYS.len() {
                runtime.block_on(peer.round(batches))
            } else {
                runtime.block_on(ours[only].round(batches))
            };
            let after = cpu(&server);
            println!(
                "{only}: {mine:.0}/s server cpu us/append {:.0}",
                (after - before) * 1e6 / (CLIENTS * batches) as f64
            );
        }
        return ExitCode::SUCCESS;
    }
    for _ in 0..rounds {
        server.sql("postgres", "CHECKPOINT");
        let theirs = runtime.block_on(peer.round(batches));
        rates[WAYS.len()].push(theirs);
        for (i, ours) in ours.iter_mut().enumerate() {
            server.sql("postgres", "CHECKPOINT");
            let mine = runtime.block_on(ours.round(batches));
            rates[i].push(mine);
            ratios[i].push(mine / theirs);
        }
    }
    let theirs = median(&mut rates[WAYS.len()].clone());
    let mut good = true;
    for (i, (name, ..)) in WAYS.iter().enumerate() {
        let (mine, ratio) = (median(&mut rates[i]), median(&mut ratios[i]));
        good &= ratio >= MUST;
        println!(
            r#"{{"bench":"postgres append of {PER_APPEND} events, {CLIENTS} clients, {name}","peer_per_s":{theirs:.0},"ours_per_s":{mine:.0},"ratio":{ratio:.2},"must":{MUST},"aim":{AIM}}}"#
        );
    }
    drop(ours);
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What an event says: 200 bytes, as a compiler would write them, and no two the same.
fn text(number: u64) -> String {
    let noise = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut text = format!(
        "   Compiling package-{noise:016x} v{}.{}.{} (/src/target/debug/build/{:08x}/out) in {}.{:03}s with {} warnings",
        noise >> 60,
        noise >> 50 & 63,
        noise >> 40 & 63,
        noise as u32,
        noise >> 30 & 63,
        noise % 1000,
        noise % 17,
    );
    while text.len() < 140 {
        let _ = write!(text, ", {number} done");
    }
    text.truncate(140);
    text
}

/// A record of about 310 bytes whose event is one of 200.
fn record(client: u64, seq: u64, into: &mut String) {
    let id = id(client);
    let _ = writeln!(
        into,
        r#"{{"seq":{seq},"thread":"{id}","run":"{id}","ts":"2026-11-30T07:32:47.{:06}Z",{}}}"#,
        seq % 1_000_000,
        event(client, seq)
    );
}

/// An event of 200 bytes, without what only a record has.
fn event(client: u64, seq: u64) -> String {
    format!(r#""type":"log","state":"build","stream":"stdout","text":"{}""#, text(seq * CLIENTS + client))
}

fn id(client: u64) -> String {
    format!("0199c0de-7e57-7000-8000-00000000caf{client}")
}

/// Plain INSERTs.
struct Peer {
    clients: Vec<tokio_postgres::Client>,
    sql: String,
    next: u64,
}

impl Peer {
    async fn open(url: &str) -> Self {
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
            tokio::spawn(connection);
            clients.push(client);
        }
        let table = "CREATE TABLE events (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, data bytea NOT NULL)";
        clients[0].batch_execute(table).await.unwrap();
        let rows: Vec<String> = (1..=PER_APPEND).map(|i| format!("(${i})")).collect();
        Self { clients, sql: format!("INSERT INTO events (data) VALUES {}", rows.join(",")), next: 0 }
    }

    /// Gives events a second.
    async fn round(&mut self, batches: u64) -> f64 {
        let mut work = Vec::new();
        for (client, number) in self.clients.drain(..).zip(0..) {
            let insert = client.prepare(&self.sql).await.unwrap();
            let events: Vec<Vec<u8>> =
                (self.next..self.next + batches * PER_APPEND).map(|seq| event(number, seq).into_bytes()).collect();
            work.push((client, insert, events));
        }
        self.next += batches * PER_APPEND;
        let start = Instant::now();
        let mut tasks = JoinSet::new();
        for (client, insert, events) in work {
            tasks.spawn(async move {
                for batch in events.chunks(PER_APPEND as usize) {
                    let params: Vec<&(dyn ToSql + Sync)> = batch.iter().map(|event| event as _).collect();
                    assert_eq!(client.execute(&insert, &params).await.unwrap(), PER_APPEND);
                }
                client
            });
        }
        while let Some(client) = tasks.join_next().await {
            self.clients.push(client.unwrap());
        }
        (CLIENTS * batches * PER_APPEND) as f64 / start.elapsed().as_secs_f64()
    }
}

/// The store.
struct Ours {
    stores: Vec<Arc<PostgresStore>>,
    head: Seq,
    with_state: bool,
}

impl Ours {
    async fn open(url: &str, name: &str, each: bool, with_state: bool) -> Self {
        let schema: String = name.chars().filter(char::is_ascii_alphabetic).collect();
        let mut stores = Vec::new();
        for _ in 0..if each { CLIENTS } else { 1 } {
            let config = Config { schema: schema.clone(), ..Config::default() };
            stores.push(Arc::new(PostgresStore::open(url, config).await.unwrap()));
        }
        Self { stores, head: Seq::START, with_state }
    }

    /// Gives events a second.
    async fn round(&mut self, batches: u64) -> f64 {
        let mut work = Vec::new();
        for client in 0..CLIENTS {
            let blocks: Vec<Bytes> = (0..batches)
                .map(|i| {
                    let (mut lines, first) = (String::new(), self.head.0 + i * PER_APPEND + 1);
                    (first..first + PER_APPEND).for_each(|seq| record(client, seq, &mut lines));
                    lines.into()
                })
                .collect();
            work.push((client, blocks));
        }
        let start = Instant::now();
        let mut tasks = JoinSet::new();
        for (client, blocks) in work {
            let store = Arc::clone(&self.stores[client as usize % self.stores.len()]);
            tasks.spawn(append(store, client, self.head, blocks, self.with_state));
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
        self.head = self.head.plus(batches * PER_APPEND);
        (CLIENTS * batches * PER_APPEND) as f64 / start.elapsed().as_secs_f64()
    }
}

async fn append(store: Arc<PostgresStore>, client: u64, mut head: Seq, blocks: Vec<Bytes>, with_state: bool) {
    let (run, thread) = (RunId::new(id(client)).unwrap(), ThreadId::new(id(client)).unwrap());
    let mut fold = RunFold::new(run.clone(), thread.clone());
    for bytes in blocks {
        let size = bytes.len() as u64;
        let block = Block { run: run.clone(), first: head.next(), count: PER_APPEND, ts: Timestamp::default(), bytes };
        fold.wrote(block.last(), block.ts, block.count, size);
        let runs = if with_state { vec![fold.clone()] } else { vec![] };
        let append = Append { thread: thread.clone(), expected: head, blocks: vec![block], runs, claim: None };
        assert_eq!(store.append(vec![append]).await.unwrap(), [Appended::Stored]);
        head = head.plus(PER_APPEND);
    }
}

/// CPU seconds of all processes of the server.
fn cpu(server: &PgCluster) -> f64 {
    let mut total = 0.0;
    for e in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = e.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) else { continue };
        let Ok(cwd) = std::fs::read_link(format!("/proc/{pid}/cwd")) else { continue };
        if cwd != server.dir().join("data") {
            continue;
        }
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let f: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        total += (f[11].parse::<f64>().unwrap() + f[12].parse::<f64>().unwrap()) / 100.0;
    }
    total
}
