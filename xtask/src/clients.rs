//! `cargo xtask clients`: official MCP clients drive the real server, over stdio and over HTTP.
//!
//! What they do is in `tests/clients`: a script a client, which prints one JSON line a step. Here the clients are
//! installed, each in a folder of its own and at the versions that are committed; every script is run against
//! `taffrail mcp` and against `taffrail serve`, each time on an empty data directory; and what the steps came to becomes a
//! table.

mod install;
mod run;
mod table;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result, bail};

use crate::{
    Outcome,
    shell::{self, cargo, show_and_run},
};

/// A package that speaks MCP, and the script that drives the server with it.
struct Client {
    name: &'static str,
    /// Below `tests/clients`.
    script: &'static str,
    /// What is installed, and where that is written, below `tests/clients`: for Python a list of requirements, for Node
    /// a folder with `package.json` and its lock.
    packages: Packages,
    /// Every step must be told of, once.
    steps: &'static [&'static str],
}

enum Packages {
    Python(&'static str),
    /// With the Node that is here.
    Node(&'static str),
    /// With a Node that is among the packages, because the client wants a newer one than many machines have.
    OwnNode(&'static str),
}

/// Scripts that run side by side: most of the time they wait.
const AT_ONCE: usize = 3;

const STEPS: &[&str] = &[
    "connect",
    "events",
    "progress",
    "logs",
    "approve",
    "decline",
    "abort",
    "cancel",
    "reconnect",
    "tasks",
    "resources",
    "prompts",
];

/// The one that takes longest first.
const CLIENTS: &[Client] = &[
    Client {
        name: "inspector",
        script: "inspector/inspector.mjs",
        packages: Packages::OwnNode("inspector"),
        steps: STEPS,
    },
    Client { name: "mcp2", script: "python/mcp2.py", packages: Packages::Python("python/mcp2.txt"), steps: STEPS },
    Client { name: "mcp1", script: "python/mcp1.py", packages: Packages::Python("python/mcp1.txt"), steps: STEPS },
    Client {
        name: "fastmcp4",
        script: "python/fastmcp4.py",
        packages: Packages::Python("python/fastmcp4.txt"),
        steps: STEPS,
    },
    Client {
        name: "fastmcp4_tasks",
        script: "python/fastmcp4_tasks.py",
        packages: Packages::Python("python/fastmcp4_tasks.txt"),
        steps: &["connect", "approve", "decline", "cancel", "reconnect", "tasks"],
    },
    Client {
        name: "client2",
        script: "typescript/client2.mjs",
        packages: Packages::Node("typescript/client2"),
        steps: STEPS,
    },
    Client { name: "sdk1", script: "typescript/sdk1.mjs", packages: Packages::Node("typescript/sdk1"), steps: STEPS },
];

/// Runs some clients, by name; without names all of them.
pub(crate) fn run(names: &[String]) -> Result<Outcome> {
    if let Some(unknown) = names.iter().find(|name| !CLIENTS.iter().any(|client| client.name == **name)) {
        let all: Vec<_> = CLIENTS.iter().map(|client| client.name).collect();
        bail!("{unknown} is not a client; there are {}", all.join(", "));
    }
    show_and_run(&mut cargo(["build", "--package", "taffrail-server"]))?;
    drive(&shell::workspace()?.target.join("debug"), names)
}

/// Runs all clients with what the tests have built.
pub(crate) fn run_all() -> Result<Outcome> {
    drive(&shell::build_programs()?, &[])
}

/// Installs all clients.
pub(crate) fn install() -> Result<()> {
    install_at(&CLIENTS.iter().collect::<Vec<_>>()).map(drop)
}

/// Installs clients, and gives the folder that they are in.
fn install_at(clients: &[&Client]) -> Result<PathBuf> {
    let place = shell::workspace()?.target.join("clients");
    fs::create_dir_all(&place).with_context(|| format!("making {}", place.display()))?;
    install::all(clients, &place)?;
    Ok(place)
}

fn drive(programs: &Path, names: &[String]) -> Result<Outcome> {
    let server = programs.join("taffrail");
    let wanted: Vec<_> =
        CLIENTS.iter().filter(|client| names.is_empty() || names.iter().any(|name| name == client.name)).collect();
    let place = install_at(&wanted)?;
    let jobs: Vec<_> = wanted
        .iter()
        .flat_map(|client| [run::Transport::Stdio, run::Transport::Http].map(|transport| (*client, transport)))
        .collect();
    let begun = Instant::now();
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((index, (client, transport))) = take(&next, &jobs) {
                    let steps = run::script(client, *transport, &server, &place);
                    let row = table::Row::new(client.name, transport.name(), client.steps, steps);
                    println!("{}", row.line());
                    rows.lock().unwrap_or_else(PoisonError::into_inner).push((index, row));
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    rows.sort_by_key(|(index, _)| *index);
    let rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    println!("\n{}", table::table(STEPS, &rows));
    println!("the scripts took {:.0} s", begun.elapsed().as_secs_f64());
    let failed: Vec<_> = rows.iter().flat_map(table::Row::failures).collect();
    if !failed.is_empty() {
        bail!(
            "{} steps failed; what the scripts said is in {}/run\n{}",
            failed.len(),
            place.display(),
            failed.join("\n")
        );
    }
    Ok(Outcome::Passed)
}

fn take<'a, T>(next: &AtomicUsize, jobs: &'a [T]) -> Option<(usize, &'a T)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, jobs.get(index)?))
}
