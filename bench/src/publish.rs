//! Durable publish: every acknowledgement after the commit is on disk.

use std::{collections::VecDeque, sync::Arc, time::Instant};

use anyhow::Result;
use taffrail_mcp_core::{EventBatch, EventSink, Message, RunId, ThreadId};
use taffrail_relay::{Config, Relay};
use taffrail_store_sqlite::SqliteStore;

use crate::{
    peers,
    report::{self, Comparison, Goal},
};

const PUBLISHERS: u64 = 8;
/// Events handed over together, and how many of such hand-overs a publisher has unacknowledged: 800 events in flight
/// each, where Redis' c50 P16 has 800 in all.
const BATCH: u64 = 100;
const IN_FLIGHT: usize = 8;

pub(crate) fn bench(rounds: usize, events: u64) -> Result<()> {
    let redis = peers::Redis::start()?;
    let work = "in process, 8 writers, on disk";
    let mut comparison = Comparison::new(8, work, "events/s", "Redis always c50 P16", Goal::AtLeast(2.7, 5.0));
    let mut rates = Vec::new();
    for _ in 0..rounds {
        let peer = redis.as_ref().map(|redis| redis.publish(1_000_000)).transpose()?;
        let rate = round(events)?;
        comparison.round(rate, peer);
        rates.push(rate);
    }
    report::at_least("publish: events a second", report::median(&mut rates), 1e6);
    comparison.print("publish", &[]);
    Ok(())
}

fn round(events: u64) -> Result<f64> {
    let dir = tempfile::tempdir_in(peers::scratch()?)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let store = Arc::new(SqliteStore::open(dir.path().join("bench.db"), Default::default())?);
        let relay = Relay::start(store, Config::default())?;
        let thread = ThreadId::new("bench")?;
        let publisher = relay.publisher(&thread, &RunId::new("bench")?).await?;
        let begin = Instant::now();
        let tasks: Vec<_> = (0..PUBLISHERS)
            .map(|number| {
                let publisher = publisher.clone();
                tokio::spawn(async move {
                    let mut batch = EventBatch::new();
                    let mut marks = VecDeque::new();
                    for sent in (0..events / PUBLISHERS).step_by(BATCH as usize) {
                        for i in sent..sent + BATCH {
                            batch.push(event(number, i));
                        }
                        publisher.send(&mut batch).await;
                        marks.push_back(publisher.mark());
                        if marks.len() > IN_FLIGHT
                            && let Some(mark) = marks.pop_front()
                        {
                            publisher.durable(mark).await?;
                        }
                    }
                    publisher.flush().await
                })
            })
            .collect();
        for task in tasks {
            task.await??;
        }
        let seconds = begin.elapsed().as_secs_f64();
        let head = relay.extent(&thread).await?.head.0;
        anyhow::ensure!(head == events / PUBLISHERS / BATCH * BATCH * PUBLISHERS, "{head} of {events} are stored");
        relay.close().await;
        Ok(head as f64 / seconds)
    })
}

/// An event whose body is 200 bytes.
fn event(publisher: u64, number: u64) -> taffrail_mcp_core::Event {
    const LETTERS: &str =
        "the quick brown fox jumps over the lazy dog while the five boxing wizards jump quickly and pack my box";
    let text = format!("{publisher} {number:010} {LETTERS} {:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    Message { role: "assistant".into(), text, delta: true }.into()
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_event_has_about_200_bytes() {
        let mut body = Vec::new();
        super::event(7, 123_456).encode_body(&mut body);
        assert!((190..=210).contains(&body.len()), "{}", body.len());
    }
}
