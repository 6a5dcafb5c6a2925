//! `cargo xtask wire`: the wire contract as committed files, made from the code.
//!
//! The program `taffrail-wire` (`xtask/wire`) makes them; here they are compared and written.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context as _, Result, bail};

use crate::{
    Outcome,
    shell::{self, build_programs, cargo, output},
};

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Mode {
    /// Brings the files up to date, and fails when they were not.
    Write,
    /// Only compares; builds with the whole workspace, as the other steps of `ci` do.
    Check,
}

/// The folder of which every file is generated.
const SCHEMAS: &str = "docs/schema";

pub(crate) fn run(mode: Mode) -> Result<Outcome> {
    let text = match mode {
        Mode::Write => output(&mut cargo(["run", "--quiet", "--package", "taffrail-wire"]))?,
        Mode::Check => {
            output(std::process::Command::new(build_programs()?.join("taffrail-wire")).current_dir(shell::root()))?
        }
    };
    let wanted: BTreeMap<String, String> = serde_json::from_str(&text).context("reading what taffrail-wire printed")?;
    let root = shell::root();
    let mut changed = Vec::new();
    for (path, new) in &wanted {
        let old = fs::read_to_string(root.join(path)).unwrap_or_default();
        if old != *new {
            changed.push(format!("{path} ({})", first_difference(&old, new)));
            if mode == Mode::Write {
                write(&root.join(path), new)?;
            }
        }
    }
    for entry in fs::read_dir(root.join(SCHEMAS)).into_iter().flatten() {
        let path = format!("{SCHEMAS}/{}", entry?.file_name().to_string_lossy());
        if !wanted.contains_key(&path) {
            changed.push(format!("{path} (no longer made)"));
            if mode == Mode::Write {
                fs::remove_file(root.join(&path)).with_context(|| format!("removing {path}"))?;
            }
        }
    }
    if !changed.is_empty() {
        let hint = match mode {
            Mode::Write => "they are now; look at the difference and commit it",
            Mode::Check => "run `cargo xtask wire` and commit the difference",
        };
        bail!("not up to date with the code: {}; {hint}", changed.join(", "));
    }
    println!("wire: {} files are up to date", wanted.len());
    Ok(Outcome::Passed)
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

fn first_difference(old: &str, new: &str) -> String {
    let same = old.lines().zip(new.lines()).take_while(|(a, b)| a == b).count();
    format!("from line {}", same + 1)
}
