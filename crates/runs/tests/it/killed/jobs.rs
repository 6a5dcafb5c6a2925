//! What the children do.

use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use taffrail_mcp_core::{
    Event, EventBatch, EventSink, LogLine, Note, RunId, RunStart, Start, StateKind, StateStart, Stream, ThreadId,
};
use taffrail_relay::{Claim, Config, Delivery, Publisher, Relay};
use taffrail_spool::{Limits, RelaySource, Spools};
use taffrail_store_sqlite::SqliteStore;

/// Tells a child what to do: job, runs, round, folder.
pub(super) const JOB: &str = "TAFFRAIL_RUNS_TEST_JOB";
/// Publishers with a task each.
pub(super) const PUBLISHERS: usize = 8;
/// One more writes with [`Relay::commit`], beside them.
pub(super) const WRITERS: usize = PUBLISHERS + 1;
/// A child whose parent is gone ends by itself.
const LIFETIME: Duration = Duration::from_secs(120);
/// Small files, so that rotations are among what is cut short; nothing is dropped.
pub(super) const LIMITS: Limits =
    Limits { file_bytes: 200 << 10, run_bytes: 1 << 40, total_bytes: 1 << 40, age: Duration::from_secs(3600) };

/// How the publishers share the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Runs {
    One,
    Many,
}

impl Runs {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Many => "many",
        }
    }

    /// The run that a publisher writes to.
    pub(super) fn of(self, publisher: usize) -> RunId {
        let id = match self {
            Self::One => "thread".to_owned(),
            Self::Many => format!("run-{publisher}"),
        };
        RunId::new(id).unwrap()
    }

    pub(super) fn all(self) -> Vec<RunId> {
        let mut all: Vec<_> = (0..WRITERS).map(|publisher| self.of(publisher)).collect();
        all.dedup();
        all
    }
}

pub(super) fn thread() -> ThreadId {
    ThreadId::new("thread").unwrap()
}

/// Numbers that differ from one run of the tests to the next.
pub(super) struct Random {
    pub(super) seed: u64,
    state: u64,
}

impl Random {
    pub(super) fn of_now() -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        Self::new(u64::from(now.subsec_nanos()))
    }

    fn new(seed: u64) -> Self {
        Self { seed, state: seed }
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % limit
    }
}

/// Says something to the parent in one write. Without a parent there is nothing left to do.
fn say(words: &[u8]) {
    if std::io::stdout().lock().write_all(words).is_err() {
        std::process::exit(0);
    }
}

/// Not a test by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job() {
    let Ok(job) = std::env::var(JOB) else { return };
    let mut words = job.splitn(4, ' ');
    let mut next = || words.next().unwrap();
    let (job, runs, round, dir) = (next(), next(), next().parse().unwrap(), PathBuf::from(next()));
    let runs = if runs == "one" { Runs::One } else { Runs::Many };
    // The harness leaves its own words on the first line.
    say(b"\n");
    let store = SqliteStore::open(super::store_path(&dir), Default::default()).unwrap();
    let relay = Relay::start(Arc::new(store), Config::default()).unwrap();
    let work = async {
        match job {
            "reader" => read(&relay).await,
            "writer" => write(&relay, runs, round, &dir).await,
            other => panic!("{other}"),
        }
    };
    let _ = tokio::time::timeout(LIFETIME, work).await;
}

/// Follows the thread from its beginning and repeats it.
async fn read(relay: &Relay) {
    let mut follower = relay.follow(&thread(), None, Start::Beginning).await.unwrap();
    loop {
        let Delivery::Blocks(blocks) = follower.next().await.unwrap() else { panic!("a gap") };
        let mut words = Vec::new();
        for line in blocks.iter().flat_map(|block| block.lines().collect::<Vec<_>>()) {
            words.extend_from_slice(b"saw ");
            words.extend_from_slice(&line);
        }
        say(&words);
    }
}

async fn write(relay: &Relay, runs: Runs, round: u64, dir: &Path) {
    let spools = Spools::new(dir.join("spool"), LIMITS);
    let mut tasks = tokio::task::JoinSet::new();
    for run in runs.all() {
        let start = RunStart { machine: "m".into(), depth: 0, entry: "s".into(), resumed: round > 0, external: false };
        relay.commit(&thread(), &run, &[start.into()], None).await.unwrap();
        spools.attach(&run, RelaySource::new(relay.clone(), thread(), run.clone())).await.unwrap();
    }
    for me in 0..PUBLISHERS {
        let publisher = relay.publisher(&thread(), &runs.of(me)).await.unwrap();
        tasks.spawn(publish(publisher, round, me));
    }
    tasks.spawn(commit(relay.clone(), runs.of(PUBLISHERS), round));
    // A reader in the same process sees what has not even left memory.
    let reader = relay.clone();
    tasks.spawn(async move { read(&reader).await });
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
}

/// `round publisher n`, and some weight.
fn text(random: &mut Random, round: u64, me: usize, n: &mut u64) -> String {
    let long = if random.below(10) == 0 { 3000 } else { 100 };
    let pad = "x".repeat(usize::try_from(random.below(long)).unwrap());
    *n += 1;
    format!("{round} {me} {n} {pad}")
}

async fn publish(publisher: Publisher, round: u64, me: usize) {
    let mut random = Random::new(round * 100 + me as u64);
    let (mut batch, mut n) = (EventBatch::new(), 0);
    loop {
        for _ in 0..1 + random.below(8) {
            match random.below(8) {
                0 => {
                    let (machine, state) = ("m".to_owned(), format!("s{me}"));
                    let start = StateStart { machine, depth: 0, state, step: n, kind: StateKind::Run };
                    publisher.emit(start.into());
                }
                1..4 => {
                    for _ in 0..1 + random.below(20) {
                        let line = text(&mut random, round, me, &mut n);
                        batch.push_line(&LogLine::new("s", Stream::Stdout, line.as_bytes()));
                    }
                    publisher.send(&mut batch).await;
                }
                _ => publisher.emit(Note::info(text(&mut random, round, me, &mut n)).into()),
            }
        }
        let mark = publisher.mark();
        publisher.durable(mark).await.unwrap();
        say(format!("ack {me} {n}\n").as_bytes());
    }
}

async fn commit(relay: Relay, run: RunId, round: u64) {
    let mut random = Random::new(round);
    let mut n = 0;
    loop {
        let event = Event::from(Note::info(text(&mut random, round, PUBLISHERS, &mut n)));
        let claim = Claim { key: format!("{round} {n}"), value: String::new() };
        relay.commit(&thread(), &run, &[event], Some(claim)).await.unwrap();
        say(format!("ack {PUBLISHERS} {n}\n").as_bytes());
        tokio::time::sleep(Duration::from_millis(random.below(20))).await;
    }
}
