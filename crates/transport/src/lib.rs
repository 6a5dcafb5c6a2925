//! Taffrail's MCP surface.

pub mod mcp;
pub mod stdio;
