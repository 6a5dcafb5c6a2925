//! Runs that earlier processes could not send whole.

use std::{
    collections::BTreeMap,
    io::{self, Write as _},
    sync::atomic::Ordering,
    time::Duration,
};

use anyhow::Result;
use futures_util::future::join_all;
use serde::Serialize;
use taffrail_mcp_core::RunId;
use taffrail_runs::{Layout, RunsError};
use taffrail_transport::client::Client;
use tokio::sync::mpsc;

use super::{
    folder::Folder,
    format::Job,
    send::{Sending, Sent, Signals},
};
use crate::{
    cli,
    commands::{print_json, remote},
    context, exit,
};

/// What became of one of them.
#[derive(Debug, Serialize)]
pub(super) struct Left {
    run: RunId,
    url: String,
    /// Records that have arrived.
    records: u64,
    /// Why not all of it has; none when it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    folder: String,
}

/// Sends what was left for a server, one run after the other.
pub(super) async fn send(layout: &Layout, client: &Client, signals: &Signals) -> Vec<Left> {
    let mut all = Vec::new();
    for (folder, job) in free(layout) {
        if job.url == client.server().as_str() && job.given_up.is_none() {
            all.extend(one(folder, job, client, signals).await);
        }
    }
    all
}

/// The folders whose processes are gone, locked one at a time.
fn free(layout: &Layout) -> impl Iterator<Item = (Folder, Job)> {
    Folder::list(layout).into_iter().filter_map(|path| {
        Folder::take(path).unwrap_or_else(|error| {
            tracing::warn!("what an earlier run left cannot be sent: {error:#}");
            None
        })
    })
}

/// Sends one; `None` when there was nothing.
async fn one(folder: Folder, job: Job, client: &Client, others: &Signals) -> Option<Left> {
    let (run, url, path) = (job.run.clone(), job.url.clone(), folder.path().display().to_string());
    let signals = Signals { hurry: others.hurry.clone(), ..Signals::new(others.remarks.clone(), others.when_lost) };
    let sent = whole(folder, job, client, signals.clone()).await;
    let records = signals.acknowledged.load(Ordering::Relaxed);
    let why = match sent {
        Ok(true) => return None,
        Ok(false) => None,
        Err(error) => Some(format!("{error:#}")),
    };
    others.say(match &why {
        None => format!("what run {run} had left is at {url} now"),
        Some(why) => format!("what run {run} left cannot be sent to {url}: {why}; it is kept in {path}"),
    });
    Some(Left { run, url, records, why, folder: path })
}

/// Sends all that there is of a run. `true` when it never began.
async fn whole(folder: Folder, job: Job, client: &Client, signals: Signals) -> Result<bool> {
    let service = folder.open()?;
    // Its process is gone: this tells so in its log, as its end.
    let began = service.fold(&job.run).await;
    let mut sending = Sending { folder, job, service, signals };
    match began {
        Ok(_) => {}
        Err(RunsError::NoRun { .. }) => {
            sending.close(true).await;
            return Ok(true);
        }
        Err(error) => return Err(error.into()),
    }
    match sending.send(client).await? {
        Sent::Whole => sending.close(true).await,
        Sent::Refused(error) => {
            sending.close(false).await;
            return Err(error.into());
        }
    }
    Ok(false)
}

/// What `taffrail push` tells.
#[derive(Debug, Default, Serialize)]
struct Report {
    sent: Vec<Left>,
    left: Vec<Left>,
}

/// Sends what earlier runs left, of all servers or of one.
pub(crate) async fn push(common: &cli::Common, args: cli::Push) -> Result<u8> {
    let cli::Push { drain, json, remote } = args;
    let layout = context::layout(common)?;
    let only = remote::client(&remote)?.map(|client| client.server().to_string());
    let mut servers = BTreeMap::new();
    let mut report = Report::default();
    for (folder, job) in free(&layout) {
        let Job { run, url, given_up, .. } = job;
        if only.as_ref().is_some_and(|only| *only != url) {
            continue;
        }
        let folder = folder.path().display().to_string();
        match given_up {
            Some(why) => report.left.push(Left { run, url, records: 0, why: Some(why), folder }),
            None => {
                servers.entry(url.clone()).or_insert_with(Vec::new).push((run, folder));
            }
        }
    }
    let (remark, mut remarks) = mpsc::unbounded_channel();
    let signals = Signals::new(remark, Some("trying again"));
    signals.hurry.cancel();
    let all = {
        let sending = join_all(servers.keys().map(|url| to_one(&layout, url, &remote, &signals, drain)));
        tokio::pin!(sending);
        loop {
            tokio::select! {
                all = &mut sending => break all,
                Some(text) = remarks.recv() => writeln!(io::stderr(), "taffrail: {text}")?,
            }
        }
    };
    while let Ok(text) = remarks.try_recv() {
        writeln!(io::stderr(), "taffrail: {text}")?;
    }
    for sent in all {
        for left in sent? {
            let list = if left.why.is_none() { &mut report.sent } else { &mut report.left };
            list.push(left);
        }
    }
    // Those that nobody came to within the time.
    for (url, runs) in servers {
        for (run, folder) in runs {
            let told = report.sent.iter().chain(&report.left).any(|left| left.run == run);
            if !told && std::path::Path::new(&folder).exists() {
                let why = Some(format!("not sent within {drain:?}"));
                report.left.push(Left { run, url: url.clone(), records: 0, why, folder });
            }
        }
    }
    tell(&report, json)
}

/// Sends what was left for one server, for this time.
async fn to_one(
    layout: &Layout,
    url: &str,
    remote: &cli::Remote,
    signals: &Signals,
    drain: Duration,
) -> Result<Vec<Left>> {
    let client = remote::client_of(url, remote)?;
    Ok(tokio::time::timeout(drain, send(layout, &client, signals)).await.unwrap_or_default())
}

fn tell(report: &Report, json: bool) -> Result<u8> {
    if json {
        print_json(report)?;
    } else {
        let mut out = io::stdout().lock();
        for left in &report.left {
            let why = left.why.as_deref().unwrap_or_default();
            writeln!(out, "run {} is not whole at {}: {why}; it is kept in {}", left.run, left.url, left.folder)?;
        }
        writeln!(out, "{} runs sent, {} left", report.sent.len(), report.left.len())?;
    }
    Ok(if report.left.is_empty() { exit::DONE } else { exit::HALT })
}
