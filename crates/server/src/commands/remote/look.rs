//! `taffrail runs`, `status` and `cancel` with `--url`.

use std::{io, time::Duration};

use anyhow::Result;
use taffrail_mcp_core::{RunId, ThreadId};
use taffrail_runs::RunsError;
use taffrail_transport::client::{Client, ListRuns};

use super::run_id;
use crate::{
    cli,
    commands::{color, look::show, print_json, watch::now},
    exit, view,
};

/// Most runs that a server lists at once.
const MOST_LISTED: usize = 500;
/// How long the server is asked to wait for a change; less than proxies commonly allow.
const WAIT: Duration = Duration::from_secs(20);
/// How long a server that is away is left alone.
const PAUSE: Duration = Duration::from_secs(1);

/// Lists runs.
pub(crate) async fn runs(client: &Client, args: cli::Runs) -> Result<u8> {
    let cli::Runs { status, thread, limit, before, json, remote: _ } = args;
    let mut list = ListRuns {
        status: status.into_iter().map(Into::into).collect(),
        thread: thread.map(ThreadId::new).transpose().map_err(RunsError::from)?,
        limit: None,
        before: before.map(RunId::new).transpose().map_err(RunsError::from)?,
    };
    let mut snapshots = Vec::new();
    while snapshots.len() < limit {
        let wanted = (limit - snapshots.len()).min(MOST_LISTED);
        let some = client.runs(&ListRuns { limit: Some(wanted), ..list.clone() }).await?;
        let all = some.len() < wanted;
        list.before = some.last().map(|last| last.run.clone());
        snapshots.extend(some);
        if all {
            break;
        }
    }
    if json {
        snapshots.iter().try_for_each(print_json)?;
    } else {
        let stdout = io::stdout();
        view::runs_table(&snapshots, now(), color(&stdout), &mut stdout.lock())?;
    }
    Ok(exit::DONE)
}

/// Shows one run.
pub(crate) async fn status(client: &Client, args: cli::Status) -> Result<u8> {
    let cli::Status { run, wait, json, remote: _ } = args;
    let run = run_id(&run)?;
    let mut snapshot = client.snapshot(&run).await?;
    while wait && !snapshot.status.ended() {
        match client.snapshot_after(&run, snapshot.head, WAIT).await {
            Ok(changed) => snapshot = changed,
            Err(error) if error.is_transient() => {
                tokio::time::sleep(error.retry_after().unwrap_or_default().max(PAUSE)).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
    show(&snapshot, json)?;
    Ok(exit::DONE)
}

/// Ends a run.
pub(crate) async fn cancel(client: &Client, args: cli::Cancel) -> Result<u8> {
    let cli::Cancel { run, reason, kill, json, remote: _ } = args;
    show(&client.cancel(&run_id(&run)?, reason.as_deref(), kill).await?, json)?;
    Ok(exit::DONE)
}
