//! Whole-system benches: one JSON line a figure on stdout, nothing else. Peers are measured in the same run, in turns
//! with ours. A goal that is missed fails the bench at its end.
//!
//! Build with `--release` and build the command first: `cargo xtask bench` does both. `README.md` tells how to read it.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "figures go to stdout, what is missing to stderr")]

mod catchup;
mod emit;
mod exec;
mod fanout;
mod gapless;
mod idle;
mod ingest;
mod latency;
mod load;
mod mcp;
mod memory;
mod page;
mod peers;
mod publish;
mod report;
mod stalled;
mod waiting;
mod window;

use std::{process::ExitCode, time::Duration};

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

/// Load tools and whole-system benches.
#[derive(Debug, Parser)]
struct Cli {
    #[command(flatten)]
    size: Size,
    /// All of them when none is named
    #[command(subcommand)]
    bench: Option<Bench>,
}

#[derive(Debug, Clone, Copy, Args)]
struct Size {
    /// Short windows and one round: whether everything works, not how fast it is
    #[arg(long, global = true)]
    quick: bool,
    /// Rounds that alternate between peers and ours [default: 5, with --quick 1]
    #[arg(long, global = true)]
    rounds: Option<usize>,
    /// How long something is measured [default: 3, with --quick 1]
    #[arg(long, global = true)]
    seconds: Option<f64>,
}

/// How often and how long.
#[derive(Debug, Clone, Copy)]
struct Rounds {
    count: usize,
    window: Duration,
}

impl Size {
    fn rounds(&self) -> Rounds {
        let (count, seconds) = if self.quick { (1, 1.0) } else { (5, 3.0) };
        Rounds {
            count: self.rounds.unwrap_or(count).max(1),
            window: Duration::from_secs_f64(self.seconds.unwrap_or(seconds).clamp(0.1, 3600.0)),
        }
    }

    fn pick<T>(&self, usual: T, quick: T) -> T {
        if self.quick { quick } else { usual }
    }
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// Rows 1 to 3: events delivered a second, against Nchan
    Fanout {
        /// One load alone: subscribers/publishers, such as 100/8
        #[arg(long)]
        only: Option<String>,
    },
    /// Row 4: time of an event from publisher to subscriber at a pace, against Nchan
    Latency {
        /// One pace alone: subscribers/events a second, such as 100/500
        #[arg(long)]
        only: Option<String>,
    },
    /// Row 5: readers that come back for the last 10,000 events, against Nchan
    Catchup,
    /// Row 6: memory of 1000 idle subscribers, against Nchan
    Memory,
    /// Row 7: events taken in over HTTP, durable, against Redis and NATS
    Ingest,
    /// Row 8: durable publish in process, 8 publishers, 200-byte events, against Redis with appendfsync always
    Publish {
        /// Events of a round [default: 4,000,000, with --quick 400,000]
        #[arg(long)]
        events: Option<u64>,
    },
    /// Row 9: a page of 200 over HTTP at a random position of a large log, against PostgreSQL and Redis
    Window {
        /// Records of the log [default: 1,000,000, with --quick 100,000]
        #[arg(long)]
        records: Option<u64>,
    },
    /// A page of 200 at random cursors of a large run, in process
    Page {
        /// Records of the run [default: 1,000,000 and 10,000,000, with --quick 100,000]
        #[arg(long)]
        records: Option<u64>,
    },
    /// Row 13: a child's output to the durable log and the spool, against `wc -l` and `cat > file`
    Exec {
        /// Lines of the flood [default: 5,000,000, with --quick 500,000]
        #[arg(long)]
        lines: Option<u64>,
    },
    /// Dense ids for subscribers that connect anew all the time
    Gapless,
    /// A subscriber that stops reading
    Stalled {
        /// For how long, in seconds [default: 60, with --quick 10]
        #[arg(long)]
        stall: Option<u64>,
    },
    /// 10,000 mostly idle subscribers
    Idle {
        /// Seconds [default: 40, with --quick 5]
        #[arg(long)]
        window: Option<u64>,
    },
    /// `emit` from 32 threads beside 50 readers, some stalled
    Emit,
    /// Answer to `initialize`, and events to an MCP client
    Mcp,
    /// A thousand MCP calls that wait for one run
    Waiting,
}

fn main() -> ExitCode {
    let Cli { size, bench } = Cli::parse();
    let benches = match bench {
        Some(bench) => vec![bench],
        None => vec![
            Bench::Fanout { only: None },
            Bench::Latency { only: None },
            Bench::Catchup,
            Bench::Memory,
            Bench::Ingest,
            Bench::Publish { events: None },
            Bench::Window { records: None },
            Bench::Page { records: None },
            Bench::Exec { lines: None },
            Bench::Gapless,
            Bench::Stalled { stall: None },
            Bench::Idle { window: None },
            Bench::Emit,
            Bench::Mcp,
            Bench::Waiting,
        ],
    };
    // One that fails does not take the others' figures away.
    let mut code = ExitCode::SUCCESS;
    for bench in &benches {
        if let Err(error) = run(&size, bench) {
            eprintln!("{bench:?} failed: {error:#}");
            code = ExitCode::FAILURE;
        }
    }
    for missed in report::missed() {
        eprintln!("goal missed: {missed}");
        code = ExitCode::FAILURE;
    }
    code
}

fn run(size: &Size, bench: &Bench) -> Result<()> {
    let rounds = size.rounds();
    match bench {
        Bench::Fanout { only } => fanout::bench(&rounds, only.as_deref()),
        Bench::Latency { only } => latency::bench(&rounds, only.as_deref()),
        Bench::Catchup => catchup::bench(&rounds),
        Bench::Memory => memory::bench(&rounds),
        Bench::Ingest => ingest::bench(&rounds),
        Bench::Publish { events } => publish::bench(rounds.count, events.unwrap_or(size.pick(4_000_000, 400_000))),
        Bench::Window { records } => window::bench(&rounds, records.unwrap_or(size.pick(1_000_000, 100_000))),
        Bench::Page { records: Some(records) } => page::bench(*records),
        Bench::Page { records: None } if size.quick => page::bench(100_000),
        Bench::Page { records: None } => {
            page::bench(1_000_000)?;
            page::bench(10_000_000)
        }
        Bench::Exec { lines } => exec::bench(rounds.count, lines.unwrap_or(size.pick(5_000_000, 500_000))),
        Bench::Gapless => gapless::bench(&rounds),
        Bench::Stalled { stall } => stalled::bench(Duration::from_secs(stall.unwrap_or(size.pick(60, 10)))),
        Bench::Idle { window } => idle::bench(Duration::from_secs(window.unwrap_or(size.pick(40, 5)))),
        Bench::Emit => emit::bench(),
        Bench::Mcp => mcp::bench(rounds.count),
        Bench::Waiting => waiting::bench(rounds.count),
    }
}
