//! `cargo xtask docs`: the documentation, without a warning.

use anyhow::Result;

use crate::{
    Outcome,
    shell::{cargo, show_and_run},
};

pub(crate) fn run() -> Result<Outcome> {
    show_and_run(cargo(["doc", "--workspace", "--no-deps", "--keep-going"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    Ok(Outcome::Passed)
}
