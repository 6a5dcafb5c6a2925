//! `cargo xtask deny`: licences, advisories and doubles of all dependencies, by `deny.toml`.

use anyhow::Result;

use crate::{
    Outcome,
    shell::{cargo, has_cargo, show_and_run},
};

pub(crate) fn run() -> Result<Outcome> {
    if !has_cargo("deny")? {
        return Ok(Outcome::Skipped("cargo-deny is not installed (`cargo install cargo-deny`)".to_owned()));
    }
    show_and_run(&mut cargo(["deny", "--workspace", "check"]))?;
    Ok(Outcome::Passed)
}
