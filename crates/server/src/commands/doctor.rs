//! `taffrail doctor`.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use anyhow::Result;
use serde::Serialize;
use taffrail_runs::{Layout, Service};

use super::print_json;
use crate::{cli, context, exit, view};

/// Below this, runs will soon fail to be stored.
const LOW_DISK: u64 = 256 * 1024 * 1024;

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    what: &'static str,
    ok: bool,
    says: String,
}

impl Finding {
    fn of(what: &'static str, result: Result<String>) -> Self {
        match result {
            Ok(says) => Self { what, ok: true, says },
            Err(error) => Self { what, ok: false, says: format!("{error:#}") },
        }
    }
}

/// Looks at everything that runs need, and says what to do about what is not in order. Exit status 1 when something
/// is not.
pub(crate) async fn doctor(common: &cli::Common, args: cli::Json) -> Result<u8> {
    let layout = context::layout(common)?;
    let service = context::open(common);
    let mut findings = vec![
        Finding::of("data directory", data_dir(&layout)),
        Finding::of("disk", disk(layout.root())),
        Finding::of("store", service.as_ref().map(|_| layout.store().display().to_string()).map_err(told)),
    ];
    if let Ok(service) = &service {
        findings.push(Finding::of("runs", runs(service).await));
        findings.push(Finding::of("spool", spool(service).await));
        findings.push(Finding::of("playbooks", playbooks(service).await));
    }
    findings.push(Finding::of("shell", shell()));
    let ok = findings.iter().all(|finding| finding.ok);
    if args.json {
        print_json(&findings)?;
    } else {
        let mut out = io::stdout().lock();
        for Finding { what, ok, says } in &findings {
            writeln!(out, "{} {what}: {says}", if *ok { "ok  " } else { "FAIL" })?;
        }
    }
    Ok(if ok { exit::DONE } else { exit::HALT })
}

fn told(error: &anyhow::Error) -> anyhow::Error {
    anyhow::anyhow!("{error:#}")
}

fn data_dir(layout: &Layout) -> Result<String> {
    let mode = fs::metadata(layout.root())?.permissions().mode() & 0o777;
    anyhow::ensure!(mode & 0o077 == 0, "{} can be read by others: chmod 700 it", layout.root().display());
    Ok(layout.root().display().to_string())
}

fn disk(path: &Path) -> Result<String> {
    let stat = rustix::fs::statvfs(path)?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    anyhow::ensure!(
        free > LOW_DISK,
        "only {} MiB are free: remove something, or run `{} gc`",
        free >> 20,
        view::hint()
    );
    Ok(format!("{} MiB free", free >> 20))
}

async fn runs(service: &Service) -> Result<String> {
    let recovered = service.recover().await?;
    let threads = service.relay().store().threads().await?;
    let records: u64 = threads.iter().map(|thread| thread.extent.head.0 + 1 - thread.extent.first.0.max(1)).sum();
    let bytes: u64 = threads.iter().map(|thread| thread.stored_bytes).sum();
    let found = match recovered.runs.len() {
        0 => String::new(),
        n => format!("; {n} had lost their process and are interrupted now"),
    };
    Ok(format!("{} threads, {records} records, {} MiB on disk{found}", threads.len(), bytes >> 20))
}

async fn spool(service: &Service) -> Result<String> {
    let folder = service.config().layout.spool();
    let listed = tokio::task::spawn_blocking({
        let folder = folder.clone();
        move || taffrail_spool::list(folder)
    })
    .await??;
    Ok(format!("{}: {} runs", folder.display(), listed.len()))
}

async fn playbooks(service: &Service) -> Result<String> {
    let folder = &service.config().playbooks;
    // None is needed: a playbook can be given by its path, and `exec` has none.
    if !folder.exists() {
        return Ok(format!("{}: no such folder", folder.display()));
    }
    let listed = service.playbooks().await?;
    let broken: Vec<String> = listed
        .iter()
        .filter_map(|listed| listed.contract.as_ref().err())
        .map(|diagnostic| diagnostic.to_string())
        .collect();
    anyhow::ensure!(broken.is_empty(), "{}", broken.join("\n"));
    Ok(format!("{}: {}", folder.display(), listed.len()))
}

fn shell() -> Result<String> {
    let works = std::process::Command::new("sh").args(["-c", "exit 7"]).status()?.code() == Some(7);
    anyhow::ensure!(works, "`sh -c` does not work: `run` states need it");
    Ok("sh -c works".into())
}
