//! Tools that tell something before their result: logs, progress, lists that change.

use std::time::Duration;

use rmcp::{
    ErrorData,
    model::{CallToolRequestParams, CallToolResponse, Tool},
};
use taffrail_progress::ProgressSource as _;

use super::{plain, text, unknown};
use crate::{
    logs,
    server::{Context, Fixture},
};

const WITH_LOGGING: &str = "test_tool_with_logging";
const LOGGING: &str = "test_logging_tool";
const PROGRESS: &str = "test_tool_with_progress";
const CHANGE_TOOLS: &str = "test_trigger_tool_change";
const CHANGE_PROMPTS: &str = "test_trigger_prompt_change";

/// Between two messages. The suite wants some 50 ms; twice that, so that a busy machine does not make one of two reports.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) fn list() -> Vec<Tool> {
    vec![
        plain(WITH_LOGGING, "Logs three times"),
        plain(LOGGING, "Logs once"),
        plain(PROGRESS, "Reports progress three times"),
        plain(CHANGE_TOOLS, "Changes the list of tools"),
        plain(CHANGE_PROMPTS, "Changes the list of prompts"),
    ]
}

pub(super) async fn call(
    fixture: &Fixture,
    request: &CallToolRequestParams,
    cx: &Context,
) -> Result<CallToolResponse, ErrorData> {
    let words = match &*request.name {
        WITH_LOGGING => {
            logs::info(cx, "Tool execution started").await;
            tokio::time::sleep(PAUSE).await;
            logs::info(cx, "Tool processing data").await;
            tokio::time::sleep(PAUSE).await;
            logs::info(cx, "Tool execution completed").await;
            "logged three times"
        }
        LOGGING => {
            logs::info(cx, "Tool execution started").await;
            "logged where that was wanted"
        }
        PROGRESS => {
            let progress = cx.long_progress(Some(100));
            for done in [0, 50, 100] {
                if done > 0 {
                    tokio::time::sleep(PAUSE).await;
                }
                progress.emit(done).map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            }
            "all of it done"
        }
        CHANGE_TOOLS => {
            fixture.changes.change_tools();
            "the list of tools is another one"
        }
        CHANGE_PROMPTS => {
            fixture.changes.change_prompts();
            "the list of prompts is another one"
        }
        name => return Err(unknown(name)),
    };
    Ok(text(words).into())
}
