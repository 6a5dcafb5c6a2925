//! `taffrail gc`.

use std::{
    collections::BTreeSet,
    io::{self, Write},
};

use anyhow::Result;
use serde::Serialize;
use taffrail_mcp_core::{RunId, RunStatus};
use taffrail_relay::{ListRuns, Retention, sweep};

use super::print_json;
use crate::{cli, context, exit};

/// What was removed.
#[derive(Debug, Serialize)]
struct Removed {
    dry_run: bool,
    threads: u64,
    runs: u64,
    records: u64,
    bytes: u64,
    spool_files: u64,
    spool_bytes: u64,
}

/// Applies retention to the store, and the spool's limits to its files.
pub(crate) async fn gc(common: &cli::Common, args: cli::Gc) -> Result<u8> {
    let cli::Gc { max_age, max_bytes, keep, dry_run, json } = args;
    let service = context::open(common)?;
    service.recover().await?;
    let retention = Retention { max_age, max_bytes, keep_records: keep };
    let swept = sweep(service.relay(), &retention, dry_run).await?;
    let mut removed = Removed {
        dry_run,
        threads: swept.threads,
        runs: swept.runs,
        records: swept.trimmed.records,
        bytes: swept.trimmed.bytes,
        spool_files: 0,
        spool_bytes: 0,
    };
    if !dry_run {
        let running = ListRuns {
            status: vec![RunStatus::Running, RunStatus::Suspended],
            limit: usize::MAX,
            ..ListRuns::default()
        };
        let live: BTreeSet<RunId> = service.relay().runs(running).await?.into_iter().map(|fold| fold.run).collect();
        let spool = service.spools().sweep(move |run| live.contains(run)).await?;
        (removed.spool_files, removed.spool_bytes) = (spool.files, spool.bytes);
    }
    if json {
        print_json(&removed)?;
    } else {
        let would = if dry_run { "would remove" } else { "removed" };
        writeln!(
            io::stdout(),
            "{would} {} records ({} bytes) of {} threads, {} runs; spool: {} files ({} bytes)",
            removed.records,
            removed.bytes,
            removed.threads,
            removed.runs,
            removed.spool_files,
            removed.spool_bytes,
        )?;
    }
    Ok(exit::DONE)
}
