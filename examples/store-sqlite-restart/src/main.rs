//! A log that is still there when its program starts again.
//!
//! ```sh
//! cargo run -p store-sqlite-restart            # twice in one process, in a folder that goes away
//! cargo run -p store-sqlite-restart -- app.db  # every start adds a line
//! ```

#![expect(clippy::print_stdout, reason = "what the example shows")]

use std::{path::Path, sync::Arc};

use anyhow::Result;
use taffrail_mcp_core::{EventSink, Note, RunId, ThreadId};
use taffrail_relay::{PageQuery, Relay};
use taffrail_store_sqlite::{Config, SqliteStore};

#[tokio::main]
async fn main() -> Result<()> {
    if let Some(path) = std::env::args_os().nth(1) {
        print!("{}", start(path.as_ref()).await?);
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    for _ in 0..2 {
        println!("{}---", start(&folder.path().join("app.db")).await?);
    }
    Ok(())
}

/// One life of the program: opens the log, notes that, and gives back all there is.
async fn start(path: &Path) -> Result<String> {
    let store = SqliteStore::open(path, Config::default())?;
    let relay = Relay::start(Arc::new(store), taffrail_relay::Config::default())?;
    let thread = ThreadId::new("starts")?;
    let head = relay.extent(&thread).await?.head;

    let publisher = relay.publisher(&thread, &RunId::new("app")?).await?;
    publisher.emit(Note::info(format!("started, {head} records were there")).into());
    publisher.flush().await?; // on disk now: a kill or a power failure takes nothing back

    let page = relay.page(&thread, &PageQuery::default()).await?;
    let lines = page.lines.iter().map(|line| String::from_utf8_lossy(line)).collect();
    relay.close().await;
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_start_goes_on_where_the_last_one_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        for lives in 1..=3 {
            let lines = start(&path).await.unwrap();
            assert_eq!(lines.lines().count(), lives);
            assert!(lines.ends_with(&format!("\"started, {} records were there\",\"level\":\"info\"}}\n", lives - 1)));
        }
    }
}
