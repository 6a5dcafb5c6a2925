//! `taffrail gc`.

use std::{
    collections::BTreeSet,
    io::{self, Write},
};

use anyhow::Result;
use serde::Serialize;
use taffrail_mcp_core::RunId;
use taffrail_relay::{Retention, sweep};
use taffrail_runs::Service;
use taffrail_spool::SpoolError;

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
        runs: swept.runs.len() as u64,
        records: swept.trimmed.records,
        bytes: swept.trimmed.bytes,
        spool_files: 0,
        spool_bytes: 0,
    };
    if !dry_run {
        let gone = remove_spools(&service, swept.runs).await?;
        let swept = service.sweep_spool().await?;
        removed.spool_files = gone.files + swept.files;
        removed.spool_bytes = gone.bytes + swept.bytes;
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

/// The files of runs that nobody can ask for any more.
async fn remove_spools(service: &Service, runs: Vec<RunId>) -> Result<taffrail_spool::Swept> {
    let folder = service.config().layout.spool();
    let runs: BTreeSet<RunId> = runs.into_iter().collect();
    let removed = tokio::task::spawn_blocking(move || {
        let mut swept = taffrail_spool::Swept::default();
        for listed in taffrail_spool::list(&folder)?.into_iter().filter(|listed| runs.contains(&listed.run)) {
            match taffrail_spool::remove(&folder, &listed.run) {
                Ok(files) => {
                    swept.files += files as u64;
                    swept.bytes += listed.bytes;
                }
                // Its process is just ending; the limit of age gets it.
                Err(SpoolError::Busy { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(swept)
    });
    Ok(removed.await??)
}
