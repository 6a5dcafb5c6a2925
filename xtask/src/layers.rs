//! The layers: `ARCHITECTURE.md` says which crate may use what, and this compares it with what cargo would build.
//!
//! The allow-list is the page's own table, so that it cannot say one thing and the check another. A failing
//! `cargo tree -i X` would not do: it cannot tell "absent" from "misspelt".

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::shell::{self, cargo, output};

/// One row of the table. A published crate is named `taffrail-<folder>`.
#[derive(Debug, Default, PartialEq)]
struct Layer {
    /// Crates of ours that it may use directly; what they use it may use too.
    uses: BTreeSet<String>,
    /// Crates of others that it must not use, not even through another.
    never: BTreeSet<String>,
}

type Layers = BTreeMap<String, Layer>;

const PREFIX: &str = "taffrail-";

pub(crate) fn check() -> Result<()> {
    let page = fs::read_to_string(shell::root().join("ARCHITECTURE.md")).context("reading ARCHITECTURE.md")?;
    let layers = parse(&page)?;
    let lock = fs::read_to_string(shell::root().join("Cargo.lock")).context("reading Cargo.lock")?;
    let known: BTreeSet<_> =
        lock.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"')).collect();
    let mut problems = Vec::new();
    let mut found = BTreeSet::new();
    for package in shell::workspace()?.packages {
        let Some(folder) = package.folder.strip_prefix("crates").ok().and_then(|folder| folder.to_str()) else {
            continue;
        };
        found.insert(folder.to_owned());
        let Some(layer) = layers.get(folder) else {
            problems.push(format!("crates/{folder} has no row in ARCHITECTURE.md"));
            continue;
        };
        for name in layer.never.iter().filter(|name| !known.contains(name.as_str())) {
            problems.push(format!("{folder} must never know `{name}`, but nothing here does: misspelt?"));
        }
        let args = ["tree", "--package", &package.name, "--edges", "normal", "--prefix", "none", "--format", "{p}"];
        let tree = output(&mut cargo(args))?;
        problems.extend(compare(folder, &layers, &tree));
    }
    problems.extend(layers.keys().filter(|f| !found.contains(*f)).map(|f| format!("crates/{f} is a row, not a crate")));
    ensure!(problems.is_empty(), "layers:\n  {}", problems.join("\n  "));
    println!("layers: {} crates use only what stands below them", found.len());
    Ok(())
}

/// Reads the table whose rows begin with a folder of a crate: `` | `crates/relay` | … | `mcp-core`, … | `rmcp`, … | ``.
///
/// Only names in backticks count; the words around them are for people.
fn parse(page: &str) -> Result<Layers> {
    let mut layers = Layers::new();
    for line in page.lines() {
        let Some(row) = line.strip_prefix("| `crates/") else { continue };
        let cells: Vec<_> = row.split(" | ").collect();
        let [folder, _, uses, never] = cells.as_slice() else { bail!("a row with other columns: {line}") };
        let layer = Layer { uses: names(uses), never: names(never) };
        layers.insert(folder.trim_end_matches('`').to_owned(), layer);
    }
    ensure!(!layers.is_empty(), "ARCHITECTURE.md has no table of crates");
    for (folder, layer) in &layers {
        if let Some(name) = layer.uses.iter().find(|name| !layers.contains_key(*name)) {
            bail!("{folder} may use `{name}`, which has no row");
        }
    }
    Ok(layers)
}

fn names(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// What stands below a crate, itself included.
fn below(folder: &str, layers: &Layers) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        if let Some(layer) = layers.get(&next)
            && all.insert(next)
        {
            open.extend(layer.uses.iter().cloned());
        }
    }
    all
}

/// Compares the packages that cargo lists (`name v1.2.3 …`, one a line) with the crate's row.
fn compare(folder: &str, layers: &Layers, tree: &str) -> Vec<String> {
    let allowed = below(folder, layers);
    let never = layers.get(folder).map(|layer| &layer.never);
    let used: BTreeSet<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    used.into_iter()
        .filter(|name| match name.strip_prefix(PREFIX) {
            Some(ours) => !allowed.contains(ours),
            None => never.is_some_and(|never| never.contains(*name)),
        })
        .map(|name| format!("{folder} uses {name}, which its row in ARCHITECTURE.md does not allow"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
| folder | what it is | may use | never knows |
| --- | --- | --- | --- |
| `crates/core` | words | nothing of ours | `tokio`, files |
| `crates/relay` | log | `core` | `rmcp` |
| `crates/top` | all | `relay` | — |
";

    fn check(folder: &str, tree: &str, expected: &[&str]) {
        let found = compare(folder, &parse(PAGE).unwrap(), tree);
        let expected: Vec<_> = expected
            .iter()
            .map(|name| format!("{folder} uses {name}, which its row in ARCHITECTURE.md does not allow"))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn downwards_is_allowed() {
        check("core", "taffrail-core v0.1.0\nserde v1.0.0\n", &[]);
        check("top", "taffrail-top v0.1.0\ntaffrail-relay v0.1.0\ntaffrail-core v0.1.0 (*)\ntokio v1.0.0\n", &[]);
    }

    #[test]
    fn upwards_and_what_is_never_known_is_not() {
        check("core", "taffrail-core v0.1.0\ntaffrail-relay v0.1.0\n", &["taffrail-relay"]);
        check("core", "taffrail-core v0.1.0\ntokio v1.0.0\n", &["tokio"]);
        check("relay", "taffrail-relay v0.1.0\nrmcp v1.0.0\nrmcp-macros v1.0.0\n", &["rmcp"]);
        check("relay", "taffrail-relay v0.1.0\ntaffrail-unheard-of v1.0.0\n", &["taffrail-unheard-of"]);
    }

    #[test]
    fn a_table_that_cannot_be_read_is_an_error() {
        assert!(parse("no table").is_err());
        assert!(parse("| `crates/a` | x | y |").is_err());
        assert!(parse("| `crates/a` | x | `b` | — |").is_err(), "b has no row");
    }
}
