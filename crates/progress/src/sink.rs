//! The seam to whatever carries notifications.

use std::{error::Error, sync::Arc};

use taffrail_mcp_core::BoxFuture;

/// What a client put into a request's `_meta.progressToken` to ask for progress.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ProgressToken {
    /// A whole number.
    Number(i64),
    /// A string.
    Text(Arc<str>),
}

/// The parameters of one `notifications/progress`.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// The token of the request.
    pub token: ProgressToken,
    /// Finite, and strictly greater than in every notification before it on the same token.
    pub progress: f64,
    /// Positive and finite; absent where it is not known.
    pub total: Option<f64>,
    /// One line of at most 200 characters.
    pub message: Option<String>,
}

/// Why a notification could not be sent.
pub type SinkError = Box<dyn Error + Send + Sync>;

/// Carries progress notifications of one request to its client.
///
/// # What implementors may assume
///
/// There is one call at a time: the next begins when the future of the one before has resolved or was dropped. At most
/// two a second, as [`crate::Config`] has it.
///
/// # What implementors must guarantee
///
/// The future resolves once the order of the notification with whatever the same client is sent later is settled, so
/// that a response that is sent afterwards comes after it. A client that does not read may hold it up for as long as it
/// likes: meanwhile newer progress replaces older. A notification whose future is dropped may or may not go out, but not
/// after later ones.
///
/// # Failure
///
/// An error ends the stream: nothing more is sent, and the work is not told, because nobody is there any more.
pub trait ProgressSink: Send + Sync {
    /// Sends one notification.
    fn send(&self, notification: Notification) -> BoxFuture<'_, Result<(), SinkError>>;
}
