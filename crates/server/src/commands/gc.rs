//! `taffrail gc`.

use std::io::{self, Write};

use anyhow::Result;
use serde::Serialize;
use taffrail_relay::{Retention, sweep};

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
        let spool = service.sweep_spool().await?;
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
