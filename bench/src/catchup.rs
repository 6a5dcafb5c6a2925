//! Row 5: readers that come back with a `Last-Event-ID` and want the 10,000 events after it.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::{
    Rounds,
    load::{Crowd, Load, Plan, Target, closed_loop},
    peers::{Nchan, Ours, Store},
    report::{Comparison, Goal, median, round},
};

const EVENTS: u64 = 10_000;
const PEER: &str = "Nchan";

pub(crate) fn bench(rounds: &Rounds) -> Result<()> {
    let comparison = |who, must, aim| Comparison::new(5, who, "readers/s", PEER, Goal::AtLeast(must, aim));
    let mut one = comparison("10,000 events on disk, one reader", 15.0, 40.0);
    let mut many = comparison("10,000 events on disk, a hundred readers at once", 8.0, 15.0);
    let (mut one_ms, mut many_ms, mut one_memory_ms, mut many_memory_ms) = Default::default();
    for _ in 0..rounds.count {
        let mut peer = None;
        if let Some(nchan) = Nchan::start(1)? {
            let target = nchan.target();
            publish(&target, EVENTS + 1)?;
            let first = nchan.first_id()?;
            peer = Some((read(&target, &first, 1)?, read(&target, &first, 100)?));
        }
        let disk = ours(Store::Sqlite)?;
        one.round(1.0 / disk.0, peer.map(|peer| 1.0 / peer.0));
        many.round(100.0 / disk.1, peer.map(|peer| 100.0 / peer.1));
        let memory = ours(Store::Memory)?;
        for (all, seconds) in [
            (&mut one_ms, disk.0),
            (&mut many_ms, disk.1),
            (&mut one_memory_ms, memory.0),
            (&mut many_memory_ms, memory.1),
        ] {
            let all: &mut Vec<f64> = all;
            all.push(seconds * 1e3);
        }
    }
    let beside = |disk: &mut [f64], memory: &mut [f64]| {
        [("ours_ms", round(median(disk)).into()), ("ours_in_memory_ms", round(median(memory)).into())]
    };
    one.print("catchup", &beside(&mut one_ms, &mut one_memory_ms));
    many.print("catchup", &beside(&mut many_ms, &mut many_memory_ms));
    Ok(())
}

/// Seconds for one reader and for a hundred.
fn ours(store: Store) -> Result<(f64, f64)> {
    let ours = Ours::start(store)?;
    let target = ours.target()?;
    publish(&target, EVENTS)?;
    // The first event is that the run has started.
    Ok((read(&target, "1", 1)?, read(&target, "1", 100)?))
}

/// One publisher, so that Nchan, whose numbers end at 32,767 a second, is never asked for more.
fn publish(target: &Target, messages: u64) -> Result<()> {
    let load = Load { connections: 1, batch: 1, time: Duration::MAX, messages };
    closed_loop(target, &load)?;
    Ok(())
}

/// Seconds from the first connection to the last event of all readers.
fn read(target: &Target, last_event_id: &str, readers: usize) -> Result<f64> {
    // Both begin behind the first one.
    let plan = Plan { last_event_id: Some(last_event_id.to_owned()), after: 1, ..Plan::default() };
    let mut crowd = Crowd::new(plan)?;
    let begin = Instant::now();
    crowd.join(target, readers)?;
    let last = crowd.until(EVENTS, Duration::from_secs(120))?;
    Ok((last - begin).as_secs_f64())
}
