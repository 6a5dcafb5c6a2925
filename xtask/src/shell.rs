//! The one door to the outside: cargo, and where things are.

use std::{
    env, io,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// The workspace's folder.
pub(crate) fn root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root
}

/// Waits for a process, and ends it when it takes longer: `None` then.
pub(crate) fn wait_at_most(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Cargo, in the workspace's folder.
pub(crate) fn cargo<I: IntoIterator<Item: AsRef<str>>>(args: I) -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root());
    // What cargo told this program about itself is not for those that it builds: ring's build script takes it for a change,
    // and what stands on ring would be built anew whenever cargo was run by hand in between.
    let told = |name: &str| ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|begin| name.starts_with(begin));
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(told)) {
        command.env_remove(name);
    }
    command.args(args.into_iter().map(|arg| arg.as_ref().to_owned()));
    command
}

/// Shows the command, runs it on this terminal, and fails when it does.
pub(crate) fn show_and_run(command: &mut Command) -> Result<()> {
    let line = display(command);
    println!("$ {line}");
    let status = command.status().with_context(|| format!("starting {line}"))?;
    if !status.success() {
        bail!("`{line}`: {status}");
    }
    Ok(())
}

/// What the command printed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = display(command);
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("starting {line}"))?;
    if !output.status.success() {
        bail!("`{line}`: {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("reading the output of {line}"))
}

/// Whether `cargo NAME` exists here.
pub(crate) fn has_cargo(name: &str) -> Result<bool> {
    let found = cargo([name, "--version"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match found {
        Ok(status) => Ok(status.success()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| format!("looking for cargo {name}")),
    }
}

fn display(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let name = program.rsplit(['/', '\\']).next().unwrap_or(&program).to_owned();
    let words = command.get_args().map(|arg| arg.to_string_lossy().into_owned());
    std::iter::once(name).chain(words).collect::<Vec<_>>().join(" ")
}

/// A package of the workspace.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Its folder, from the workspace's: `crates/relay`.
    pub(crate) folder: PathBuf,
    /// Names of its targets of a kind: `bin`, `bench`, `test`, …
    targets: Vec<(String, String)>,
}

impl Package {
    pub(crate) fn targets<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a str> {
        self.targets.iter().filter(move |(of, _)| of == kind).map(|(_, name)| name.as_str())
    }
}

/// What cargo knows about the workspace.
pub(crate) struct Workspace {
    /// Sorted by folder.
    pub(crate) packages: Vec<Package>,
    /// Where builds go.
    pub(crate) target: PathBuf,
}

pub(crate) fn workspace() -> Result<Workspace> {
    let text = output(&mut cargo(["metadata", "--no-deps", "--format-version=1"]))?;
    let metadata: Value = serde_json::from_str(&text).context("reading cargo's metadata")?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned).context("cargo's metadata has another shape");
    let mut packages = Vec::new();
    for package in list(&metadata["packages"]) {
        let mut folder = PathBuf::from(text(&package["manifest_path"])?);
        folder.pop();
        let mut targets = Vec::new();
        for target in list(&package["targets"]) {
            for kind in list(&target["kind"]) {
                targets.push((text(&kind)?, text(&target["name"])?));
            }
        }
        let folder = folder.strip_prefix(root()).map(PathBuf::from).unwrap_or(folder);
        packages.push(Package { name: text(&package["name"])?, folder, targets });
    }
    packages.sort_by(|a, b| a.folder.cmp(&b.folder));
    Ok(Workspace { packages, target: text(&metadata["target_directory"])?.into() })
}

/// Builds all programs of the workspace and gives their folder.
///
/// The same selection of packages as the tests: another one would give dependencies other features, and so a second
/// build of most of them.
pub(crate) fn build_programs() -> Result<PathBuf> {
    show_and_run(&mut cargo(["build", "--workspace", "--bins", "--tests"]))?;
    Ok(workspace()?.target.join("debug"))
}
