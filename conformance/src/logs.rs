//! Log notifications of tools.

use rmcp::model;
use serde_json::Value;

use crate::server::{Context, is_modern};

/// Sends `text` at level info, where the request wants it.
///
/// A request without handshake says so itself. For the others the level would be the session's; without sessions they get
/// everything, which the protocol allows where no level was set.
#[expect(deprecated, reason = "logging is deprecated and still there")]
pub(crate) async fn info(cx: &Context, text: &str) {
    let wanted = match cx.meta.log_level() {
        Some(level) => level as u8 <= model::LoggingLevel::Info as u8,
        None => !is_modern(cx),
    };
    if wanted {
        let message = model::LoggingMessageNotificationParam::new(model::LoggingLevel::Info, Value::from(text))
            .with_logger("test");
        // A client that has hung up misses nothing that it could read.
        let _ = cx.peer.notify_logging_message(message).await;
    }
}
