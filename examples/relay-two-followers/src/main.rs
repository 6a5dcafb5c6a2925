//! One log, one follower from the beginning and one that comes later.
//!
//! ```sh
//! cargo run -p relay-two-followers
//! ```
//!
//! A follower is a position, not a queue: the second one was not there when the first notes were written, asks for what
//! comes after a mark, and gets the same bytes.

#![expect(clippy::print_stdout, reason = "what the example shows")]

use std::sync::Arc;

use anyhow::Result;
use taffrail_mcp_core::{EventSink, Note, RunId, Seq, Start, ThreadId};
use taffrail_relay::{Config, Delivery, Follower, MemoryStore, Relay};

#[tokio::main]
async fn main() -> Result<()> {
    let relay = Relay::start(Arc::new(MemoryStore::new()), Config::default())?;
    let (thread, run) = (ThreadId::new("deploys")?, RunId::new("run-1")?);
    let publisher = relay.publisher(&thread, &run).await?;

    let first = relay.follow(&thread, None, Start::Beginning).await?;
    let reading = tokio::spawn(read_to(first, Seq(5)));
    for text in ["build", "test", "pack", "sign", "publish"] {
        publisher.emit(Note::info(text).into());
    }
    // Whoever needs to know that it is durable asks; nobody else waits for the disk.
    publisher.flush().await?;

    let second = relay.follow(&thread, None, Start::After(Seq(3))).await?;
    let (all, rest) = (reading.await??, read_to(second, Seq(5)).await?);
    print!("from the beginning:\n{all}after 3:\n{rest}");
    relay.close().await;
    Ok(())
}

/// The lines from a follower's position up to `end`, as they stand in the log.
async fn read_to(mut follower: Follower, end: Seq) -> Result<String> {
    let mut lines = String::new();
    while follower.position() < end {
        match follower.next().await? {
            Delivery::Blocks(blocks) => blocks.iter().for_each(|b| lines.push_str(&String::from_utf8_lossy(&b.bytes))),
            Delivery::Gap(gap) => lines.push_str(&format!("{} to {} can no longer be had\n", gap.from, gap.to)),
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn both_followers_get_the_same_lines() {
        let relay = Relay::start(Arc::new(MemoryStore::new()), Config::default()).unwrap();
        let (thread, run) = (ThreadId::new("t").unwrap(), RunId::new("r").unwrap());
        let publisher = relay.publisher(&thread, &run).await.unwrap();
        ["a", "b", "c"].into_iter().for_each(|text| publisher.emit(Note::info(text).into()));
        let mut read = Vec::new();
        for start in [Start::Beginning, Start::After(Seq(1))] {
            read.push(read_to(relay.follow(&thread, None, start).await.unwrap(), Seq(3)).await.unwrap());
        }
        assert!(read[0].starts_with("{\"seq\":1,\"thread\":\"t\",\"run\":\"r\","), "{}", read[0]);
        assert!(read[0].ends_with(&read[1]) && read[1].starts_with("{\"seq\":2,"), "{read:?}");
    }
}
