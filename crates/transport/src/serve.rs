//! The MCP server on the process's own standard streams.

use std::{io, sync::Arc, time::Duration};

use rmcp::{ServiceExt as _, service::ServerInitializeError};

use crate::{
    mcp::{McpConfig, McpServer, backend::Backend},
    stdio::{CLOSE_LIMIT, ParentWatch, StdioTransport},
};

/// What calls have, once the input has ended, to return what they know. Waits end at once by then, so
/// this is for the store; rmcp itself would give them five seconds.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// Why the server could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The streams could not be taken over.
    #[error("cannot use standard input and output")]
    Streams(#[source] io::Error),
    /// The client and this server found no common way to begin.
    #[error("the MCP session could not begin")]
    Handshake(#[source] Box<ServerInitializeError>),
}

/// Serves MCP on standard input and output until the input ends, the client no longer reads, or the
/// process that started this one is gone. Returns within a second of that; runs go on, and ending them is
/// the caller's business.
///
/// From the call on standard output belongs to the protocol: descriptor 1 is standard error.
///
/// # Errors
///
/// [`ServeError`] when the streams cannot be taken over or a session cannot begin.
pub async fn serve_stdio(backend: Arc<dyn Backend>, config: &McpConfig) -> Result<(), ServeError> {
    let parent = ParentWatch::new();
    let transport = StdioTransport::from_process_stdio().map_err(ServeError::Streams)?;
    tokio::select! {
        served = serve(backend, config, transport) => served,
        () = parent.gone() => {
            tracing::info!("the process that started this server is gone");
            Ok(())
        }
    }
}

/// Serves MCP over `transport` until its input ends or its output breaks.
///
/// # Errors
///
/// [`ServeError::Handshake`] when a session cannot begin.
pub async fn serve(backend: Arc<dyn Backend>, config: &McpConfig, transport: StdioTransport) -> Result<(), ServeError> {
    let (closed, outbox) = (transport.closed(), transport.outbox());
    let server = McpServer::new(backend, config).over(&transport);
    let session = async {
        match server.serve(transport).await {
            Ok(running) => {
                // It ends with the input; how is of no interest.
                let _ = running.waiting().await;
                Ok(())
            }
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(ServeError::Handshake(Box::new(error))),
        }
    };
    let overdue = async {
        closed.cancelled().await;
        tokio::time::sleep(LAST_ANSWERS).await;
    };
    let served = tokio::select! {
        served = session => served,
        () = overdue => Ok(()),
    };
    // What was answered last may not have been written yet; nobody need read it.
    let _ = outbox.close(CLOSE_LIMIT).await;
    served
}
