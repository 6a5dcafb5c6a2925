//! What a handler may do in the middle of its work, and where.

mod answer;
mod format;
mod replay;
mod seal;
mod single_use;

use std::{fmt, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};
use taffrail_mcp_core::{BoxFuture, Elicitor, Question, Reply};

use crate::{MrtrContext, ProgressSource, Source};

pub use format::read_answer;
pub(crate) use format::{Past, read_past, write_past};
pub(crate) use replay::{Call, Outcome, Stop, Way, run};
pub(crate) use seal::{Binding, digest};
pub use seal::{KeyError, StateKey};
pub use single_use::{SingleUse, SpentStates};

macro_rules! contexts {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        pub struct $name {
            call: Arc<Call>,
            source: Source,
        }

        impl $name {
            pub(crate) const fn new(call: Arc<Call>, source: Source) -> Self {
                Self { call, source }
            }

            /// Does `work` the first time that the handler comes here, and gives what came of it again in every replay: for
            /// what must not happen twice, such as starting something, before a question is asked.
            ///
            /// The Nth call gets what the Nth call got, so their order is the same each time. The value travels in the
            /// client's hands with the answers, signed and not encrypted. An error is not remembered. The work is lost when
            /// a question is asked while it is under way. A client that makes the first request again starts anew: against
            /// that, take a key of the client's.
            ///
            /// # Errors
            ///
            /// Those of `work`. Where the value that is remembered is not one of this type, the request ends with an error.
            pub fn once<T, E, W>(&self, work: W) -> impl Future<Output = Result<T, E>> + Send + use<T, E, W>
            where
                T: Serialize + DeserializeOwned + Send,
                W: Future<Output = Result<T, E>> + Send,
            {
                Arc::clone(&self.call).once(work)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).field("handler_name", &self.call.name()).finish_non_exhaustive()
            }
        }

        impl ProgressSource for $name {
            fn progress_source(&self) -> Source {
                self.source.clone()
            }
        }

        impl Elicitor for $name {
            fn elicit(&self, question: Question) -> BoxFuture<'_, Reply> {
                Arc::clone(&self.call).ask(question)
            }
        }

        impl MrtrContext for $name {
            fn handler_name(&self) -> &str {
                self.call.name()
            }

            fn can_elicit(&self) -> bool {
                self.call.can_ask()
            }
        }
    )*};
}

contexts! {
    /// The context of a `tools/call`, and of nothing else: only [`Mrtr::tool`](crate::rmcp::Mrtr::tool) makes one.
    ///
    /// A tool's handler cannot be called from a prompt:
    ///
    /// ```compile_fail,E0308
    /// use taffrail_progress::{PromptContext, ToolContext};
    ///
    /// fn deploy(_: &ToolContext) {}
    /// fn prompt(cx: &PromptContext) {
    ///     deploy(cx);
    /// }
    /// ```
    ///
    /// and where there is no call nobody can make a context:
    ///
    /// ```compile_fail,E0624
    /// use taffrail_progress::{Source, ToolContext};
    ///
    /// fn list_tools<C>(call: C, source: Source) -> ToolContext {
    ///     ToolContext::new(call, source)
    /// }
    /// ```
    ToolContext
    /// The context of a `prompts/get`, and of nothing else: only [`Mrtr::prompt`](crate::rmcp::Mrtr::prompt) makes one.
    PromptContext
    /// The context of a `resources/read`, and of nothing else: only [`Mrtr::resource`](crate::rmcp::Mrtr::resource) makes
    /// one.
    ResourceContext
}
