//! The MCP server: tools over a [`Backend`].

pub mod backend;
