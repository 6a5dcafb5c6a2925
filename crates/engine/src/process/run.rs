//! Starting one process and staying with it to its end.

use std::sync::Arc;

use taffrail_mcp_core::EventSink;

use super::{Cancel, Command, Outcome, OutputBudget, Scope, SpawnError};

/// Starts `command`, hands what it writes to `sink`, and returns when nothing of it is left.
///
/// # Errors
///
/// When the process could not be started; nothing was written then.
pub async fn run(
    command: &Command,
    _sink: &Arc<dyn EventSink>,
    _budget: &OutputBudget,
    _scope: &Scope,
    _cancel: &Cancel,
) -> Result<Outcome, SpawnError> {
    let source = std::io::Error::other("not finished");
    Err(SpawnError::Other { program: format!("{:?}", command.program), hint: "wait", source })
}
