//! Kill -9 at random moments, while eight publishers and a few others write one thread.
//!
//! Afterwards seq is dense, every acknowledged event is there, every event that any reader ever saw is there, the index
//! is the fold of the log, and the spool equals the log line by line.

mod check;
mod child;
mod jobs;

use std::{path::Path, time::Duration};

use check::Checker;
use child::Child;
use jobs::Runs;

/// How many kills, over both tests.
const KILLS: &str = "TAFFRAIL_KILLS";
const DEFAULT_KILLS: u64 = 40;
/// Kills in one folder, so that a log that was cut short many times is among what is cut short, and a fresh one too.
const ROUNDS: u64 = 10;
const SOON: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_run_written_by_eight_publishers() {
    println!("{}", survive(Runs::One).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_runs_on_one_thread() {
    println!("{}", survive(Runs::Many).await);
}

/// Says what happened, for people.
async fn survive(runs: Runs) -> String {
    let kills = std::env::var(KILLS).map_or(DEFAULT_KILLS, |kills| kills.parse().unwrap()) / 2;
    let mut random = jobs::Random::of_now();
    let (mut records, mut acks, mut seen) = (0, 0, 0);
    for first in (0..kills).step_by(usize::try_from(ROUNDS).unwrap()) {
        let dir = tempfile::tempdir().unwrap();
        let reader = Child::start("reader", runs, dir.path(), 0);
        let mut checker = Checker::new(runs, dir.path());
        for round in 0..ROUNDS.min(kills - first) {
            let writer = Child::start("writer", runs, dir.path(), round);
            acks += kill(&writer, &mut random, &mut checker, round).await;
            checker.saw(&reader).await;
            checker.check(round).await;
        }
        // Alive all the time, it learns of everything.
        let all = reader.until(|said| said.saw == checker.records()).await;
        assert!(all, "the reader saw {} of {} records", reader.counts().saw, checker.records());
        checker.saw(&reader).await;
        records += checker.records();
        seen += checker.seen;
    }
    format!("{kills} kills, seed {}: {records} records, {acks} acknowledgements, {seen} seen by readers", random.seed)
}

/// Lets the writer work for a while and kills it. How often it had acknowledged something.
async fn kill(writer: &Child, random: &mut jobs::Random, checker: &mut Checker, round: u64) -> u64 {
    if round % ROUNDS == 4 {
        // Once in a while not even the opening is finished.
        tokio::time::sleep(Duration::from_millis(1 + random.below(40))).await;
    } else {
        assert!(writer.until(|said| said.acks > 0).await, "the writer acknowledges nothing");
        tokio::time::sleep(Duration::from_micros(1000 * random.below(300) + random.below(1000))).await;
    }
    writer.kill();
    checker.acknowledged(writer, round);
    checker.saw(writer).await;
    writer.counts().acks
}

/// Where the writer and the checks find things.
fn store_path(dir: &Path) -> std::path::PathBuf {
    dir.join("taffrail.db")
}
