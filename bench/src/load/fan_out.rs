//! Publishers and subscribers of one target together.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};

use super::{Check, Crowd, Plan, Published, Target, thread_cpu};

/// How long subscribers do not look when nobody asks how late an event is.
///
/// A read costs as much as the write that it answers. Where every event is a write of its own, the tool would take half
/// the machine from the server by reading each at once; so it lets some of them gather.
const REST: Duration = Duration::from_millis(2);

/// What a crowd has seen of what was published.
#[derive(Debug)]
pub(crate) struct FanOut {
    pub(crate) published: Published,
    /// Events that reached a subscriber.
    pub(crate) delivered: u64,
    /// From the first request to the last delivery.
    pub(crate) seconds: f64,
    /// Microseconds from a publisher to a subscriber, sorted; empty when they were not asked for.
    pub(crate) latencies_us: Vec<f64>,
    /// Processor time of the load tool a second, in cores.
    pub(crate) tool_cores: f64,
}

impl FanOut {
    pub(crate) fn per_second(&self) -> f64 {
        self.delivered as f64 / self.seconds
    }
}

/// Lets subscribers wait, publishes, and ends when each of them has every event.
pub(crate) fn fan_out(
    target: &Target,
    subscribers: usize,
    latencies: bool,
    publish: impl FnOnce(&Target) -> Result<Published> + Send,
) -> Result<FanOut> {
    let mut crowd = Crowd::new(Plan { latencies, ..Plan::default() })?;
    crowd.join(target, subscribers)?;
    crowd.all_begun()?;
    let before = already_there(target);
    crowd.until(before, Duration::from_secs(30))?;
    let delivered_before = crowd.delivered;
    let cpu = thread_cpu();
    let (published, last) = thread::scope(|scope| -> Result<(Published, Instant)> {
        let publisher = scope.spawn(|| publish(target));
        while !publisher.is_finished() {
            crowd.turn(Duration::from_millis(5))?;
            if !latencies {
                thread::sleep(REST);
            }
        }
        let published = publisher.join().map_err(|_| anyhow!("the publisher panicked"))??;
        let last = crowd.until(before + published.messages, Duration::from_secs(120))?;
        Ok((published, last))
    })?;
    let seconds = last.max(published.end).duration_since(published.begin).as_secs_f64();
    let mut latencies_us: Vec<f64> = crowd.latencies.iter().map(|ns| *ns as f64 / 1e3).collect();
    latencies_us.sort_by(f64::total_cmp);
    Ok(FanOut {
        published,
        delivered: crowd.delivered - delivered_before,
        seconds,
        latencies_us,
        tool_cores: (thread_cpu() - cpu + published.cpu).as_secs_f64() / seconds,
    })
}

/// Events that a log begins with: ours tells that the run has started.
pub(crate) fn already_there(target: &Target) -> u64 {
    match target.check {
        Check::Ids => 1,
        Check::Numbers => 0,
    }
}
