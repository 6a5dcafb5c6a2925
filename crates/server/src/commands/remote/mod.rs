//! Commands that ask a server: which one, and what its refusals mean here.

pub(crate) mod logs;
pub(crate) mod look;
pub(crate) mod run;
mod watch;

use std::fs;

use anyhow::{Context as _, Result};
use taffrail_mcp_core::RunId;
use taffrail_runs::RunsError;
use taffrail_transport::client::{Client, ClientConfig, ClientError, ServerUrl, Token};

use crate::{cli, exit, view};

/// A client of the server that was named; `None` when none was.
pub(crate) fn client(remote: &cli::Remote) -> Result<Option<Client>> {
    // An empty variable is as good as none.
    let Some(url) = remote.url.as_deref().filter(|url| !url.trim().is_empty()) else { return Ok(None) };
    let url = ServerUrl::new(url)?;
    view::set_hint_there(url.as_str());
    Ok(Some(Client::new(ClientConfig::new(url, token(remote)?))?))
}

/// A client of a server whose address is known from elsewhere.
pub(super) fn client_of(url: &str, remote: &cli::Remote) -> Result<Client> {
    Ok(Client::new(ClientConfig::new(ServerUrl::new(url)?, token(remote)?))?)
}

fn token(remote: &cli::Remote) -> Result<Option<Token>> {
    let text = match &remote.token_file {
        Some(path) => Some(fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?),
        None => remote.token.clone().filter(|token| !token.trim().is_empty()),
    };
    Ok(text.as_deref().map(Token::new).transpose()?)
}

/// The id of a run, as it was typed.
pub(super) fn run_id(text: &str) -> Result<RunId> {
    Ok(RunId::new(text).map_err(|_| RunsError::NoRun { run: text.to_owned() })?)
}

/// The exit status of a command that a server, or the way to it, made fail.
pub(crate) fn status_of(error: &ClientError) -> u8 {
    match error {
        ClientError::Url { .. } | ClientError::Token => exit::USAGE,
        _ if error.is_not_found() => exit::NOT_FOUND,
        // What was typed is wrong: a pattern, a cursor, inputs.
        ClientError::Refused(refusal) if matches!(refusal.status, 400 | 422) || refusal.code == "cursor-ahead" => {
            exit::USAGE
        }
        _ => exit::HALT,
    }
}
