//! `taffrail exec`.

use std::path::Path;

use anyhow::Result;
use taffrail_mcp_core::ThreadId;
use taffrail_runs::{RunsError, Start, Work};

use super::watch::{Show, watch};
use crate::{cli, context, exit};

/// Runs one command and passes its exit code on.
pub(crate) async fn exec(common: &cli::Common, args: cli::Exec) -> Result<u8> {
    let cli::Exec { name, thread, output_cap, json, quiet, argv, drain: _, remote: _ } = args;
    let service = context::open_host(common)?;
    let program = argv.first().map(Path::new).and_then(Path::file_name);
    let name = name.or_else(|| Some(program?.to_string_lossy().into_owned())).unwrap_or_else(|| "exec".into());
    let start = Start {
        thread: thread.map(ThreadId::new).transpose().map_err(RunsError::from)?,
        ..Start::new(Work::Command { name, argv, output_cap })
    };
    let started = service.start(start).await?;
    let show = match (json, quiet) {
        (true, _) => Show::Json,
        (_, true) => Show::Nothing,
        _ => Show::People,
    };
    let fold = watch(&service, &started.run, started.after, show).await?;
    service.close().await;
    Ok(exit::of_exec(&fold))
}
