//! `cargo xtask test`: all tests.

use anyhow::{Result, bail};

use crate::{
    Outcome,
    shell::{cargo, has_cargo, show_and_run},
};

/// Set for tests that have a larger form: more property cases, longer floods.
const HEAVY: &str = "TAFFRAIL_HEAVY";

/// How often writers are killed in the tests of crashes; 200 times take a minute.
const KILLS: (&str, &str) = ("TAFFRAIL_KILLS", "200");

/// How much is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// What suits somebody who waits for it.
    Usual,
    /// With all the kills.
    Ci,
    /// The larger form of everything.
    Heavy,
}

pub(crate) fn run(size: Size) -> Result<Outcome> {
    let mut tests = if has_cargo("nextest")? {
        cargo(["nextest", "run", "--workspace", "--no-fail-fast"])
    } else {
        println!("cargo-nextest is not installed; cargo test runs one test binary after the other");
        cargo(["test", "--workspace", "--no-fail-fast", "--lib", "--bins", "--tests"])
    };
    let mut docs = cargo(["test", "--workspace", "--doc", "--no-fail-fast"]);
    let mut failures = Vec::new();
    for command in [&mut tests, &mut docs] {
        if size != Size::Usual {
            command.env(KILLS.0, KILLS.1);
        }
        if size == Size::Heavy {
            command.env(HEAVY, "1").env("PROPTEST_CASES", "10000");
        }
        failures.extend(show_and_run(command).err().map(|error| format!("{error:#}")));
    }
    if !failures.is_empty() {
        bail!("{}", failures.join("; "));
    }
    Ok(Outcome::Passed)
}
