//! `cargo xtask bench`: the benches of crates and of the whole system.
//!
//! A bench prints one JSON object a line; they are shown as they come and once more as tables. A goal that is missed
//! fails the task at its end.

mod goals;

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value};

use crate::{
    Outcome,
    shell::{self, Package, cargo},
};

/// The package of the whole-system benches.
const SYSTEM: &str = "taffrail-bench";

/// Runs the benches of some crates, by folder or package name; without names all of them and the whole system's.
/// `--quick` makes the whole system's short.
pub(crate) fn run(args: &[String]) -> Result<Outcome> {
    let (options, crates): (Vec<&String>, Vec<&String>) = args.iter().partition(|arg| arg.starts_with("--"));
    if let Some(unknown) = options.iter().find(|option| **option != "--quick") {
        bail!(
            "{unknown} is not an option of bench; `cargo run --release -p {SYSTEM} -- --help` tells what one bench takes"
        );
    }
    let packages = shell::workspace()?.packages;
    let named = |name: &&String| {
        let found = packages.iter().find(|p| p.name == **name || p.folder.ends_with(name));
        found.with_context(|| format!("no package is called {name}"))
    };
    let wanted: Vec<&Package> = match crates.as_slice() {
        [] => packages.iter().collect(),
        names => names.iter().map(named).collect::<Result<_>>()?,
    };
    let (mut rows, mut failed) = (Vec::new(), Vec::new());
    for package in wanted {
        // By name: `--benches` would start the unit tests too.
        let mut commands: Vec<_> = package
            .targets("bench")
            .map(|bench| cargo(["bench", "--quiet", "--package", &package.name, "--bench", bench]))
            .collect();
        if package.name == SYSTEM {
            // It starts the command, which therefore has to be there.
            commands.push(cargo(["build", "--quiet", "--release", "--package", "taffrail-server"]));
            let mut system = cargo(["run", "--quiet", "--release", "--package", SYSTEM, "--"]);
            system.args(&options);
            commands.push(system);
        }
        for command in &mut commands {
            println!("\n── {}", package.name);
            // What it printed before it failed counts too.
            if let Err(error) = json_lines(command, &mut rows) {
                failed.push(format!("{}: {error:#}", package.name));
            }
        }
    }
    println!("\n{}", table(&rows));
    let goals: Vec<_> = rows.iter().flat_map(goals::goals).collect();
    if !goals.is_empty() {
        println!("{}", goals::table(&goals));
    }
    let missed: Vec<_> = goals.iter().filter(|goal| goal.missed()).map(goals::Goal::name).collect();
    if !missed.is_empty() {
        failed.push(format!("goals missed: {}", missed.join("; ")));
    }
    if !failed.is_empty() {
        bail!("{}", failed.join("; "));
    }
    Ok(Outcome::Passed)
}

fn json_lines(command: &mut Command, rows: &mut Vec<Map<String, Value>>) -> Result<()> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("starting cargo")?;
    for line in BufReader::new(child.stdout.take().context("no output")?).lines() {
        let line = line?;
        println!("{line}");
        rows.extend(serde_json::from_str::<Map<String, Value>>(&line).ok());
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("{status}");
    }
    Ok(())
}

/// One row a bench: its name, then the other values as `name value`.
fn table(rows: &[Map<String, Value>]) -> String {
    let name = |row: &Map<String, Value>| row.get("bench").and_then(Value::as_str).unwrap_or("?").to_owned();
    let width = rows.iter().map(|row| name(row).len()).max().unwrap_or_default();
    let mut out = String::new();
    for row in rows {
        let values = row.iter().filter(|(key, _)| *key != "bench").map(|(key, value)| match value {
            Value::String(text) => format!("{key} {text}"),
            other => format!("{key} {other}"),
        });
        out.push_str(&format!("{:<width$}  {}\n", name(row), values.collect::<Vec<_>>().join(" · ")));
    }
    out
}
