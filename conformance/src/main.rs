//! The server that the official conformance suite of MCP is run against.
//!
//! It has the tools, prompts and resources that the suite's scenarios name, and nothing else of its own: the transport is
//! `taffrail_transport::http::McpEndpoint`, which the product's `/mcp` is, progress and questions are `taffrail-progress`.
//! `cargo xtask conformance` builds and starts it; it listens on a free port of loopback, prints its URL, and ends with its
//! standard input, so that it never outlives who started it.

mod asks;
mod changes;
mod completions;
mod jobs;
mod logs;
mod picture;
mod prompts;
mod resources;
mod server;
mod tools;

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use axum::{Router, middleware, routing::post_service, serve::ListenerExt as _};
use taffrail_progress::{Config, rmcp::WithProgress};
use taffrail_transport::http::{McpEndpoint, McpEndpointConfig, only_local};
use tokio::{
    io::{copy, sink, stdin},
    net::TcpListener,
};
use tokio_util::sync::CancellationToken;

use crate::server::Fixture;

/// The suite wants three reports within a fraction of a second to come one by one; the product sends two a second.
const BETWEEN_REPORTS: Duration = Duration::from_millis(20);

#[tokio::main]
async fn main() -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("listening on loopback")?;
    let addr = listener.local_addr()?;
    let closing = CancellationToken::new();
    let fixture = Arc::new(Fixture::new(closing.clone())?);
    let shared = Arc::clone(&fixture);
    let pace = Config::default().min_interval(BETWEEN_REPORTS);
    let make = move || WithProgress::new(Arc::clone(&fixture)).config(pace);
    let config = McpEndpointConfig::default();
    let cut = config.cut.clone();
    let router = Router::new()
        .route("/mcp", post_service(McpEndpoint::new(make, config)))
        .layer(middleware::from_fn(only_local));
    announce(&format!("http://{addr}/mcp"));
    let ended = async move {
        // Whatever comes is not for us; the end is.
        _ = copy(&mut stdin(), &mut sink()).await;
        closing.cancel();
        cut.cancel();
    };
    let listener = listener.tap_io(|stream| _ = stream.set_nodelay(true));
    axum::serve(listener, router).with_graceful_shutdown(ended).await.context("serving")?;
    shared.jobs.close().await;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the URL is this program's output")]
fn announce(url: &str) {
    println!("{url}");
}
