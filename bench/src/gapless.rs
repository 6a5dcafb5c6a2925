//! Ids without a hole or a double, for subscribers that connect anew after every hundred events, with more than 32,767
//! events a second on one thread (where Nchan's subscribers stall for good).

use std::{thread, time::Duration};

use anyhow::{Result, anyhow};

use crate::{
    Rounds,
    load::{Crowd, Plan, already_there, paced},
    peers::{Ours, Store},
    report,
};

const BATCH: usize = 100;
const REQUESTS_PER_S: u32 = 500;
const SUBSCRIBERS: usize = 4;
const RECONNECT_EVERY: u64 = 100;

pub(crate) fn bench(rounds: &Rounds) -> Result<()> {
    for (name, store) in [("memory", Store::Memory), ("disk", Store::Sqlite)] {
        let ours = Ours::start(store)?;
        let target = ours.target()?;
        let mut crowd = Crowd::new(Plan { reconnect_every: Some(RECONNECT_EVERY), ..Plan::default() })?;
        crowd.join(&target, SUBSCRIBERS)?;
        let published = thread::scope(|scope| {
            let publisher = scope.spawn(|| paced(&target, REQUESTS_PER_S, BATCH, rounds.window * 2));
            while !publisher.is_finished() {
                crowd.turn(Duration::from_millis(5))?;
            }
            publisher.join().map_err(|_| anyhow!("the publisher panicked"))?
        })?;
        // Each id was checked against the one before; so this many events are all of them.
        let all = already_there(&target) + published.messages;
        let last = crowd.until(all, Duration::from_secs(60))?;
        report::at_least(&format!("gapless, {name}: events a second"), published.per_second(), 32_768.0);
        report::figure(
            "gapless",
            &[
                ("store", name.into()),
                ("events_per_s", report::round(published.per_second()).into()),
                ("events", published.messages.into()),
                ("reconnects", crowd.reconnects.into()),
                (
                    "behind_ms",
                    report::round((last.saturating_duration_since(published.end)).as_secs_f64() * 1e3).into(),
                ),
            ],
        );
    }
    Ok(())
}
