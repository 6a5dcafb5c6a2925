//! Row 7: events taken in over HTTP, each acknowledged when it is on disk.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::{
    Rounds,
    load::{Load, closed_loop},
    peers::{Nats, Ours, Redis, Store},
    report::{Comparison, Goal, median, round},
};

const CONNECTIONS: usize = 8;
const BATCH: usize = 100;
/// Unacknowledged messages of the NATS publisher.
const NATS_IN_FLIGHT: u64 = 1024;

pub(crate) fn bench(rounds: &Rounds) -> Result<()> {
    let work = "100 events a POST, 8 connections, on disk";
    let mut redis = Comparison::new(7, work, "events/s", "Redis always c50 P16", Goal::AtLeast(1.0, 2.0));
    let mut nats = Comparison::new(7, work, "events/s", "NATS async", Goal::AtLeast(2.0, 4.0));
    let mut tool = Vec::new();
    for _ in 0..rounds.count {
        // As long as ours, more or less.
        let requests = (rounds.window.as_secs_f64() * 300_000.0) as u64;
        let redis_rate = Redis::start()?.map(|redis| redis.publish(requests)).transpose()?;
        let (ours, cores) = ours(rounds.window)?;
        let nats_rate = Nats::start()?.map(|nats| nats.publish(NATS_IN_FLIGHT, rounds.window)).transpose()?;
        redis.round(ours, redis_rate);
        nats.round(ours, nats_rate);
        tool.push(cores);
    }
    let tool = [("tool_cores", round(median(&mut tool)).into())];
    redis.print("ingest", &tool);
    nats.print("ingest", &tool);
    Ok(())
}

/// Events a second, and cores that the tool took.
fn ours(time: Duration) -> Result<(f64, f64)> {
    let ours = Ours::start(Store::Sqlite)?;
    let run = ours.run("bench")?;
    let load = Load { connections: CONNECTIONS, batch: BATCH, time, messages: u64::MAX };
    let published = closed_loop(&run.target("bench"), &load)?;
    let head = run.head()?;
    ensure!(head == published.messages + 1, "{head} events are stored of {} and the run's start", published.messages);
    let cores = published.cpu.as_secs_f64() / (published.end - published.begin).as_secs_f64();
    Ok((published.per_second(), cores))
}
