//! MCP over the process's own standard input and output.
//!
//! rmcp brings a stdio transport; this one exists because of what was measured with that: one hop to a
//! blocking pool per write, an end of input that is told only after five seconds, text that is not JSON
//! dropped without an answer, and a server that dies of a notification before the first request.

mod lines;
mod outbox;
mod parent;
mod parse;
mod reader;

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::AsFd,
    time::Duration,
};

use rmcp::{
    RoleServer,
    model::{ClientJsonRpcMessage, ClientRequest, GetMeta, ProtocolVersion, ServerJsonRpcMessage},
    transport::Transport,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::parse::Parsed;
pub use self::{outbox::Outbox, parent::ParentWatch};

/// How long closing waits for a client that does not read.
pub(crate) const CLOSE_LIMIT: Duration = Duration::from_millis(300);

/// A server-side rmcp [`Transport`] over any pair of blocking streams, one JSON-RPC message a line.
///
/// - **Order.** A message has its place in the output when `send` is called, not when its future is polled.
/// - **Bounded.** A future of `send` is done when there is room for the next message. While a client does
///   not read, sends wait and at some point its requests are no longer read; memory stays within a few MiB.
/// - **Prompt.** [`StdioTransport::closed`] is cancelled the moment the input ends or the output breaks.
/// - **Never silent.** A line that is not JSON is answered with -32700, a malformed request and a line of
///   more than 4 MiB with -32600.
///
/// Two threads are started, one blocked in `read`, one that writes whatever is queued in single writes.
/// Dropping the transport lets the writer finish what is queued; the reader ends with its next line.
#[derive(Debug)]
pub struct StdioTransport {
    input: mpsc::Receiver<Parsed>,
    outbox: Outbox,
    closed: CancellationToken,
    /// A request that begins a session has been handed out.
    begun: bool,
}

impl StdioTransport {
    /// Starts a transport that reads `input` and writes `output`.
    ///
    /// # Errors
    ///
    /// When a thread cannot be started.
    pub fn new(input: impl Read + Send + 'static, output: impl Write + Send + 'static) -> io::Result<Self> {
        let closed = CancellationToken::new();
        let outbox = Outbox::spawn(output, closed.clone())?;
        let input = reader::spawn(input, closed.clone())?;
        Ok(Self { input, outbox, closed, begun: false })
    }

    /// Takes over the process's standard input and output.
    ///
    /// From here on descriptor 1 is standard error and descriptor 0 is `/dev/null`: a stray print, or a
    /// child that inherits them, can neither write into the protocol nor eat from it.
    ///
    /// # Errors
    ///
    /// When the descriptors cannot be duplicated or a thread cannot be started.
    pub fn from_process_stdio() -> io::Result<Self> {
        let input = File::from(rustix::stdio::stdin().try_clone_to_owned()?);
        let output = File::from(rustix::stdio::stdout().try_clone_to_owned()?);
        rustix::stdio::dup2_stdin(File::open("/dev/null")?.as_fd())?;
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
        Self::new(input, output)
    }

    /// Cancelled when the input has ended or the output is broken. Messages read before the end are still
    /// received, and answers still written.
    pub fn closed(&self) -> CancellationToken {
        self.closed.clone()
    }

    /// The way out, for lines that need not pass through rmcp's types.
    pub fn outbox(&self) -> Outbox {
        self.outbox.clone()
    }

    /// Whether rmcp may see `message`. Until a session has begun, its `serve` fails on anything that is
    /// not a request, and a stray notification would cost the whole server.
    fn admit(&mut self, message: &ClientJsonRpcMessage) -> bool {
        if let (false, ClientJsonRpcMessage::Request(request)) = (self.begun, message) {
            self.begun = begins_session(&request.request);
            return true;
        }
        if !self.begun {
            tracing::debug!("dropping what came before the first request");
        }
        self.begun
    }
}

/// The rule by which rmcp's `serve` leaves its handshake: `ping` and `server/discover` do not, an
/// `initialize` does, anything else only with the metadata of the stateless revisions.
fn begins_session(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        other => {
            let meta = other.get_meta();
            meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
                && meta.protocol_version().is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(&version))
        }
    }
}

impl Transport<RoleServer> for StdioTransport {
    type Error = io::Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        // Queued here, not in the future: rmcp spawns a task per message, and tasks run in any order.
        let queued = serde_json::to_vec(&message).map(|mut line| {
            line.push(b'\n');
            self.outbox.queue(&line)
        });
        async move { queued.map_err(io::Error::from)?.await }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        // Polled in a `select!`: nothing is lost between the awaits when this future is dropped.
        loop {
            self.outbox.room_to_read().await;
            match self.input.recv().await? {
                Parsed::Message(message) => {
                    if self.admit(&message) {
                        return Some(*message);
                    }
                }
                // Waiting for room is the next round's first step.
                Parsed::Refuse(answer) => drop(self.outbox.queue(answer.as_bytes())),
                Parsed::Ignore => {}
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.input.close();
        self.outbox.close(CLOSE_LIMIT).await
    }
}

impl Drop for StdioTransport {
    fn drop(&mut self) {
        self.outbox.retire();
    }
}
