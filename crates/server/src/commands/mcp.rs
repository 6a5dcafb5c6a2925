//! `taffrail mcp`.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use taffrail_transport::{McpConfig, ServiceBackend, serve_stdio};
use tokio::signal::unix::{SignalKind, signal};

use crate::{cli, context, exit};

/// What processes have to end by themselves once the client is gone: the server promises to be gone two seconds later,
/// and hosts kill sooner than the usual grace of runs ends.
const GRACE: Duration = Duration::from_secs(1);

/// Serves MCP on standard input and output until the input ends, the client's process is gone, or a signal asks.
/// Runs that this process hosts are interrupted then, and can be resumed from anywhere.
pub(crate) async fn mcp(common: &cli::Common, args: cli::Mcp) -> Result<u8> {
    let service = context::open_host(common)?;
    let backend = Arc::new(ServiceBackend::new(service.clone(), true, "mcp:stdio"));
    let config = McpConfig { shared_fs: true, event_logger: args.event_logger, ..McpConfig::default() };
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        served = serve_stdio(backend, &config) => served?,
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    service.close_within(GRACE).await;
    Ok(exit::DONE)
}
