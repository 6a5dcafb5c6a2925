//! Calls that wait and tell nothing meanwhile, answered without the SDK.
//!
//! What the SDK sets up for a request over HTTP takes some 50 KiB for as long as the request lasts, and a third of a
//! millisecond: room for messages that such a call never sends. A thousand of them that wait for the same thing are
//! answered from here, with what they wait for and nothing else, by the same code that makes the tools' results.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use memchr::memmem;
use rmcp::model::{CallToolResult, ProtocolVersion, RequestMetaObject};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    super::{
        args::{self, LogsArgs, StatusArgs, WaitSeconds},
        backend::{Backend, WaitUntil},
        call::{Failure, LOG_LEVEL_KEY},
        logs::{self, Reader},
        snapshot,
    },
    McpServer,
};

/// A call that waits.
pub(crate) struct Parked {
    /// The tool.
    pub(crate) tool: &'static str,
    /// The revision that the request itself names; older ones have it in a header alone.
    pub(crate) revision: Option<ProtocolVersion>,
    id: Value,
    answer: BoxFuture<'static, Result<CallToolResult, Failure>>,
}

/// Where the revisions without sessions say which one a request is of.
const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// A larger message is none of these.
const MOST_BYTES: usize = 64 * 1024;

impl McpServer {
    /// Parks the call that `body` is, if it is one that only waits. Whatever is wrong with it, or asked for beyond, leaves it
    /// to the SDK. It waits no longer than until `ending` fires.
    pub(crate) fn park(&self, body: &[u8], ending: &CancellationToken) -> Option<Parked> {
        // Who waits says how long; what does not say it need not be read twice.
        if body.len() > MOST_BYTES || memmem::find(body, b"wait_s").is_none() {
            return None;
        }
        let message: Value = serde_json::from_slice(body).ok()?;
        let id = message.get("id").filter(|id| id.is_string() || id.is_i64() || id.is_u64())?.clone();
        if message.get("jsonrpc")?.as_str()? != "2.0" || message.get("method")?.as_str()? != "tools/call" {
            return None;
        }
        let params = message.get("params")?.as_object()?;
        let revision = revision(params.get("_meta"))?;
        let arguments = params.get("arguments")?.as_object()?.clone();
        let waiter = Waiter { backend: Arc::clone(&self.backend), ending: ending.clone() };
        let shared_fs = self.shared_fs;
        let waits = |wait: Option<WaitSeconds>| wait.filter(|wait| *wait != WaitSeconds::NONE);
        let (tool, answer): (_, BoxFuture<'static, Result<CallToolResult, Failure>>) =
            match params.get("name")?.as_str()? {
                "run_status" => {
                    let StatusArgs { run, after, wait_s } = args::read(Some(arguments)).ok()?;
                    let limit = waits(wait_s)?.limit().ok()?;
                    let until = after.map_or(WaitUntil::Settled, WaitUntil::StateAfter);
                    let answer = async move {
                        waiter.wait(&run, until, limit).await?;
                        Ok(snapshot::result(waiter.backend.snapshot(&run).await?, shared_fs))
                    };
                    ("run_status", Box::pin(answer))
                }
                "run_logs" => {
                    let args: LogsArgs = args::read(Some(arguments)).ok()?;
                    waits(args.wait_s)?;
                    let empty_reads = Arc::clone(&self.empty_reads);
                    let answer = async move { logs::run_logs(&waiter, &empty_reads, shared_fs, args).await };
                    ("run_logs", Box::pin(answer))
                }
                _ => return None,
            };
        Some(Parked { tool, revision, id, answer })
    }
}

impl Parked {
    /// The message that answers the request.
    pub(crate) async fn message(self) -> Vec<u8> {
        let Self { tool: _, revision, id, answer } = self;
        let result = answer.await.unwrap_or_else(Failure::into_result);
        // Plain data, which always has a JSON form.
        let mut result = serde_json::to_value(result).unwrap_or_default();
        if let (None, Some(result)) = (revision, result.as_object_mut()) {
            // Older revisions have no kinds of results.
            result.remove("resultType");
        }
        json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string().into_bytes()
    }
}

/// The revision in a request's metadata; `None` for a request that wants to be told something, or whose metadata is not
/// what its revision asks for.
fn revision(meta: Option<&Value>) -> Option<Option<ProtocolVersion>> {
    let meta: RequestMetaObject = match meta {
        None => return Some(None),
        Some(meta) => serde_json::from_value(meta.clone()).ok()?,
    };
    if meta.contains_key("progressToken") || meta.contains_key(LOG_LEVEL_KEY) {
        return None;
    }
    let Some(named) = meta.get(PROTOCOL_VERSION) else { return Some(None) };
    let version = ProtocolVersion::KNOWN_VERSIONS.iter().find(|known| Some(known.as_str()) == named.as_str())?;
    meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty().then(|| Some(version.clone()))
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
