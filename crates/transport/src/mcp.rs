//! The MCP server: eight tools, resources and prompts over a [`backend::Backend`].
//!
//! A run never lives in a request: the tools start it, wait for it and read it. What a call waits for, and
//! what a client is told meanwhile, is decided here; all else is the backend's.

mod answer;
mod args;
pub mod backend;
mod call;
mod changes;
mod completion;
mod empty_reads;
mod form;
pub mod level;
mod line;
mod logs;
mod prompts;
mod question;
mod reporter;
mod resources;
mod runs;
mod schema;
mod server;
mod snapshot;
mod subscriptions;
mod tables;
pub mod tasks;
mod told;
mod tools;
mod watch;
mod window;

pub(crate) use self::server::Parked;
pub use self::{
    prompts::prompt_list,
    resources::template_list,
    server::{McpConfig, McpServer},
    tools::tool_list,
};
