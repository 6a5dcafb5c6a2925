//! Ten thousand subscribers of a hundred threads, with one event a second on one of them.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, ensure};

use crate::{
    load::{Connection, Crowd, Plan, Target, Template, now_ns, raise_open_files},
    peers::{Ours, Store},
    report::{self, percentile, round},
};

const SUBSCRIBERS: usize = 10_000;
const THREADS: usize = 100;

pub(crate) fn bench(window: Duration) -> Result<()> {
    let allowed = raise_open_files()?;
    ensure!(allowed > SUBSCRIBERS as u64 + 100, "{allowed} open files are too few; raise the hard limit (ulimit -Hn)");
    let ours = Ours::start(Store::Sqlite)?;
    let mut crowd = Crowd::new(Plan { latencies: true, ..Plan::default() })?;
    let mut targets = Vec::new();
    let begin = Instant::now();
    for number in 0..THREADS {
        let name = format!("bench-{number}");
        let target = ours.run(&name)?.target(&name);
        crowd.join(&target, SUBSCRIBERS / THREADS)?;
        targets.push(target);
    }
    // The start of the run is the first event of each.
    crowd.until(1, Duration::from_secs(60))?;
    let connected = begin.elapsed();
    let empty = crowd.delivered;

    let (cpu, begin) = (ours.server.cpu(), Instant::now());
    let sent = thread::scope(|scope| {
        let publisher = scope.spawn(|| one_a_second(&targets, window));
        while !publisher.is_finished() {
            crowd.turn(Duration::from_millis(20))?;
        }
        publisher.join().map_err(|_| anyhow!("the publisher panicked"))?
    })?;
    let share = (ours.server.cpu() - cpu).as_secs_f64() / begin.elapsed().as_secs_f64() * 100.0;
    let owed = empty + sent * (SUBSCRIBERS / THREADS) as u64;
    settle(&mut crowd, owed)?;
    let mut quiet: Vec<f64> = crowd.latencies.drain(..).map(|ns| ns as f64 / 1e6).collect();

    // And once one event for everybody.
    for (target, number) in targets.iter().zip(1000..) {
        publish(target, number)?;
    }
    settle(&mut crowd, owed + SUBSCRIBERS as u64)?;
    let mut all: Vec<f64> = crowd.latencies.drain(..).map(|ns| ns as f64 / 1e6).collect();
    quiet.sort_by(f64::total_cmp);
    all.sort_by(f64::total_cmp);

    report::below("idle: percent of a core", share, 20.0);
    report::below("idle: slowest delivery in milliseconds", percentile(&quiet, 1.0), 1000.0);
    report::below("idle: slowest delivery in milliseconds, one event for everybody", percentile(&all, 1.0), 1000.0);
    report::figure(
        "idle",
        &[
            ("subscribers", SUBSCRIBERS.into()),
            ("core_percent", round(share).into()),
            ("connect_s", round(connected.as_secs_f64()).into()),
            ("p50_ms", round(percentile(&quiet, 0.5)).into()),
            ("max_ms", round(percentile(&quiet, 1.0)).into()),
            ("everybody_max_ms", round(percentile(&all, 1.0)).into()),
            ("memory_mib", round(ours.memory()?.pss_mib).into()),
            ("server_open_files", ours.server.open_files().context("no limits")?.into()),
        ],
    );
    Ok(())
}

/// One event a second, each on another thread.
fn one_a_second(targets: &[Target], window: Duration) -> Result<u64> {
    let mut sent = 0;
    for (target, number) in targets.iter().cycle().step_by(37).zip(1..=window.as_secs()) {
        thread::sleep(Duration::from_secs(1));
        publish(target, number)?;
        sent += 1;
    }
    Ok(sent)
}

fn publish(target: &Target, number: u64) -> Result<()> {
    let mut template = Template::new(0, 1, true);
    let body = template.stamp(number, now_ns());
    Connection::open(target.addr)?.post(&target.publish, "application/x-ndjson", body)?.success()
}

fn settle(crowd: &mut Crowd, delivered: u64) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(10);
    while crowd.delivered < delivered {
        crowd.turn(Duration::from_millis(20))?;
        ensure!(Instant::now() < deadline, "only {} of {delivered} events were delivered", crowd.delivered);
    }
    Ok(())
}
