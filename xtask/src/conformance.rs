//! `cargo xtask conformance`: the official conformance suite of MCP, against the fixture server in `conformance/`.
//!
//! The suite and a Node that can run it are installed below `target/`, in the versions that `conformance/suite` pins. What
//! fails has to be on the list `conformance/expected.json`, with its reason; what is on the list has to fail, and every
//! scenario that the suite has for a revision has to run.

mod expected;
mod fixture;
mod install;
mod judge;
mod suite;

use std::{collections::BTreeSet, fs, time::Instant};

use anyhow::{Context as _, Result, bail};

use self::{expected::Expected, fixture::Fixture, judge::Verdict, suite::Suite};
use crate::{
    Outcome,
    shell::{self, build_programs, cargo, show_and_run},
};

const PACKAGE: &str = "taffrail-conformance";

/// What is built.
#[derive(Clone, Copy)]
pub(crate) enum Build {
    /// The fixture server.
    Fixture,
    /// The whole workspace, as the other steps of `ci` do.
    Workspace,
}

pub(crate) fn run(build: Build) -> Result<Outcome> {
    let workspace = shell::workspace()?;
    let folder = workspace.target.join("conformance");
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let expected = expected::read(&shell::root().join("conformance/expected.json"))?;
    let suite = Suite::new(install::install(&folder)?, folder.join("out"))?;
    let programs = match build {
        Build::Fixture => {
            show_and_run(&mut cargo(["build", "--package", PACKAGE]))?;
            workspace.target.join("debug")
        }
        Build::Workspace => build_programs()?,
    };
    let begun = Instant::now();
    let fixture = Fixture::start(&programs.join(PACKAGE))?;
    let verdicts = legs(&suite, fixture.url(), &expected);
    fixture.end()?;
    let verdicts = verdicts?;
    println!("\n{}", judge::table(&verdicts));
    println!("the suite took {:.1} s; its results are in {}", begun.elapsed().as_secs_f64(), suite.out().display());
    let problems: Vec<_> = verdicts.iter().flat_map(Verdict::problems).collect();
    if !problems.is_empty() {
        bail!("{} unexpected:\n  {}", problems.len(), problems.join("\n  "));
    }
    Ok(Outcome::Passed)
}

/// Every part of the suite, one after the other: each has the server to itself.
fn legs(suite: &Suite, url: &str, expected: &[Expected]) -> Result<Vec<Verdict>> {
    let mut verdicts = Vec::new();
    for (leg, select) in [
        ("2026-07-28", ["--requirements", "2026-07-28"].as_slice()),
        ("2025-11-25", &["--requirements", "2025-11-25"]),
        ("2025-06-18", &["--spec-version", "2025-06-18"]),
    ] {
        let wanted = suite.scenarios(select)?;
        let select = match leg {
            // Without a list of requirements the suite leaves some out unless told so.
            "2025-06-18" => [&["--suite", "all"], select].concat(),
            _ => select.to_vec(),
        };
        let ran = suite.run(leg, url, &select)?;
        verdicts.push(judge::judge(leg, &wanted, &ran, expected));
    }
    let tasks: BTreeSet<_> = suite.scenarios(&[])?.into_iter().filter(|name| name.starts_with("tasks-")).collect();
    if tasks.is_empty() {
        bail!("the suite has no scenarios named tasks-*");
    }
    let mut ran = Default::default();
    for scenario in &tasks {
        let select = ["--scenario", scenario, "--force"];
        judge::add(&mut ran, suite.run(&format!("tasks/{scenario}"), url, &select)?);
    }
    verdicts.push(judge::judge("tasks", &tasks, &ran, expected));
    Ok(verdicts)
}
