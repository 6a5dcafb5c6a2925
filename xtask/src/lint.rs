//! `cargo xtask lint`: what can be said about the code without running it.

use anyhow::{Result, bail};

use crate::{
    Outcome, layers, promises,
    shell::{cargo, show_and_run},
};

pub(crate) fn run() -> Result<Outcome> {
    let steps: [fn() -> Result<Outcome>; 4] = [format, layers, promises, clippy];
    let failures: Vec<_> = steps.iter().filter_map(|step| step().err()).map(|error| format!("{error:#}")).collect();
    if !failures.is_empty() {
        bail!("{}", failures.join("\n"));
    }
    Ok(Outcome::Passed)
}

pub(crate) fn format() -> Result<Outcome> {
    show_and_run(&mut cargo(["fmt", "--all", "--check"]))?;
    Ok(Outcome::Passed)
}

pub(crate) fn layers() -> Result<Outcome> {
    layers::check()?;
    Ok(Outcome::Passed)
}

pub(crate) fn promises() -> Result<Outcome> {
    promises::check()?;
    Ok(Outcome::Passed)
}

pub(crate) fn clippy() -> Result<Outcome> {
    show_and_run(&mut cargo(["clippy", "--workspace", "--all-targets", "--keep-going", "--", "-D", "warnings"]))?;
    Ok(Outcome::Passed)
}
