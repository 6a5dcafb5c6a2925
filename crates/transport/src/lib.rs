//! Taffrail's MCP surface.

pub mod mcp;
