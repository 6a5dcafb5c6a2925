//! `cargo xtask examples`: every package in `examples/` builds, runs and ends well.
//!
//! Each program runs without arguments in its own folder; a file `input` there becomes its standard input.

use std::{
    fs::File,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};

use crate::{Outcome, shell};

/// An example that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn run() -> Result<Outcome> {
    let programs = shell::build_programs()?;
    let workspace = shell::workspace()?;
    let mut failed = Vec::new();
    for package in workspace.packages.iter().filter(|package| package.folder.starts_with("examples")) {
        for name in package.targets("bin") {
            println!("$ {name}");
            let folder = shell::root().join(&package.folder);
            let input = File::open(folder.join("input")).map_or_else(|_| Stdio::null(), Stdio::from);
            let mut command = Command::new(programs.join(name));
            let mut child =
                command.current_dir(&folder).stdin(input).spawn().with_context(|| format!("starting {name}"))?;
            match shell::wait_at_most(&mut child, LIMIT)? {
                Some(status) if status.success() => {}
                Some(status) => failed.push(format!("{name}: {status}")),
                None => failed.push(format!("{name}: still running after {} s", LIMIT.as_secs())),
            }
        }
    }
    if !failed.is_empty() {
        bail!("{}", failed.join("; "));
    }
    Ok(Outcome::Passed)
}
