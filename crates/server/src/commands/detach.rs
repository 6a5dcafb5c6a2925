//! `taffrail run --detach`: the run goes on in a process of its own.

use std::{
    fs::{self, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use taffrail_mcp_core::RunId;
use taffrail_runs::Service;
use uuid::Uuid;

use super::print_json;
use crate::{cli, context, exit};

/// How long the new process has until the run's first record is there.
const START_TIME: Duration = Duration::from_secs(10);

/// Starts this command line again, hosted by a process without a terminal, and tells the run's id on stdout.
pub(crate) async fn run(common: &cli::Common, service: &Service, json: bool) -> Result<u8> {
    let run = RunId::new(Uuid::now_v7().to_string())?;
    let layout = context::layout(common)?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(layout.detached())?;
    let log_path = layout.detached().join(format!("{run}.log"));
    let log = OpenOptions::new().create_new(true).append(true).mode(0o600).open(&log_path)?;
    let host = format!("--host={run}");
    let args = std::env::args_os().skip(1).map(|arg| if arg == "--detach" { host.clone().into() } else { arg });
    let mut command = Command::new(std::env::current_exe()?);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut child = command.spawn().context("cannot start a process for the run")?;
    let stdout = child.stdout.take().context("cannot hear the run's process")?;
    let told = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).map(|_| line)
    });
    let Ok(told) = tokio::time::timeout(START_TIME, told).await else {
        bail!("the run has not begun within {START_TIME:?}; see {}", log_path.display());
    };
    let told = told??;
    if told.is_empty() {
        let status = child.wait()?;
        let said = fs::read_to_string(&log_path).unwrap_or_default();
        bail!("the run's process ended at once ({status}): {}", said.trim());
    }
    // With an idempotency key it may be one that was started before.
    let run = RunId::new(told.trim())?;
    match json {
        true => print_json(&service.snapshot(&run).await?)?,
        false => writeln!(io::stdout(), "{run}")?,
    }
    Ok(exit::DONE)
}

/// Tells the process that waits for it which run this is.
pub(crate) fn tell(run: &RunId) {
    // It may have been killed meanwhile, which changes nothing for the run.
    let mut stdout = io::stdout();
    let _ = writeln!(stdout, "{run}").and_then(|()| stdout.flush());
}

/// The hosting process has a session of its own, so that no terminal's end reaches it.
pub(crate) fn leave_terminal() -> Result<()> {
    // Fails only when it leads a session already, which is as good.
    let _ = rustix::process::setsid();
    Ok(())
}
