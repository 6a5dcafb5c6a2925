//! Other processes: this test binary, started again with a job to do.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    thread::{JoinHandle, spawn},
};

use taffrail_mcp_core::Seq;
use taffrail_relay::{Appended, Store};
use taffrail_testutils::store_suite::{append, block, put, thread_id};

use crate::server::open;

/// Names the job, the writer and the database, with spaces between.
const JOB: &str = "TAFFRAIL_STORE_TEST_JOB";

/// An append that a child says was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ack {
    pub(crate) thread: String,
    pub(crate) seq: u64,
    pub(crate) line: String,
}

/// A child, and what it says. Killed, as with `kill -9`, when dropped.
pub(crate) struct Writer {
    child: Child,
    acks: Option<JoinHandle<Vec<Ack>>>,
}

impl Writer {
    pub(crate) fn start(job: &str, url: &str, name: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child::job", "--nocapture", "--test-threads=1"])
            .env(JOB, format!("{job} {name} {url}"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let acks = spawn(move || {
            let (mut acks, mut text) = (Vec::new(), String::new());
            while stdout.read_line(&mut text).unwrap() > 0 {
                // A line without newline was cut by the kill.
                acks.extend(text.strip_suffix('\n').and_then(parse));
                text.clear();
            }
            acks
        });
        Self { child, acks: Some(acks) }
    }

    /// Kills it and gives all that it had said.
    pub(crate) fn kill(mut self) -> Vec<Ack> {
        self.child.kill().unwrap();
        self.acks()
    }

    /// Waits for it to end well.
    pub(crate) fn join(mut self) -> Vec<Ack> {
        assert!(self.child.wait().unwrap().success());
        self.acks()
    }

    fn acks(&mut self) -> Vec<Ack> {
        self.child.wait().unwrap();
        self.acks.take().unwrap().join().unwrap()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn parse(text: &str) -> Option<Ack> {
    // The test harness leaves its own words on the first line.
    let (_, ack) = text.split_once("ack ")?;
    let mut words = ack.splitn(3, ' ');
    let (thread, seq, line) = (words.next()?, words.next()?, words.next()?);
    Some(Ack { thread: thread.into(), seq: seq.parse().ok()?, line: line.into() })
}

/// Not a test by itself: what a child does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job() {
    let Ok(job) = std::env::var(JOB) else { return };
    let mut words = job.splitn(3, ' ');
    let mut next = || words.next().unwrap().to_owned();
    let (job, name, url) = (next(), next(), next());
    let store = open(&url).await;
    match job.as_str() {
        "once" => write(&store, "shared", &name, 0, 1).await,
        // Until it is killed: a thread that others write too, one of its own with blocks of all sizes, one that is
        // trimmed.
        "all" => {
            for i in 0.. {
                tokio::join!(
                    write(&store, "shared", &name, i, 1),
                    write(&store, &name, &name, i, 1 + i * i % 3000),
                    async {
                        write(&store, "trimmed", &name, i, 20).await;
                        if i % 5 == 4 {
                            let head = store.extent(thread_id("trimmed")).await.unwrap().head;
                            store.trim(thread_id("trimmed"), Seq(head.0 - head.0 / 4)).await.unwrap();
                        }
                    },
                );
            }
        }
        other => panic!("{other}"),
    }
}

/// Appends a block of `count` lines, renumbering until it is stored, and says so.
async fn write(store: &dyn Store, thread: &str, name: &str, i: u64, count: u64) {
    let mut head = store.extent(thread_id(thread)).await.unwrap().head.0;
    loop {
        let lines: Vec<_> = (1..=count).map(|n| format!("{name} {i} {thread} {}", head + n)).collect();
        match put(store, append(thread, head, vec![block(name, head + 1, &lines)])).await {
            Appended::Stored => {
                // One write, so that a line is said whole or not at all.
                println!("ack {thread} {} {}", head + 1, lines[0]);
                return;
            }
            Appended::Conflict { head: now } => head = now.0,
            claimed @ Appended::Claimed { .. } => panic!("{claimed:?}"),
        }
    }
}
