//! Runs one script against one server.

use std::{
    env,
    fs::{self, File},
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::{Client, install, table::Step};
use crate::shell;

/// A script that takes longer hangs; they take some ten seconds.
const LIMIT: Duration = Duration::from_secs(120);

/// How a client reaches the server.
#[derive(Debug, Clone, Copy)]
pub(super) enum Transport {
    /// It starts `taffrail mcp`, as often as it connects.
    Stdio,
    /// It connects to a `taffrail serve` that was started for it.
    Http,
}

impl Transport {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
        }
    }
}

/// What the script said of its steps.
///
/// # Errors
///
/// When it could not be run, hung, or said that all is well and ended as if it were not.
pub(super) fn script(client: &Client, transport: Transport, server: &Path, place: &Path) -> Result<Vec<Step>> {
    let name = format!("{}-{}", client.name, transport.name());
    let folder = place.join("run").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("emptying {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let data = folder.join("data");
    let playbooks = install::scripts().join("playbooks");
    let mut command = install::command(client, place)?;
    without_settings(&mut command);
    command.env("TAFFRAIL", server).env("TAFFRAIL_DATA_DIR", &data).env("TAFFRAIL_PLAYBOOKS", playbooks);
    // Not that of the person who runs this: clients keep settings there.
    command.env("HOME", &folder);
    let mut serving = None;
    match transport {
        Transport::Stdio => command.arg("stdio"),
        Transport::Http => {
            let (process, url, token) = serve(server, &data, &folder)?;
            serving = Some(process);
            command.arg(url).env("TAFFRAIL_TOKEN", token)
        }
    };
    let (said, complained) = (folder.join("steps.jsonl"), folder.join("stderr.txt"));
    command.stdin(Stdio::null()).stdout(File::create(&said)?).stderr(File::create(&complained)?);
    let ended = command
        .spawn()
        .with_context(|| format!("starting {command:?}"))
        .and_then(|mut child| shell::wait_at_most(&mut child, LIMIT));
    drop(serving);
    let steps: Vec<_> = fs::read_to_string(&said)?.lines().filter_map(Step::read).collect();
    match ended? {
        None => bail!("still running after {} s", LIMIT.as_secs()),
        Some(status) if !status.success() && steps.iter().all(|step| step.ok != Some(false)) => {
            bail!("{status}: {}", last_lines(&complained))
        }
        Some(_) => Ok(steps),
    }
}

/// A server, which ends when it is dropped.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        // What it started ends with it, however it ends.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the server: its process, its URL and its token.
fn serve(server: &Path, data: &Path, folder: &Path) -> Result<(Serving, String, String)> {
    let mut command = Command::new(server);
    command.args(["serve", "--json", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data);
    command.arg("--playbooks").arg(install::scripts().join("playbooks")).current_dir(shell::root());
    without_settings(&mut command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(folder.join("server.txt"))?);
    let mut serving = Serving(command.spawn().with_context(|| format!("starting {command:?}"))?);
    let mut line = String::new();
    BufReader::new(serving.0.stdout.take().context("no output")?).read_line(&mut line)?;
    let told: Value = serde_json::from_str(&line)
        .with_context(|| format!("taffrail serve did not start: {}", last_lines(&folder.join("server.txt"))))?;
    let field = |name: &str| told[name].as_str().map(str::to_owned).with_context(|| format!("no {name} in {line}"));
    let token = fs::read_to_string(field("token_file")?).context("reading the token")?;
    Ok((serving, field("url")?, token.trim().to_owned()))
}

/// Without what the person who runs this has set for runs of their own.
fn without_settings(command: &mut Command) {
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("TAFFRAIL") {
            command.env_remove(name);
        }
    }
}

fn last_lines(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    lines.iter().skip(lines.len().saturating_sub(5)).copied().collect::<Vec<_>>().join("\n")
}
