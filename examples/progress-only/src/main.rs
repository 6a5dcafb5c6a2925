//! An rmcp server on standard input and output whose tools report progress.
//!
//! ```sh
//! (cat examples/progress-only/input; sleep 2) | cargo run -q -p progress-only
//! ```
//!
//! The pause keeps the input open, as a client does: once it has ended, rmcp sends responses only.
//!
//! What progress takes: the wrapper in `main`, and in a handler one line for an emitter and one for each report.

use std::{error::Error, thread, time::Duration};

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _,
    model::{CallToolResult, ContentBlock, ServerCapabilities, ServerConfig},
    service::RequestContext,
    tool, tool_handler, tool_router,
};
use taffrail_progress::{Branch, ProgressSource as _, rmcp::WithProgress};

struct Server;

#[tool_router]
impl Server {
    /// Counts to three, slowly enough to watch.
    #[tool]
    async fn count(&self, cx: RequestContext<RoleServer>) -> Result<CallToolResult, ErrorData> {
        let p = cx.counting_progress(Some(3));
        for part in ["one", "two", "three"] {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let _ = p.emit_with(part);
        }
        Ok(text("counted"))
    }

    /// Does 64 jobs on eight threads, and reports all of them as one.
    #[tool]
    async fn fan_out(&self, cx: RequestContext<RoleServer>) -> Result<CallToolResult, ErrorData> {
        let mut jobs = cx.percent_progress().split(&[1.0; 64]).map_err(internal)?;
        let shares: Vec<Vec<Branch>> = (0..8).map(|_| jobs.split_off(jobs.len() - 8)).collect();
        let threads = shares.into_iter().map(|share| move || share.iter().for_each(job));
        let waiting: Vec<_> = threads.map(tokio::task::spawn_blocking).collect();
        for thread in waiting {
            thread.await.map_err(internal)?;
        }
        Ok(text("64 jobs done"))
    }
}

/// A hundred steps of some work. It does not know that it is one of many.
fn job(branch: &Branch) {
    let p = branch.counting_progress(Some(100));
    for step in 1..=100 {
        thread::sleep(Duration::from_millis(2));
        let _ = p.emit_with(format_args!("step {step}"));
    }
}

#[tool_handler]
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

fn text(words: &str) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(words)])
}

fn internal(error: impl Error) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let stdio = (tokio::io::stdin(), tokio::io::stdout());
    WithProgress::new(Server).serve(stdio).await?.waiting().await?;
    Ok(())
}
