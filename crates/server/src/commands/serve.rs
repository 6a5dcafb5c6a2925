//! `taffrail serve`.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;
use taffrail_relay::Retention;
use taffrail_runs::Layout;
use taffrail_transport::http::{
    CommitMeter, HttpConfig, HttpError, HttpLimits, HttpServer, MeasuredStore, OperatorToken,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use super::{Usage, print_json};
use crate::{cli, context, exit, store::StoreChoice, token};

/// Where the token comes from when no file is named: for machines that share it.
const TOKEN_VARIABLE: &str = "TAFFRAIL_TOKEN";

/// What a server says of itself when it has begun.
#[derive(Serialize)]
struct Serving<'a> {
    listen: SocketAddr,
    url: String,
    /// Signs a browser in, once.
    sign_in: &'a str,
    store: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_file: Option<String>,
}

/// Serves the runs of a store over HTTP until a signal asks to end. Runs that this process hosts are interrupted then,
/// and can be resumed from anywhere. A second signal ends everything at once.
pub(crate) async fn serve(common: &cli::Common, args: cli::Serve) -> Result<u8> {
    let signals = signals()?;
    let layout = context::layout(common)?;
    context::make_private(layout.root())?;
    let (token, token_file) = keys(&args, &layout)?.unzip();
    let commits = CommitMeter::default();
    raise_descriptors();
    let choice = args.store.clone().unwrap_or(StoreChoice::Own);
    let (store, hosts) = choice.open(&layout).await?;
    let store = MeasuredStore::new(store, commits.clone());
    let retention = retention(&args);
    let service = context::open_host_on(common, Arc::new(store), |config| {
        config.hosts = hosts;
        config.retention = retention;
    })?;
    let server = match HttpServer::bind(service.clone(), config(&args, token, commits, &layout), args.listen) {
        Ok(server) => server,
        Err(error) => {
            service.close().await;
            return Err(match error {
                HttpError::OpenToAll { .. } => Usage(error.to_string()).into(),
                error => error.into(),
            });
        }
    };
    say(&args, &server, choice.kind(), token_file.flatten())?;
    let ended = async {
        server.serve(asked(signals.clone(), 1)).await;
        service.close().await;
    };
    tokio::select! {
        () = ended => {}
        () = asked(signals.clone(), 2) => service.close_within(Duration::ZERO).await,
    }
    Ok(exit::DONE)
}

/// The token, and the file that it is in, if it is in one.
fn keys(args: &cli::Serve, layout: &Layout) -> Result<Option<(OperatorToken, Option<String>)>> {
    if args.no_auth {
        return Ok(None);
    }
    if let Some(path) = &args.token_file {
        return Ok(Some((token::read(path)?, Some(path.display().to_string()))));
    }
    if let Some(text) = std::env::var(TOKEN_VARIABLE).ok().filter(|text| !text.is_empty()) {
        let token = OperatorToken::new(text.trim()).with_context(|| format!("in {TOKEN_VARIABLE}"));
        return Ok(Some((token.map_err(|error| Usage(format!("{error:#}")))?, None)));
    }
    let path = token::path(layout);
    Ok(Some((token::read_or_make(&path)?, Some(path.display().to_string()))))
}

fn config(args: &cli::Serve, token: Option<OperatorToken>, commits: CommitMeter, layout: &Layout) -> HttpConfig {
    let usual = HttpLimits::default();
    let limits = HttpLimits {
        requests_per_second: args.rate.unwrap_or(usual.requests_per_second),
        connections: args.max_connections.unwrap_or(usual.connections),
        streams: args.max_streams.unwrap_or(usual.streams),
        ..usual
    };
    HttpConfig {
        token,
        allowed_hosts: args.allowed_hosts.clone(),
        allowed_origins: args.allowed_origins.clone(),
        public_url: args.public_url.clone(),
        forwarded_for: args.forwarded_for,
        shared_fs: args.shared_fs,
        event_logger: args.event_logger.clone(),
        data_dir: Some(layout.root().to_owned()),
        commits,
        limits,
        ..HttpConfig::default()
    }
}

/// How much of the log is kept, if not all.
fn retention(args: &cli::Serve) -> Option<Retention> {
    let cli::Serve { max_age, max_bytes, keep, .. } = *args;
    (max_age.is_some() || max_bytes.is_some()).then_some(Retention { max_age, max_bytes, keep_records: keep })
}

/// Tells where to find the server: people on stderr, programs on stdout.
#[expect(clippy::print_stderr, reason = "people have to learn the address and how to sign in")]
fn say(args: &cli::Serve, server: &HttpServer, store: &'static str, token_file: Option<String>) -> Result<()> {
    let listen = server.local_addr();
    let (url, sign_in) = (server.url(), server.sign_in_url());
    if args.json {
        return print_json(&Serving { listen, url, sign_in: &sign_in, store, token_file });
    }
    eprintln!("taffrail: serving at {url}");
    match args.no_auth {
        true => eprintln!("taffrail: without a token: every program on this machine may start runs"),
        false => eprintln!("taffrail: sign a browser in with {sign_in} (works once)"),
    }
    if let Some(file) = token_file {
        eprintln!("taffrail: programs send the token in {file}");
    }
    Ok(())
}

/// Every connection takes a descriptor; the usual 1024 are soon gone. What the system allows is taken.
fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum || limit.maximum.is_none() {
        let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
        if let Err(error) = raised {
            tracing::debug!(%error, "the number of open files cannot be raised");
        }
    }
}

/// Counts the signals that ask to end, from now on.
fn signals() -> Result<watch::Receiver<u32>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (count, counted) = watch::channel(0);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            count.send_modify(|count| *count += 1);
        }
    });
    Ok(counted)
}

/// Resolves when so many signals have come.
async fn asked(mut signals: watch::Receiver<u32>, times: u32) {
    if signals.wait_for(|count| *count >= times).await.is_err() {
        // The task that counts ends with the process only.
        std::future::pending::<()>().await;
    }
}
