//! What a handler may do in the middle of its work.

use taffrail_mcp_core::Elicitor;

use crate::ProgressSource;

/// What the handlers of `tools/call`, `prompts/get` and `resources/read` have in common: they may ask a person, and they
/// may report progress. (MCP 2026-07-28, multi round-trip requests: an `InputRequiredResult` answers these three only.)
///
/// Asking works by replay. The first time, [`Elicitor::elicit`] does not return: the handler is dropped where it waits,
/// and the client is told what is asked. It retries the request with the answers, the handler runs again from its
/// beginning, and its Nth question gets the Nth answer. So a handler asks before it acts, or acts in a way that may be
/// repeated, and it asks the same questions in the same order: one that differs from the one that was answered ends the
/// request with an error, never with the answer to another question. The progress of a retry starts afresh.
///
/// Where the client cannot be asked, the reply is [`Reply::Dismissed`](crate::Reply), at once.
pub trait MrtrContext: Elicitor + ProgressSource {
    /// The name of the tool or prompt, or the URI of the resource.
    fn handler_name(&self) -> &str;

    /// Whether a question reaches the client. Where it does not, the reply is at once that nobody was asked.
    fn can_elicit(&self) -> bool;
}
