//! The suite: which scenarios there are, and what came of them.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::{
    install::Installed,
    judge::{Check, Ran},
};
use crate::shell::output;

/// All scenarios of a revision take some seconds; the suite has its own limit for each.
const LIMIT: Duration = Duration::from_secs(300);
/// What the suite adds to a scenario's name for the name of its folder: `-2026-11-30T17-45-56-078Z`.
const TIME: usize = 25;

pub(super) struct Suite {
    installed: Installed,
    out: PathBuf,
}

impl Suite {
    /// Results go into `out`, which is emptied.
    pub(super) fn new(installed: Installed, out: PathBuf) -> Result<Self> {
        if out.exists() {
            fs::remove_dir_all(&out).with_context(|| format!("emptying {}", out.display()))?;
        }
        Ok(Self { installed, out })
    }

    /// Where the results are.
    pub(super) fn out(&self) -> &Path {
        &self.out
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.installed.node);
        command.arg(&self.installed.suite).current_dir(&self.out);
        command
    }

    /// The scenarios for servers that a selection has.
    pub(super) fn scenarios(&self, select: &[&str]) -> Result<BTreeSet<String>> {
        fs::create_dir_all(&self.out).with_context(|| format!("making {}", self.out.display()))?;
        let mut list = self.command();
        list.args(["list", "--server"]).args(select);
        let names = read_list(&output(&mut list)?);
        ensure!(!names.is_empty(), "the suite lists no scenarios for {select:?}");
        Ok(names)
    }

    /// Runs a selection, and gives what it left in the folder `name`.
    pub(super) fn run(&self, name: &str, url: &str, select: &[&str]) -> Result<Ran> {
        let folder = self.out.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        let (told, results) = (folder.join("told.txt"), folder.join("results"));
        println!("$ conformance server {}", select.join(" "));
        let file = File::create(&told).with_context(|| format!("making {}", told.display()))?;
        let mut child = self
            .command()
            .args(["server", "--url", url, "--output-dir"])
            .arg(&results)
            .args(select)
            .stdin(Stdio::null())
            .stderr(file.try_clone()?)
            .stdout(file)
            .spawn()
            .context("starting the conformance suite")?;
        let begun = Instant::now();
        // Its status only says that something failed, and what did is in its results.
        while child.try_wait()?.is_none() {
            if begun.elapsed() > LIMIT {
                child.kill()?;
                child.wait()?;
                bail!("the suite still ran after {} s: see {}", LIMIT.as_secs(), told.display());
            }
            thread::sleep(Duration::from_millis(20));
        }
        read_results(&results).with_context(|| format!("what the suite said is in {}", told.display()))
    }
}

/// Reads the suite's list: below the heading for servers all, elsewhere those that say that they are for servers.
fn read_list(text: &str) -> BTreeSet<String> {
    let mut servers = false;
    let mut names = BTreeSet::new();
    for line in text.lines() {
        match line.trim_start().strip_prefix("- ") {
            Some(entry) => {
                let name = entry.split(' ').next().unwrap_or(entry);
                if servers || entry.ends_with("[server]") {
                    names.insert(name.to_owned());
                }
            }
            None => servers = line.starts_with("Server scenarios"),
        }
    }
    names
}

fn read_results(folder: &Path) -> Result<Ran> {
    let mut ran = Ran::default();
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(scenario) = scenario(&name) else { bail!("{name} is no folder of a scenario's results") };
        let file = entry.path().join("checks.json");
        let text = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        let checks: Vec<Value> =
            serde_json::from_slice(&text).with_context(|| format!("reading {}", file.display()))?;
        ran.entry(scenario.to_owned()).or_default().extend(checks.iter().map(check));
    }
    Ok(ran)
}

fn scenario(folder: &str) -> Option<&str> {
    folder.strip_prefix("server-").and_then(|rest| rest.get(..rest.len().checked_sub(TIME)?))
}

fn check(value: &Value) -> Check {
    let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let message = match value["errorMessage"].as_str() {
        Some(message) => message.to_owned(),
        None => value.pointer("/details/message").and_then(Value::as_str).unwrap_or_default().to_owned(),
    };
    Check { id: text("id"), name: text("name"), status: text("status"), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_lists_are_read() {
        let list = "Server scenarios (test against a server):\n  - ping [2025-06-18]\n  - tasks-a [extension]\n";
        assert_eq!(read_list(list).into_iter().collect::<Vec<_>>(), ["ping", "tasks-a"]);
        let requirements = "Required:\n\nServer scenarios (test against a server):\n  - caching\n\nClient scenarios (test \
                            against a client):\n  - request-metadata\n\nNot scored:\n  pending (2):\n    - polling \
                            [server]\n    - other [client]\n";
        assert_eq!(read_list(requirements).into_iter().collect::<Vec<_>>(), ["caching", "polling"]);
    }

    #[test]
    fn folders_have_their_scenario_s_name_and_the_time() {
        assert_eq!(scenario("server-tools-list-2026-11-30T17-45-56-078Z"), Some("tools-list"));
        assert_eq!(scenario("server-server-stateless-2026-11-30T17-45-56-078Z"), Some("server-stateless"));
        assert_eq!(scenario("server-x"), None);
        assert_eq!(scenario("other-tools-list-2026-11-30T17-45-56-078Z"), None);
    }
}
