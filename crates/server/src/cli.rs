//! The command line: what can be typed, and nothing about what it does.

mod remote;

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use taffrail_transport::http::{Authority, Uri};

pub(crate) use self::remote::{Push, Remote};
use crate::store::StoreChoice;

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
    /// Diagnostics on stderr: warn, info, debug, or a filter such as taffrail_relay=debug [default: warn; serve: info]
    #[arg(long, global = true, env = "TAFFRAIL_LOG", value_name = "FILTER")]
    pub(crate) log: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a playbook and watch it
    Run(Run),
    /// Run one command, with its output kept and its exit code passed on
    Exec(Exec),
    /// Send what earlier `exec --url` could not send
    Push(Push),
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
    /// Serve runs over HTTP: REST, live streams, MCP, a page for browsers
    Serve(Serve),
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

impl Command {
    /// Which server it asks, if it can ask one instead of looking here.
    pub(crate) const fn remote(&self) -> Option<&Remote> {
        match self {
            Command::Run(Run { remote, .. })
            | Command::Exec(Exec { remote, .. })
            | Command::Logs(Logs { remote, .. })
            | Command::Runs(Runs { remote, .. })
            | Command::Status(Status { remote, .. })
            | Command::Resume(Resume { remote, .. })
            | Command::Approve(Approve { remote, .. })
            | Command::Cancel(Cancel { remote, .. }) => Some(remote),
            _ => None,
        }
    }

    /// The diagnostics that are written when nothing else is asked for.
    pub(crate) const fn usual_log(&self) -> &'static str {
        match self {
            // Who asked for what, and what became of it.
            Command::Serve(_) => "warn,taffrail=info",
            _ => "warn",
        }
    }
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
    #[command(flatten)]
    pub(crate) remote: Remote,
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
    /// With --url: how long to go on sending when the command has ended
    #[arg(long, value_name = "TIME", value_parser = crate::units::duration, default_value = "60s")]
    pub(crate) drain: std::time::Duration,
    #[command(flatten)]
    pub(crate) remote: Remote,
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
    #[command(flatten)]
    pub(crate) remote: Remote,
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
    #[command(flatten)]
    pub(crate) remote: Remote,
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
    #[command(flatten)]
    pub(crate) remote: Remote,
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
    #[command(flatten)]
    pub(crate) remote: Remote,
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
    #[command(flatten)]
    pub(crate) remote: Remote,
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
    #[command(flatten)]
    pub(crate) remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// Logger name of event notifications
    #[arg(long, value_name = "NAME", default_value = "taffrail.event")]
    pub(crate) event_logger: String,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Address and port; port 0 is one that is free
    #[arg(long, env = "TAFFRAIL_LISTEN", value_name = "ADDR", default_value = "127.0.0.1:7433")]
    pub(crate) listen: SocketAddr,
    /// sqlite:PATH, postgres://… for several machines, or memory: to keep nothing [default: the data directory's own]
    #[arg(long, env = "TAFFRAIL_STORE", hide_env_values = true, value_name = "STORE")]
    pub(crate) store: Option<StoreChoice>,
    /// File of the operator token, for several machines [default: TAFFRAIL_TOKEN, then the data directory's own]
    #[arg(long, value_name = "FILE", conflicts_with = "no_auth")]
    pub(crate) token_file: Option<PathBuf>,
    /// Let everybody on this machine do everything; only where no other machine can reach the address
    #[arg(long)]
    pub(crate) no_auth: bool,
    /// Answer to this name, too: NAME for every port, or NAME:PORT; may be repeated
    #[arg(long = "allowed-host", value_name = "NAME")]
    pub(crate) allowed_hosts: Vec<Authority>,
    /// Let pages of this origin ask, too, such as `https://console.example`; may be repeated
    #[arg(long = "allowed-origin", value_name = "ORIGIN", value_parser = http_url)]
    pub(crate) allowed_origins: Vec<Uri>,
    /// Where a proxy offers this server, such as `https://taffrail.example`
    #[arg(long, env = "TAFFRAIL_PUBLIC_URL", value_name = "URL", value_parser = http_url)]
    pub(crate) public_url: Option<Uri>,
    /// Believe X-Forwarded-For; only behind a proxy that sets it
    #[arg(long)]
    pub(crate) forwarded_for: bool,
    /// Callers share this machine's disk: tell and take paths
    #[arg(long)]
    pub(crate) shared_fs: bool,
    /// Logger name of event notifications over MCP
    #[arg(long, value_name = "NAME", default_value = "taffrail.event")]
    pub(crate) event_logger: String,
    /// Remove logs that were quiet for longer, such as 30d or 12h [default: keep them]
    #[arg(long, value_name = "TIME", value_parser = crate::units::duration)]
    pub(crate) max_age: Option<std::time::Duration>,
    /// Remove the oldest logs while all together take more, such as 10GiB [default: no limit]
    #[arg(long, value_name = "BYTES", value_parser = crate::units::bytes)]
    pub(crate) max_bytes: Option<u64>,
    /// Keep the last N records of each log, and more where they are stored together
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) keep: u64,
    /// Requests a second that one client may make; 0 for any number [default: 1000]
    #[arg(long, value_name = "N")]
    pub(crate) rate: Option<u32>,
    /// Connections at once [default: 16384]
    #[arg(long, value_name = "N")]
    pub(crate) max_connections: Option<usize>,
    /// Live streams at once [default: 12288]
    #[arg(long, value_name = "N")]
    pub(crate) max_streams: Option<usize>,
    /// Print where the server is as JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

fn http_url(text: &str) -> Result<Uri, String> {
    let said = || "expected http:// or https:// and a name, such as https://taffrail.example".to_owned();
    let url: Uri = text.parse().map_err(|_| said())?;
    let path = url.path_and_query().is_none_or(|path| path.as_str() == "/");
    if !matches!(url.scheme_str(), Some("http" | "https")) || url.authority().is_none() {
        return Err(said());
    }
    if path {
        Ok(url)
    } else {
        Err("a path cannot be part of it: the server has to be at the root of its name".to_owned())
    }
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
    /// Remove logs that were quiet for longer, such as 30d or 12h; interrupted runs go only by this
    #[arg(long, value_name = "TIME", value_parser = crate::units::duration)]
    pub(crate) max_age: Option<std::time::Duration>,
    /// Remove the oldest logs while all together take more in the store (compressed, without spool files), such as 10GiB
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
