//! A page of 200 records at random cursors of a large run, inside the process.

use std::{sync::Arc, time::Instant};

use anyhow::Result;
use taffrail_mcp_core::{EventBatch, EventSink, LogLine, RunId, Seq, Start, Stream, ThreadId};
use taffrail_relay::{Config, Filter, PageQuery, Relay};
use taffrail_store_sqlite::SqliteStore;

use crate::{peers, report};

const PAGES: u64 = 2000;

pub(crate) fn bench(records: u64) -> Result<()> {
    let dir = tempfile::tempdir_in(peers::scratch()?)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let path = dir.path().join("bench.db");
        let store = Arc::new(SqliteStore::open(&path, Default::default())?);
        let relay = Relay::start(store, Config::default())?;
        let (thread, run) = (ThreadId::new("bench")?, RunId::new("bench")?);
        let publisher = relay.publisher(&thread, &run).await?;
        let mut batch = EventBatch::new();
        let begin = Instant::now();
        for i in 0..records {
            let line =
                format!("line {i:010} of a build that says the same things again and again, {:x}", i * 2_654_435_761);
            batch.push_line(&LogLine::new("build", Stream::Stdout, line.as_bytes()));
            if batch.len() == 1000 {
                publisher.send(&mut batch).await;
            }
        }
        publisher.send(&mut batch).await;
        publisher.flush().await?;
        let wrote = records as f64 / begin.elapsed().as_secs_f64();
        let mut times = Vec::new();
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..PAGES {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let after = Seq(random % (records - 200));
            let filter = Filter { run: Some(run.clone()), ..Filter::default() };
            let query = PageQuery { start: Start::After(after), filter, ..PageQuery::default() };
            let begin = Instant::now();
            let page = relay.page(&thread, &query).await?;
            times.push(begin.elapsed().as_secs_f64() * 1e6);
            anyhow::ensure!(
                page.lines.len() == 200 && page.meta.next == after.plus(200),
                "a page is not what it should be"
            );
        }
        times.sort_by(f64::total_cmp);
        report::below("page: median in microseconds", report::percentile(&times, 0.5), 1000.0);
        let stored = std::fs::metadata(&path)?.len();
        report::figure(
            "page",
            &[
                ("records", records.into()),
                ("p50_us", report::round(report::percentile(&times, 0.5)).into()),
                ("p99_us", report::round(report::percentile(&times, 0.99)).into()),
                ("written_per_s", report::round(wrote).into()),
                ("bytes_per_record_on_disk", report::round(stored as f64 / records as f64).into()),
            ],
        );
        Ok(())
    })
}
