//! A subscriber that stops reading: what it costs the publishers and the server's memory, and whether it gets every
//! event when it reads again.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};

use crate::{
    load::{Crowd, Load, Plan, Published, Target, already_there, closed_loop},
    peers::{Ours, Store},
    report::{self, median, percentile, round},
};

/// Publishers, as fast as they are answered.
const PUBLISHERS: usize = 8;
/// Subscribers that read, all the time.
const READERS: usize = 10;
/// A window with and one without a stalled subscriber make a pair.
const WINDOW: Duration = Duration::from_secs(1);
/// In this time before a window the buffers of a stalled subscriber's socket fill up.
const FILL: Duration = Duration::from_millis(200);
/// Pairs are added while the change is not known to this many percent, up to so many times as many.
const PRECISE: f64 = 1.0;
const LONGER: u64 = 4;
/// A small buffer of the socket, so that the server feels at once that nobody reads.
const RECEIVE_BUFFER: usize = 16 * 1024;

pub(crate) fn bench(stall: Duration) -> Result<()> {
    let ours = Ours::start(Store::Sqlite)?;
    let target = ours.target()?;
    let mut scene = Scene { readers: Crowd::new(Plan::default())?, head: already_there(&target), target };
    scene.readers.join(&scene.target, READERS)?;
    scene.readers.all_begun()?;
    scene.warm_up(&ours)?;

    // Turns of windows with and without, until those with a stalled subscriber add up to the stall. Which of the two
    // comes first changes, as the machine may get slower or faster over time.
    let (mut changes, mut growths, mut highest_without) = (Vec::new(), Vec::new(), 0f64);
    let pairs = stall.as_secs().max(4);
    for pair in 0..pairs * LONGER {
        if pair >= pairs && uncertainty(&mut changes) < PRECISE {
            break;
        }
        let (mut with, mut without) = (None, None);
        for stalls in [pair % 2 == 0, pair % 2 != 0] {
            let stalled = stalls.then(|| scene.stalled()).transpose()?;
            scene.publish(FILL)?;
            let window = (scene.publish(WINDOW)?.per_second(), ours.memory()?.pss_mib);
            *(if stalls { &mut with } else { &mut without }) = Some(window);
            drop(stalled);
        }
        if let (Some((rate_with, memory_with)), Some((rate, memory))) = (with, without) {
            changes.push((rate_with / rate - 1.0) * 100.0);
            growths.push(memory_with - memory);
            highest_without = highest_without.max(memory);
        }
    }

    // One long stall, after which every event arrives.
    let began_at = scene.head;
    let mut stalled = scene.stalled()?;
    let (mut highest, end) = (0f64, Instant::now() + stall);
    while Instant::now() < end {
        scene.publish(WINDOW)?;
        highest = highest.max(ours.memory()?.pss_mib);
    }
    let owed = scene.head - began_at;
    let missing = owed - stalled.least();
    let begin = Instant::now();
    stalled.pause(false)?;
    let caught_up = stalled.until(owed, Duration::from_secs(120))? - begin;
    scene.readers.until(scene.head, Duration::from_secs(60))?;

    let (change, window_growth, growth) = (median(&mut changes), median(&mut growths), highest - highest_without);
    report::below("stalled: change of the publishers' rate in percent, either way", change.abs(), 2.0);
    report::below("stalled: growth of memory in MiB, pairs of windows", window_growth, 1.0);
    report::below("stalled: growth of memory in MiB, highest over the stall", growth, 1.0);
    report::figure(
        "stalled",
        &[
            ("stall_s", stall.as_secs().into()),
            ("pairs", changes.len().into()),
            ("rate_change_percent", round(change).into()),
            (
                "rate_change_quartiles",
                vec![round(percentile(&changes, 0.25)), round(percentile(&changes, 0.75))].into(),
            ),
            ("memory_growth_windows_mib", round(window_growth).into()),
            ("memory_growth_stall_mib", round(growth).into()),
            ("events_not_read_then", missing.into()),
            ("caught_up_ms", round(caught_up.as_secs_f64() * 1e3).into()),
        ],
    );
    Ok(())
}

/// How far a median may be off by chance, in 19 of 20 cases: as the notches of a box plot.
fn uncertainty(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    1.57 * (percentile(values, 0.75) - percentile(values, 0.25)) / (values.len() as f64).sqrt()
}

struct Scene {
    target: Target,
    readers: Crowd,
    /// Position of the last event.
    head: u64,
}

impl Scene {
    /// Publishes until the server's caches are full: its memory does not grow any more.
    fn warm_up(&mut self, ours: &Ours) -> Result<()> {
        let (mut highest, mut quiet) = (0f64, 0);
        for _ in 0..120 {
            self.publish(Duration::from_secs(1))?;
            let memory = ours.memory()?.pss_mib;
            quiet = if memory < highest + 0.1 { quiet + 1 } else { 0 };
            highest = highest.max(memory);
            if quiet == 5 {
                break;
            }
        }
        Ok(())
    }

    fn publish(&mut self, time: Duration) -> Result<Published> {
        let load = Load { connections: PUBLISHERS, batch: 1, time, messages: u64::MAX };
        let (target, readers) = (&self.target, &mut self.readers);
        let published = thread::scope(|scope| {
            let publisher = scope.spawn(|| closed_loop(target, &load));
            while !publisher.is_finished() {
                readers.turn(Duration::from_millis(5))?;
            }
            publisher.join().map_err(|_| anyhow!("the publisher panicked"))?
        })?;
        self.head += published.messages;
        Ok(published)
    }

    /// One that has followed up to here and now stops reading.
    fn stalled(&self) -> Result<Crowd> {
        let mut stalled = Crowd::new(Plan {
            last_event_id: Some(self.head.to_string()),
            after: self.head,
            receive_buffer: Some(RECEIVE_BUFFER),
            ..Plan::default()
        })?;
        stalled.join(&self.target, 1)?;
        stalled.all_begun()?;
        stalled.pause(true)?;
        Ok(stalled)
    }
}
