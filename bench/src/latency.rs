//! Row 4: how long an event is under way at a modest pace, from before the publisher's write to behind a subscriber's
//! read.

use anyhow::Result;

use crate::{
    Rounds,
    load::{Target, fan_out, paced},
    peers::{Nchan, Ours, Store},
    report::{Comparison, Goal, median, percentile, round},
};

/// Subscribers, and events a second.
const PACES: [(usize, u32); 4] = [(1, 2000), (10, 1000), (100, 500), (1000, 50)];
/// The goals were set against one worker; at these paces a second one only adds a way between processes.
const PEER: &str = "Nchan, 1 worker";

pub(crate) fn bench(rounds: &Rounds, only: Option<&str>) -> Result<()> {
    for (subscribers, per_second) in PACES {
        if only.is_none_or(|only| only == format!("{subscribers}/{per_second}")) {
            compare(rounds, subscribers, per_second)?;
        }
    }
    Ok(())
}

fn compare(rounds: &Rounds, subscribers: usize, per_second: u32) -> Result<()> {
    let run = |target: &Target| -> Result<(f64, f64)> {
        let run = fan_out(target, subscribers, true, |target| paced(target, per_second, 1, rounds.window))?;
        Ok((percentile(&run.latencies_us, 0.5), percentile(&run.latencies_us, 0.99)))
    };
    let work = |which: &str| format!("{which} of {subscribers} subscribers at {per_second}/s");
    let mut p50 = Comparison::new(4, work("p50"), "µs", PEER, Goal::AtMost(1.7, 1.2));
    let mut p99 = Comparison::new(4, work("p99"), "µs", PEER, Goal::AtMost(1.4, 1.0));
    let (mut two_p50, mut two_p99, mut disk_p50, mut disk_p99) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds.count {
        let peer = Nchan::start(1)?.map(|nchan| run(&nchan.target())).transpose()?;
        let ours = run(&Ours::start(Store::Memory)?.target()?)?;
        p50.round(ours.0, peer.map(|peer| peer.0));
        p99.round(ours.1, peer.map(|peer| peer.1));
        if let Some(nchan) = Nchan::start(2)? {
            let two = run(&nchan.target())?;
            two_p50.push(two.0);
            two_p99.push(two.1);
        }
        let disk = run(&Ours::start(Store::Sqlite)?.target()?)?;
        disk_p50.push(disk.0);
        disk_p99.push(disk.1);
    }
    let beside = |two: &mut [f64], disk: &mut [f64]| {
        [("nchan_2_workers", round(median(two)).into()), ("ours_on_disk", round(median(disk)).into())]
    };
    p50.print("latency", &beside(&mut two_p50, &mut disk_p50));
    p99.print("latency", &beside(&mut two_p99, &mut disk_p99));
    Ok(())
}
