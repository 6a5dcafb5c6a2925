//! `cargo xtask demo`: the tour, from a fresh data folder.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use crate::{
    Outcome,
    shell::{self, cargo, show_and_run},
};

const TOUR: &str = "playbooks/tour.yaml";

pub(crate) fn run() -> Result<Outcome> {
    ensure!(shell::root().join(TOUR).exists(), "{TOUR} is missing");
    let data = shell::workspace()?.target.join("demo");
    if data.exists() {
        fs::remove_dir_all(&data).with_context(|| format!("emptying {}", data.display()))?;
    }
    let mut run = cargo(["run", "--quiet", "--package", "taffrail-server", "--", "run", TOUR]);
    show_and_run(run.env("TAFFRAIL_DATA_DIR", data))?;
    Ok(Outcome::Passed)
}
