//! Row 10 of the performance goals: blocks of 100 events against bare rusqlite with one row an event.
//!
//! The peer gets its best form: the position is the rowid, prepared statements, WAL, `synchronous = FULL`, a hundred
//! rows a commit. Rounds alternate, and ratios are medians over the rounds. Prints one JSON line a comparison.
//! `EVENTS=10000000 cargo bench -p taffrail-store-sqlite` for the full size; the default is a million.
//! `DISK` names a folder on the disk to measure: commits one at a time are as fast as its `fdatasync`.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench reports and stops at the first failure")]

use std::{
    collections::VecDeque,
    hint::black_box,
    path::Path,
    time::{Duration, Instant},
};

use bytes::Bytes;
use rusqlite::Connection;
use taffrail_mcp_core::{RunFold, RunId, Seq, ThreadId, Timestamp};
use taffrail_relay::{Append, Appended, Block, ReadBlocks, Store};
use taffrail_store_sqlite::{Config, SqliteStore};

const PER_BLOCK: u64 = 100;
const PAGE: u64 = 200;
const ROUNDS: u64 = 10;
const PAGES_A_ROUND: usize = 2000;
const ID: &str = "0199c0de-7e57-7000-8000-00000000cafe";

fn main() {
    let events: u64 = std::env::var("EVENTS").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let disk = std::env::var("DISK").unwrap_or_else(|_| env!("CARGO_TARGET_TMPDIR").into());
    let dir = tempfile::tempdir_in(disk).unwrap();
    let mut peer = Peer::open(&dir.path().join("peer.db"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let ways = [
        ("one at a time", 1, false),
        ("one at a time, with the run's state", 1, true),
        ("8 in flight", 8, false),
        ("8 in flight, with the run's state", 8, true),
    ];
    let mut ours: Vec<_> = (0..ways.len()).map(|i| Ours::open(&dir.path().join(format!("ours{i}.db")))).collect();
    let a_round = events / ROUNDS / PER_BLOCK;
    let mut rates = vec![Vec::new(); ways.len()];
    for _ in 0..ROUNDS {
        let blocks: Vec<Bytes> = (0..a_round).map(|i| lines(peer.head + i * PER_BLOCK + 1)).collect();
        let theirs = peer.append(&blocks);
        for ((way, ours), rates) in ways.iter().zip(&mut ours).zip(&mut rates) {
            rates.push((theirs, runtime.block_on(ours.append(&blocks, way.1, way.2))));
        }
    }
    for ((way, _, _), times) in ways.iter().zip(&rates) {
        let rate = |time: Duration| (a_round * PER_BLOCK) as f64 / time.as_secs_f64();
        let peer = median(times.iter().map(|(peer, _)| rate(*peer)));
        let ours = median(times.iter().map(|(_, ours)| rate(*ours)));
        let ratio = median(times.iter().map(|(peer, ours)| peer.as_secs_f64() / ours.as_secs_f64()));
        println!(
            r#"{{"bench":"sqlite append of {PER_BLOCK} events, {way}","events":{events},"peer_per_s":{peer:.0},"ours_per_s":{ours:.0},"ratio":{ratio:.2},"must":1.5,"aim":5}}"#
        );
    }
    let size = |name: &str| std::fs::metadata(dir.path().join(name)).unwrap().len() / events;
    println!(r#"{{"bench":"sqlite bytes an event","peer":{},"ours":{}}}"#, size("peer.db"), size("ours0.db"));

    let ours = &ours[0];
    let mut random = 1u64;
    let mut cursor = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 20) % (events - PAGE)
    };
    let (mut theirs, mut mine, mut inline) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..5 {
        let cursors: Vec<u64> = (0..PAGES_A_ROUND).map(|_| cursor()).collect();
        theirs.extend(cursors.iter().map(|after| timed(|| peer.page(*after))));
        let read = async {
            for after in &cursors {
                let start = Instant::now();
                black_box(ours.page(*after).await);
                mine.push(start.elapsed());
            }
        };
        runtime.block_on(read);
        // Outside a runtime the store reads right here.
        inline.extend(cursors.iter().map(|after| timed(|| now(ours.page(*after)))));
    }
    for (way, mut mine) in [("in a runtime", mine), ("without a runtime", inline)] {
        theirs.sort_unstable();
        mine.sort_unstable();
        let at = |times: &[Duration], percent: usize| times[times.len() * percent / 100].as_nanos() as f64 / 1000.0;
        println!(
            r#"{{"bench":"sqlite page of {PAGE}, {way}","events":{events},"peer_p50_us":{:.1},"ours_p50_us":{:.1},"peer_p99_us":{:.1},"ours_p99_us":{:.1},"ratio_p50":{:.2},"must":1.3,"aim":1}}"#,
            at(&theirs, 50),
            at(&mine, 50),
            at(&theirs, 99),
            at(&mine, 99),
            at(&mine, 50) / at(&theirs, 50),
        );
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    black_box(work());
    start.elapsed()
}

/// The value of a future that does all its work when it is first polled.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => unreachable!("a read outside a runtime waits for nothing"),
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A block's worth of log records of about 310 bytes, as a compiler would write them.
fn lines(first: u64) -> Bytes {
    let mut text = String::new();
    for seq in first..first + PER_BLOCK {
        let noise = seq.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        text += &format!(
            "{{\"seq\":{seq},\"thread\":\"{ID}\",\"run\":\"{ID}\",\"ts\":\"2026-11-30T07:32:47.{:06}Z\",\"type\":\"log\",\
             \"state\":\"build\",\"stream\":\"stdout\",\"text\":\"   Compiling package-{:016x} v{}.{}.{} \
             (/src/target/debug/build/{:08x}/out) in {}.{:03}s with {} warnings\"}}\n",
            seq % 1_000_000,
            noise,
            noise >> 60,
            noise >> 50 & 63,
            noise >> 40 & 63,
            noise as u32,
            noise >> 30 & 63,
            noise % 1000,
            noise % 17,
        );
    }
    text.into()
}

/// Bare rusqlite.
struct Peer {
    conn: Connection,
    head: u64,
}

impl Peer {
    fn open(path: &Path) -> Self {
        let conn = Connection::open(path).unwrap();
        let sql = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                   CREATE TABLE events (seq INTEGER PRIMARY KEY, data BLOB NOT NULL)";
        conn.execute_batch(sql).unwrap();
        Self { conn, head: 0 }
    }

    fn append(&mut self, blocks: &[Bytes]) -> Duration {
        let start = Instant::now();
        for block in blocks {
            let tx = self.conn.transaction().unwrap();
            {
                let mut insert = tx.prepare_cached("INSERT INTO events (seq, data) VALUES (?, ?)").unwrap();
                for line in block.split_inclusive(|b| *b == b'\n') {
                    self.head += 1;
                    insert.execute((self.head, line)).unwrap();
                }
            }
            tx.commit().unwrap();
        }
        start.elapsed()
    }

    fn page(&self, after: u64) -> Vec<(u64, Vec<u8>)> {
        let sql = "SELECT seq, data FROM events WHERE seq > ? ORDER BY seq LIMIT ?";
        let mut select = self.conn.prepare_cached(sql).unwrap();
        let page = select.query_map((after, PAGE), |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let page: Vec<_> = page.collect::<Result<_, _>>().unwrap();
        assert_eq!(page.len() as u64, PAGE);
        page
    }
}

/// The store.
struct Ours {
    store: SqliteStore,
    run: RunId,
    thread: ThreadId,
    head: Seq,
}

impl Ours {
    fn open(path: &Path) -> Self {
        let store = SqliteStore::open(path, Config::default()).unwrap();
        Self { store, run: RunId::new(ID).unwrap(), thread: ThreadId::new(ID).unwrap(), head: Seq::START }
    }

    async fn append(&mut self, blocks: &[Bytes], in_flight: usize, with_state: bool) -> Duration {
        let start = Instant::now();
        let mut waiting = VecDeque::new();
        let mut fold = RunFold::new(self.run.clone(), self.thread.clone());
        for bytes in blocks {
            let (run, first) = (self.run.clone(), self.head.next());
            let block = Block { run, first, count: PER_BLOCK, ts: Timestamp::default(), bytes: bytes.clone() };
            fold.wrote(block.last(), block.ts, block.count, bytes.len() as u64);
            let append = Append {
                thread: self.thread.clone(),
                expected: self.head,
                blocks: vec![block],
                runs: if with_state { vec![fold.clone()] } else { vec![] },
                claim: None,
            };
            self.head = self.head.plus(PER_BLOCK);
            waiting.push_back(self.store.append(vec![append]));
            if waiting.len() >= in_flight {
                assert_eq!(waiting.pop_front().unwrap().await.unwrap(), [Appended::Stored]);
            }
        }
        for answer in waiting {
            assert_eq!(answer.await.unwrap(), [Appended::Stored]);
        }
        start.elapsed()
    }

    async fn page(&self, after: u64) -> Vec<Bytes> {
        let (thread, after) = (self.thread.clone(), Seq(after));
        let until = after.plus(PAGE);
        let query = ReadBlocks { thread, after, until, run: None, max_bytes: usize::MAX, backwards: false };
        let blocks = self.store.read(query).await.unwrap();
        let mut page = Vec::with_capacity(PAGE as usize);
        for block in blocks.iter().filter_map(|block| block.after(after)) {
            page.extend(block.lines().take(PAGE as usize - page.len()));
        }
        assert_eq!(page.len() as u64, PAGE);
        page
    }
}
