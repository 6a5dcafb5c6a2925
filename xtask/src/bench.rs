//! `cargo xtask bench`: the benches of crates and of the whole system.
//!
//! A bench prints one JSON object a line; they are shown as they come and once more as a table.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value};

use crate::{
    Outcome,
    shell::{self, cargo},
};

/// The package of the whole-system benches.
const SYSTEM: &str = "taffrail-bench";

/// Runs the benches of some crates, by folder or package name; without names all of them and the whole system's.
pub(crate) fn run(crates: &[String]) -> Result<Outcome> {
    let packages = shell::workspace()?.packages;
    let named = |name: &str| {
        let found = packages.iter().find(|p| p.name == name || p.folder.ends_with(name));
        found.map(|p| p.name.clone()).with_context(|| format!("no package is called {name}"))
    };
    let wanted: Vec<String> = match crates {
        [] => packages
            .iter()
            .filter(|p| p.name == SYSTEM || p.targets("bench").next().is_some())
            .map(|p| p.name.clone())
            .collect(),
        names => names.iter().map(|name| named(name)).collect::<Result<_>>()?,
    };
    let (mut rows, mut failed) = (Vec::new(), Vec::new());
    for name in wanted {
        let mut command = match name.as_str() {
            SYSTEM => cargo(["run", "--release", "--package", SYSTEM]),
            name => cargo(["bench", "--package", name, "--benches"]),
        };
        println!("\n── {name}");
        match json_lines(&mut command) {
            Ok(mut found) => rows.append(&mut found),
            Err(error) => failed.push(format!("{name}: {error:#}")),
        }
    }
    println!("\n{}", table(&rows));
    if !failed.is_empty() {
        bail!("{}", failed.join("; "));
    }
    Ok(Outcome::Passed)
}

fn json_lines(command: &mut Command) -> Result<Vec<Map<String, Value>>> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("starting cargo")?;
    let mut rows = Vec::new();
    for line in BufReader::new(child.stdout.take().context("no output")?).lines() {
        let line = line?;
        println!("{line}");
        rows.extend(serde_json::from_str::<Map<String, Value>>(&line).ok());
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("{status}");
    }
    Ok(rows)
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
