//! The store that `docs/store-from-scratch.md` builds, with a relay on it.
//!
//! ```sh
//! cargo run -p relay-store-from-scratch
//! ```

#![expect(clippy::print_stdout, reason = "what the example shows")]

mod store;

use std::sync::Arc;

use anyhow::Result;
use taffrail_mcp_core::{EventSink, Note, RunId, ThreadId};
use taffrail_relay::{Config, PageQuery, Relay};

use store::Notebook;

#[tokio::main]
async fn main() -> Result<()> {
    let relay = Relay::start(Arc::new(Notebook::default()), Config::default())?;
    let (thread, run) = (ThreadId::new("notes")?, RunId::new("run-1")?);
    let publisher = relay.publisher(&thread, &run).await?;
    ["one", "two", "three"].into_iter().for_each(|text| publisher.emit(Note::info(text).into()));
    publisher.flush().await?;
    for line in relay.page(&thread, &PageQuery::default()).await?.lines {
        print!("{}", String::from_utf8_lossy(&line));
    }
    relay.close().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_a_store() {
        taffrail_testutils::store_suite::run_all(|| Arc::new(Notebook::default())).await;
    }

    #[test]
    fn the_guide_shows_the_code() {
        let guide = include_str!("../../../docs/store-from-scratch.md");
        let blocks = guide.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next());
        let shown = blocks.collect::<Vec<_>>().join("\n");
        assert!(shown == include_str!("store.rs"), "src/store.rs is not what the guide shows");
    }
}
