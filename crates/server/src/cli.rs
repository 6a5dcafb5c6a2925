//! The command line: what can be typed, and nothing about what it does.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Durable, watchable runs.
#[derive(Debug, Parser)]
#[command(name = "taffrail", version, about, long_about = None, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Where runs are kept [default: $XDG_STATE_HOME/taffrail, or ~/.local/state/taffrail]
    #[arg(long, global = true, env = "TAFFRAIL_DATA_DIR", value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Folder of playbooks that are called by name
    #[arg(long, global = true, env = "TAFFRAIL_PLAYBOOKS", value_name = "DIR", default_value = "playbooks")]
    pub(crate) playbooks: PathBuf,
    /// Diagnostics on stderr: warn, info, debug, or a filter such as taffrail_relay=debug
    #[arg(long, global = true, env = "TAFFRAIL_LOG", value_name = "FILTER", default_value = "warn")]
    pub(crate) log: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a playbook and watch it
    Run(Run),
    /// Run one command, with its output kept and its exit code passed on
    Exec(Exec),
    /// Read a run's log
    Logs(Logs),
    /// List runs, newest first
    Runs(Runs),
    /// Show what a run is doing
    Status(Status),
    /// Go on with a suspended or interrupted run
    Resume(Resume),
    /// Decide what a run waits for, or answer its question, and go on
    Approve(Approve),
    /// End a run: its processes, then its log
    Cancel(Cancel),
    /// Serve MCP on standard input and output
    Mcp(Mcp),
    /// Print a JSON Schema
    Schema(Schema),
    /// Remove old logs and spool files
    Gc(Gc),
    /// Check that everything this machine needs is in order
    Doctor(Json),
    /// The guard that ends what a killed process left
    #[command(name = "process-guard", hide = true)]
    ProcessGuard {
        /// What it guards.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<std::ffi::OsString>,
    },
}

/// Output for programs.
#[derive(Debug, Args)]
pub(crate) struct Json {
    /// Print JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// Inputs, as `-i key=value`.
#[derive(Debug, Args)]
pub(crate) struct Inputs {
    /// An input; lists and objects as JSON, lists of words also as a,b,c
    #[arg(short = 'i', long = "input", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) inputs: Vec<(String, String)>,
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE, such as -i version=1.2".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Name of a playbook in the playbooks folder, or a path
    pub(crate) playbook: String,
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Write to this thread's log instead of a new one
    #[arg(long, value_name = "THREAD")]
    pub(crate) thread: Option<String>,
    /// A repeated run with the same key shows the run that the first one started
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    /// Print the run's records as JSON lines on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Leave the run to a background process and print its id
    #[arg(long)]
    pub(crate) detach: bool,
    /// Host a detached run of this id.
    #[arg(long, hide = true, value_name = "RUN", conflicts_with = "detach")]
    pub(crate) host: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Exec {
    /// What the run is called [default: the command's name]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Write to this thread's log instead of a new one
    #[arg(long, value_name = "THREAD")]
    pub(crate) thread: Option<String>,
    /// Keep at most this much output; what comes after is counted and not kept [default: 1GiB]
    #[arg(long, value_name = "BYTES", value_parser = crate::units::bytes)]
    pub(crate) output_cap: Option<u64>,
    /// Print the run's records as JSON lines on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Print nothing but problems; the output is in the log
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    pub(crate) argv: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// The run
    pub(crate) run: String,
    /// Go on with what comes, until the run is over
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only records after this position
    #[arg(long, value_name = "SEQ")]
    pub(crate) after: Option<u64>,
    /// Only the last N that match
    #[arg(long, value_name = "N")]
    pub(crate) tail: Option<usize>,
    /// Only what matches this regular expression
    #[arg(long, value_name = "REGEX")]
    pub(crate) grep: Option<String>,
    /// Only this state
    #[arg(long)]
    pub(crate) state: Option<String>,
    /// Only stdout or stderr
    #[arg(long, value_parser = ["stdout", "stderr"])]
    pub(crate) stream: Option<String>,
    /// Only these event types, separated by commas
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    pub(crate) types: Vec<String>,
    /// Print records as JSON lines
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Runs {
    /// Only runs of these states, separated by commas
    #[arg(long, value_delimiter = ',')]
    pub(crate) status: Vec<StatusWord>,
    /// Only runs of this thread
    #[arg(long)]
    pub(crate) thread: Option<String>,
    /// At most this many
    #[arg(long, default_value_t = 20, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) limit: usize,
    /// Only runs started before this one
    #[arg(long, value_name = "RUN")]
    pub(crate) before: Option<String>,
    /// Print JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum StatusWord {
    Running,
    Suspended,
    Done,
    Halt,
    Cancelled,
    Interrupted,
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    /// The run
    pub(crate) run: String,
    /// Wait until it is neither running nor suspended
    #[arg(long)]
    pub(crate) wait: bool,
    /// Print JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// The run, or one of its checkpoints
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Print the run's records from here on as JSON lines on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// The run
    pub(crate) run: String,
    /// Reject instead
    #[arg(long)]
    pub(crate) reject: bool,
    /// Only if this is still the hash of what would happen
    #[arg(long, value_name = "SHA256")]
    pub(crate) hash: Option<String>,
    /// Store the decision and leave the going on to `taffrail resume`
    #[arg(long)]
    pub(crate) decide_only: bool,
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Print the run's records from here on as JSON lines on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// The run
    pub(crate) run: String,
    /// Why, for the log
    #[arg(long)]
    pub(crate) reason: Option<String>,
    /// Kill its processes at once
    #[arg(long)]
    pub(crate) kill: bool,
    /// Print JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// Logger name of event notifications
    #[arg(long, value_name = "NAME", default_value = "taffrail.event")]
    pub(crate) event_logger: String,
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// Of what
    pub(crate) of: SchemaOf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum SchemaOf {
    /// A playbook file
    Playbook,
    /// A record of a log
    Record,
    /// A run snapshot
    Snapshot,
    /// A gap
    Gap,
}

#[derive(Debug, Args)]
pub(crate) struct Gc {
    /// Remove logs that were quiet for longer, such as 30d or 12h
    #[arg(long, value_name = "TIME", value_parser = crate::units::duration)]
    pub(crate) max_age: Option<std::time::Duration>,
    /// Remove the oldest logs while all together take more, such as 10GiB
    #[arg(long, value_name = "BYTES", value_parser = crate::units::bytes)]
    pub(crate) max_bytes: Option<u64>,
    /// Keep the last N records of each log
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) keep: u64,
    /// Only say what would go
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}
