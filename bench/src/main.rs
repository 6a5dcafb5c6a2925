//! Whole-system benches: one JSON line a figure on stdout, nothing else. Peers are measured in the same run, in turns
//! with ours. A goal that is missed fails the bench at its end.
//!
//! Build with `--release` and, for `exec` and `mcp`, build the command first: `cargo xtask bench` does both.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "figures go to stdout, what is missing to stderr")]

mod emit;
mod exec;
mod mcp;
mod page;
mod peers;
mod publish;
mod report;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};

/// Load tools and whole-system benches.
#[derive(Debug, Parser)]
struct Cli {
    /// All of them when none is named
    #[command(subcommand)]
    bench: Option<Bench>,
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// Durable publish in process, 8 publishers, 200-byte events, against Redis with appendfsync always
    Publish {
        /// Interleaved rounds
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Events of a round
        #[arg(long, default_value_t = 4_000_000)]
        events: u64,
    },
    /// `emit` from 32 threads beside 50 readers, some stalled
    Emit,
    /// A page of 200 at random cursors of a large run
    Page {
        /// Records of the run
        #[arg(long, default_value_t = 1_000_000)]
        records: u64,
    },
    /// A child's output to the durable log and the spool, against `wc -l` and `cat > file`
    Exec {
        /// Interleaved rounds
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Lines of the flood
        #[arg(long, default_value_t = 5_000_000)]
        lines: u64,
    },
    /// Answer to `initialize`, and events to an MCP client
    Mcp {
        /// Rounds
        #[arg(long, default_value_t = 5)]
        rounds: usize,
    },
}

fn main() -> Result<()> {
    match Cli::parse().bench {
        Some(bench) => run(&bench)?,
        None => {
            for bench in [
                Bench::Publish { rounds: 5, events: 4_000_000 },
                Bench::Emit,
                Bench::Page { records: 1_000_000 },
                Bench::Page { records: 10_000_000 },
                Bench::Exec { rounds: 5, lines: 5_000_000 },
                Bench::Mcp { rounds: 5 },
            ] {
                run(&bench)?;
            }
        }
    }
    let missed = report::missed();
    if !missed.is_empty() {
        bail!("goals missed: {}", missed.join("; "));
    }
    Ok(())
}

fn run(bench: &Bench) -> Result<()> {
    match *bench {
        Bench::Publish { rounds, events } => publish::bench(rounds, events),
        Bench::Emit => emit::bench(),
        Bench::Page { records } => page::bench(records),
        Bench::Exec { rounds, lines } => exec::bench(rounds, lines),
        Bench::Mcp { rounds } => mcp::bench(rounds),
    }
}
