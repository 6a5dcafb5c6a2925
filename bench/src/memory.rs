//! Row 6: what a thousand subscribers take of a server's memory.
//!
//! The difference between the server with nobody and with a thousand that have been given one event and then nothing,
//! as proportional set size over all its processes. What the kernel keeps for the sockets is not in it.

use std::{thread, time::Duration};

use anyhow::Result;

use crate::{
    Rounds,
    load::{Crowd, Load, Plan, Target, already_there, closed_loop},
    peers::{Memory, Nchan, Ours, Store},
    report::{Comparison, Goal, median, round},
};

const SUBSCRIBERS: usize = 1000;

pub(crate) fn bench(rounds: &Rounds) -> Result<()> {
    let work = "1000 idle subscribers, growth";
    let mut growth = Comparison::new(6, work, "MiB", "Nchan, 1 worker", Goal::AtMost(2.5, 1.7));
    let (mut total, mut peer_total, mut rss) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds.count {
        let mut peer = None;
        if let Some(nchan) = Nchan::start(1)? {
            let (before, after) = measure(&nchan.target(), || nchan.memory())?;
            peer = Some(after.pss_mib - before.pss_mib);
            peer_total.push(after.pss_mib);
        }
        let ours = Ours::start(Store::Memory)?;
        let (before, after) = measure(&ours.target()?, || ours.memory())?;
        growth.round(after.pss_mib - before.pss_mib, peer);
        total.push(after.pss_mib);
        rss.push(after.rss_mib - before.rss_mib);
    }
    growth.print(
        "memory",
        &[
            ("ours_total_mib", round(median(&mut total)).into()),
            ("peer_total_mib", round(median(&mut peer_total)).into()),
            ("ours_rss_growth_mib", round(median(&mut rss)).into()),
        ],
    );
    Ok(())
}

fn measure(target: &Target, memory: impl Fn() -> Result<Memory>) -> Result<(Memory, Memory)> {
    let publish = |messages| closed_loop(target, &Load { connections: 1, batch: 1, time: Duration::MAX, messages });
    // What the first event and the first subscriber ever take is not what a subscriber takes.
    publish(1)?;
    let mut first = Crowd::new(Plan::default())?;
    first.join(target, 1)?;
    first.until(already_there(target) + 1, Duration::from_secs(10))?;
    drop(first);
    thread::sleep(Duration::from_millis(300));
    let before = memory()?;
    let mut crowd = Crowd::new(Plan::default())?;
    crowd.join(target, SUBSCRIBERS)?;
    crowd.until(already_there(target) + 1, Duration::from_secs(30))?;
    thread::sleep(Duration::from_millis(300));
    let after = memory()?;
    Ok((before, after))
}
