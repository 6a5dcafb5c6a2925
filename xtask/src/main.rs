//! `cargo xtask`: the workspace's tasks, each in one file.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "reports to the person who runs it")]

mod bench;
mod ci;
mod clients;
mod conformance;
mod demo;
mod deny;
mod docs;
mod examples;
mod layers;
mod lint;
mod promises;
mod shell;
mod test;
mod wire;

use std::process::ExitCode;

use anyhow::Result;

const USAGE: &str = "\
cargo xtask <task>

  ci                all of the following but bench and demo; reports every failure at the end
  lint              formatting, clippy, and what ARCHITECTURE.md says: layers, promises
  test [--heavy]    all tests, doc tests among them; --heavy: more cases and larger inputs
  wire [--check]    regenerates docs/wire.md, docs/openapi.json and docs/schema; fails when that changed something
  examples          builds and runs every package in examples/
  clients [CLIENT…] runs official MCP clients against the server, over stdio and HTTP; needs python3 and npm
  conformance       runs the official MCP conformance suite against the fixture server; needs npm
  docs              builds the documentation, warnings are errors
  deny              licences, advisories and doubles, where cargo-deny is installed
  bench [--quick] [CRATE…]
                    the benches of crates and of the whole system: JSON lines, then tables
  demo              runs the tour playbook
";

/// How a task ended that did not fail.
enum Outcome {
    Passed,
    /// Could not be done here, and why.
    Skipped(String),
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((task, args)) = args.split_first() else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(task, args) {
        Ok(Outcome::Passed) => ExitCode::SUCCESS,
        Ok(Outcome::Skipped(why)) => {
            println!("{task}: skipped: {why}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{task}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: &str, args: &[String]) -> Result<Outcome> {
    match (task, args) {
        ("ci", []) => ci::run(),
        ("lint", []) => lint::run(),
        ("test", []) => test::run(test::Size::Usual),
        ("test", [heavy]) if heavy == "--heavy" => test::run(test::Size::Heavy),
        ("wire", []) => wire::run(wire::Mode::Write),
        ("wire", [check]) if check == "--check" => wire::run(wire::Mode::Check),
        ("examples", []) => examples::run(),
        ("clients", names) => clients::run(names),
        ("conformance", []) => conformance::run(conformance::Build::Fixture),
        ("docs", []) => docs::run(),
        ("deny", []) => deny::run(),
        ("bench", args) => bench::run(args),
        ("demo", []) => demo::run(),
        _ => anyhow::bail!("not a task, or not its arguments\n\n{USAGE}"),
    }
}
