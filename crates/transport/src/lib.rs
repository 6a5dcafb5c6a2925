//! Taffrail's MCP surface: the tools, and MCP over standard input and output.
//!
//! Everything about runs is asked of a [`mcp::backend::Backend`]; this crate knows no store and no terminal.
//! [`serve_stdio`] is all that a command needs:
//!
//! ```no_run
//! use std::sync::Arc;
//! use taffrail_transport::{McpConfig, ServeError, mcp::backend::Backend, serve_stdio};
//!
//! async fn mcp(backend: Arc<dyn Backend>) -> Result<(), ServeError> {
//!     let config = McpConfig { shared_fs: true, ..McpConfig::default() };
//!     serve_stdio(backend, &config).await
//! }
//! ```

pub mod client;
pub mod forward;
pub mod http;
pub mod mcp;
mod serve;
mod service;
pub mod stdio;

pub use self::{
    mcp::{McpConfig, McpServer},
    serve::{ServeError, serve, serve_stdio},
    service::ServiceBackend,
};
