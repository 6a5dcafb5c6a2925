//! `taffrail runs`, `status` and `cancel`: snapshots.

use std::io::{self, Write};

use anyhow::Result;
use taffrail_mcp_core::{RunId, RunStatus, Snapshot, ThreadId};
use taffrail_relay::ListRuns;
use taffrail_runs::{Cancel, RunsError, Until};

use super::{color, print_json, watch::now};
use crate::{
    cli::{self, StatusWord},
    context, exit, view,
};

impl From<StatusWord> for RunStatus {
    fn from(word: StatusWord) -> Self {
        match word {
            StatusWord::Running => RunStatus::Running,
            StatusWord::Suspended => RunStatus::Suspended,
            StatusWord::Done => RunStatus::Done,
            StatusWord::Halt => RunStatus::Halt,
            StatusWord::Cancelled => RunStatus::Cancelled,
            StatusWord::Interrupted => RunStatus::Interrupted,
        }
    }
}

/// Lists runs.
pub(crate) async fn runs(common: &cli::Common, args: cli::Runs) -> Result<u8> {
    let cli::Runs { status, thread, limit, before, json, remote: _ } = args;
    let service = context::open(common)?;
    let query = ListRuns {
        status: status.into_iter().map(RunStatus::from).collect(),
        thread: thread.map(ThreadId::new).transpose().map_err(RunsError::from)?,
        before: before.map(RunId::new).transpose().map_err(RunsError::from)?,
        limit,
    };
    let snapshots = service.runs(query).await?;
    if json {
        for snapshot in &snapshots {
            print_json(snapshot)?;
        }
    } else {
        let stdout = io::stdout();
        view::runs_table(&snapshots, now(), color(&stdout), &mut stdout.lock())?;
    }
    Ok(exit::DONE)
}

/// Shows one run.
pub(crate) async fn status(common: &cli::Common, args: cli::Status) -> Result<u8> {
    let cli::Status { run, wait, json, remote: _ } = args;
    let service = context::open(common)?;
    let run = RunId::new(&run).map_err(|_| RunsError::NoRun { run })?;
    if wait {
        service.wait(&run, Until::Ended).await?;
    }
    show(&service.snapshot(&run).await?, json)?;
    Ok(exit::DONE)
}

/// Ends a run.
pub(crate) async fn cancel(common: &cli::Common, args: cli::Cancel) -> Result<u8> {
    let cli::Cancel { run, reason, kill, json, remote: _ } = args;
    let service = context::open(common)?;
    let run = RunId::new(&run).map_err(|_| RunsError::NoRun { run })?;
    service.cancel(Cancel { run: run.clone(), reason, actor: context::actor(), kill }).await?;
    show(&service.snapshot(&run).await?, json)?;
    Ok(exit::DONE)
}

/// Prints a snapshot.
pub(crate) fn show(snapshot: &Snapshot, json: bool) -> Result<()> {
    if json {
        return print_json(snapshot);
    }
    let stdout = io::stdout();
    let color = color(&stdout);
    let mut out = stdout.lock();
    view::status_text(snapshot, now(), color, &mut out)?;
    out.flush()?;
    Ok(())
}
