//! `taffrail gc`.

use std::io::{self, Write};

use anyhow::Result;
use serde::Serialize;
use taffrail_relay::Retention;
use taffrail_spool::Swept;

use super::print_json;
use crate::{cli, context, exit};

/// What was removed, or would be.
#[derive(Debug, Default, Serialize)]
struct Removed {
    dry_run: bool,
    threads: u64,
    runs: u64,
    records: u64,
    /// Of lines, as a log prints them; what they take in the store is less.
    bytes: u64,
    spool_files: u64,
    spool_bytes: u64,
}

impl Removed {
    fn add(&mut self, swept: &Swept) {
        self.spool_files += swept.files;
        self.spool_bytes += swept.bytes;
    }
}

/// Applies retention to the store, and the spool's limits to its files.
///
/// Files go first: to remove records a store needs some room, which a full disk has only after that. A step that fails
/// does not keep the next from being tried; only a store that cannot be trimmed makes the command fail.
pub(crate) async fn gc(common: &cli::Common, args: cli::Gc) -> Result<u8> {
    let cli::Gc { max_age, max_bytes, keep, dry_run, json } = args;
    let service = context::open(common)?;
    let retention = Retention { max_age, max_bytes, keep_records: keep };
    let mut removed = Removed { dry_run, ..Removed::default() };
    if !dry_run {
        let planned = service.plan_sweep(&retention).await?;
        removed.add(&service.remove_spools(planned.runs, dry_run).await);
        removed.add(&told("apply the limits of the spool", service.sweep_spool().await));
    }
    told("look after runs that a crash left", service.recover().await);
    let swept = match dry_run {
        true => service.plan_sweep(&retention).await,
        false => service.sweep_log(&retention, true).await,
    };
    if let Ok(swept) = &swept {
        removed.threads = swept.threads;
        removed.runs = swept.runs.len() as u64;
        removed.records = swept.trimmed.records;
        removed.bytes = swept.trimmed.bytes;
        // In a dry run all of them, otherwise those of runs that the recovery has ended.
        removed.add(&service.remove_spools(swept.runs.clone(), dry_run).await);
    }
    if json {
        print_json(&removed)?;
    } else {
        let would = if dry_run { "would remove up to" } else { "removed" };
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
    swept?;
    Ok(exit::DONE)
}

/// What a step gave, or nothing and a warning.
fn told<T: Default, E: Into<anyhow::Error>>(what: &str, result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| {
        tracing::warn!("could not {what}: {:#}", error.into());
        T::default()
    })
}
