//! Calls that wait and tell nothing meanwhile, before they are calls.
//!
//! What the SDK sets up for a request over HTTP takes some 50 KiB for as long as the request lasts: room for messages
//! that such a call never sends. So it waits first, with nothing but what it waits for, and is made then, with its
//! `wait_s` used up.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use rmcp::model::ProtocolVersion;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    McpServer, args,
    args::{LogsArgs, StatusArgs, WaitSeconds},
    backend::{Backend, WaitUntil},
    call::{Failure, LOG_LEVEL_KEY},
    logs::{self, Reader},
};

/// A call that waits.
pub(crate) struct Parked {
    /// The tool.
    pub(crate) tool: &'static str,
    /// The revision that the request itself names; older ones have it in a header alone.
    pub(crate) revision: Option<ProtocolVersion>,
    /// Resolves when the call is to be made.
    pub(crate) until: BoxFuture<'static, ()>,
    /// The message of the call, which does not wait any more.
    pub(crate) message: Vec<u8>,
}

/// What every request of the revisions without sessions says of itself.
const REQUIRED: [&str; 3] = [
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
];

/// A larger message is none of these.
const MOST_BYTES: usize = 64 * 1024;

impl McpServer {
    /// Parks the call that `body` is, if it is one that only waits. Whatever is wrong with it, or asked for beyond, keeps it
    /// from that: it is then handled, or refused, as it is.
    pub(crate) fn park(&self, body: &[u8], ending: &CancellationToken) -> Option<Parked> {
        if body.len() > MOST_BYTES {
            return None;
        }
        let mut message: Value = serde_json::from_slice(body).ok()?;
        if message.get("method")?.as_str()? != "tools/call" || message.get("id")?.is_null() {
            return None;
        }
        let params = message.get_mut("params")?.as_object_mut()?;
        let revision = revision(params.get("_meta"))?;
        let arguments = params.get("arguments")?.as_object()?.clone();
        let waiter = Waiter { backend: Arc::clone(self.backend()), ending: ending.clone() };
        let (tool, until): (_, BoxFuture<'static, ()>) = match params.get("name")?.as_str()? {
            "run_status" => {
                let StatusArgs { run, after, wait_s } = args::read(Some(arguments)).ok()?;
                let limit = wait_s.filter(|wait| *wait != WaitSeconds::NONE)?.limit().ok()?;
                let until = after.map_or(WaitUntil::Settled, WaitUntil::StateAfter);
                // An error is found again by the call itself, which tells it.
                ("run_status", Box::pin(async move { drop(Reader::wait(&waiter, &run, until, limit).await) }))
            }
            "run_logs" => {
                let args: LogsArgs = args::read(Some(arguments)).ok()?;
                args.wait_s.filter(|wait| *wait != WaitSeconds::NONE)?.limit().ok()?;
                let query = logs::query(&args);
                let limit = logs::patience(self.empty_reads(), &query, args.wait_s).ok()?;
                let deadline = Instant::now() + limit;
                ("run_logs", Box::pin(async move { drop(logs::read_until(&waiter, &query, deadline).await) }))
            }
            _ => return None,
        };
        params.get_mut("arguments")?.as_object_mut()?.insert("wait_s".to_owned(), json!(0));
        Some(Parked { tool, revision, until, message: serde_json::to_vec(&message).ok()? })
    }
}

/// The revision in a request's metadata; `None` for a request that wants to be told something, or whose metadata is not
/// what its revision asks for.
fn revision(meta: Option<&Value>) -> Option<Option<ProtocolVersion>> {
    let none = Map::new();
    let meta = match meta {
        None => &none,
        Some(meta) => meta.as_object()?,
    };
    if meta.contains_key("progressToken") || meta.contains_key(LOG_LEVEL_KEY) {
        return None;
    }
    let [version, ..] = REQUIRED;
    let Some(version) = meta.get(version) else { return Some(None) };
    let version = ProtocolVersion::KNOWN_VERSIONS.iter().find(|known| Some(known.as_str()) == version.as_str())?;
    REQUIRED.iter().all(|key| meta.contains_key(*key)).then(|| Some(version.clone()))
}

/// Waits without a call.
struct Waiter {
    backend: Arc<dyn Backend>,
    ending: CancellationToken,
}

impl Reader for Waiter {
    fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    fn is_abandoned(&self) -> bool {
        self.ending.is_cancelled()
    }

    async fn wait(&self, run: &str, until: WaitUntil, limit: Duration) -> Result<(), Failure> {
        tokio::select! {
            biased;
            done = self.backend.wait(run, until) => done.map_err(Failure::from),
            () = tokio::time::sleep(limit) => Ok(()),
            () = self.ending.cancelled() => Ok(()),
        }
    }
}
