//! Options of commands that can ask a server.

use std::{path::PathBuf, time::Duration};

use clap::Args;

/// Which server to ask.
#[derive(Debug, Clone, Args)]
pub(crate) struct Remote {
    /// Ask the server at this URL instead of the data directory here
    #[arg(long, env = "TAFFRAIL_URL", value_name = "URL", help_heading = "Server")]
    pub(crate) url: Option<String>,
    /// The server's token; what is typed can be seen by others, so that the variable or a file is better
    #[arg(long, env = "TAFFRAIL_TOKEN", hide_env_values = true, value_name = "TOKEN", help_heading = "Server")]
    pub(crate) token: Option<String>,
    /// A file with the server's token
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    pub(crate) token_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Push {
    /// How long to try
    #[arg(long, value_name = "TIME", value_parser = crate::units::duration, default_value = "60s")]
    pub(crate) drain: Duration,
    /// Print JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) remote: Remote,
}
