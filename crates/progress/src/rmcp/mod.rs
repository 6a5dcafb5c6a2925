//! The adapter for rmcp 3.
//!
//! ```no_run
//! use rmcp::{RoleServer, ServerHandler, ServiceExt as _, model::*, service::RequestContext};
//! use taffrail_progress::{ProgressSource as _, rmcp::WithProgress};
//!
//! struct Server;
//!
//! impl ServerHandler for Server {
//!     async fn call_tool(
//!         &self,
//!         _: CallToolRequestParams,
//!         cx: RequestContext<RoleServer>,
//!     ) -> Result<CallToolResponse, rmcp::ErrorData> {
//!         let p = cx.counting_progress(Some(3));
//!         for part in ["one", "two", "three"] {
//!             let _ = p.emit_with(part);
//!         }
//!         Ok(CallToolResult::success(vec![]).into())
//!     }
//! }
//!
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! let stdio = (tokio::io::stdin(), tokio::io::stdout());
//! WithProgress::new(Server).serve(stdio).await?.waiting().await?;
//! # Ok(())
//! # }
//! ```

mod direct;
mod handler;
mod mrtr;

use std::{
    future::Future,
    sync::{Arc, Once},
};

use rmcp::{
    ErrorData, Peer, RoleServer,
    model::{NumberOrString, ProgressNotificationParam},
    service::RequestContext,
};

use crate::{
    BoxFuture, Config, Notification, ProgressSink, ProgressSource, ProgressToken, RequestProgress, SinkError, Source,
};

pub use crate::mrtr::read_answer as read_reply;
pub use mrtr::{Mrtr, input_request, takes_forms};

/// An rmcp server whose request contexts report progress.
///
/// It stands between rmcp and the server, and makes the guarantees that a handler alone cannot: when the handler has
/// returned, the last progress goes out, and only then the response; nothing is sent after that, and nothing once the
/// request is cancelled. A request without a progress token costs one allocation.
///
/// Works over every transport. Over Streamable HTTP, make one in the service factory:
/// `StreamableHttpService::new(|| Ok(WithProgress::new(Server)), …)`.
#[derive(Debug, Clone)]
pub struct WithProgress<S> {
    server: S,
    config: Config,
}

impl<S> WithProgress<S> {
    /// Wraps `server`, with the default manners.
    pub fn new(server: S) -> Self {
        Self { server, config: Config::default() }
    }

    /// Sets how often and how patiently.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }
}

/// In a server that is wrapped in [`WithProgress`], any handler's context makes emitters.
///
/// In one that is not, reports are checked and go nowhere, because nothing could keep the last one before the response;
/// a warning says so, once.
impl ProgressSource for RequestContext<RoleServer> {
    fn progress_source(&self) -> Source {
        static WARNING: Once = Once::new();
        self.extensions.get::<Source>().cloned().unwrap_or_else(|| {
            WARNING.call_once(|| tracing::warn!("progress goes nowhere: wrap the server in `WithProgress`"));
            Source::silent()
        })
    }
}

/// Handles one request with progress around it, for servers that do not use [`WithProgress`].
///
/// The context that `handle` gets makes emitters. When its future has resolved, the last progress goes out, and only then
/// this returns; nothing is sent after that, and nothing once the request is cancelled.
///
/// # Errors
///
/// Those of `handle`.
pub async fn report<T, F>(
    mut context: RequestContext<RoleServer>,
    config: Config,
    handle: impl FnOnce(RequestContext<RoleServer>) -> F + Send,
) -> Result<T, ErrorData>
where
    F: Future<Output = Result<T, ErrorData>> + Send,
    T: Send,
{
    if context.extensions.get::<Source>().is_some() {
        // Wrapped twice: the outer one does it all.
        return handle(context).await;
    }
    let progress = start(&context, config);
    context.extensions.insert(progress.progress_source());
    let cancelled = context.ct.clone();
    let mut handling = Box::pin(handle(context));
    let result = tokio::select! {
        // First: a handler that is woken by the cancel, too, must not get a report through.
        biased;
        () = cancelled.cancelled() => {
            progress.stop();
            handling.await
        }
        result = &mut handling => result,
    };
    if cancelled.is_cancelled() {
        progress.stop();
    } else {
        progress.finish().await;
    }
    result
}

/// Starts the progress of a request, for servers that route requests themselves and can use neither [`WithProgress`] nor
/// [`report`].
///
/// They have to await [`RequestProgress::finish`] before they return the response, and to call
/// [`RequestProgress::stop`] when the request is cancelled.
pub fn start(context: &RequestContext<RoleServer>, config: Config) -> RequestProgress {
    let token = context.meta.get_progress_token().map(|token| match token.0 {
        NumberOrString::Number(number) => ProgressToken::Number(number),
        NumberOrString::String(text) => ProgressToken::Text(text),
    });
    RequestProgress::start(token, Arc::new(PeerSink(context.peer.clone())), config)
}

/// Sends to the client of a request, one notification after the other: rmcp keeps no order between messages that wait
/// at the same time.
#[derive(Debug)]
struct PeerSink(Peer<RoleServer>);

impl ProgressSink for PeerSink {
    fn send(&self, notification: Notification) -> BoxFuture<'_, Result<(), SinkError>> {
        let Notification { token, progress, total, message } = notification;
        let token = rmcp::model::ProgressToken(match token {
            ProgressToken::Number(number) => NumberOrString::Number(number),
            ProgressToken::Text(text) => NumberOrString::String(text),
        });
        let mut params = ProgressNotificationParam::new(token, progress);
        (params.total, params.message) = (total, message);
        Box::pin(async move { Ok(self.0.notify_progress(params).await?) })
    }
}
