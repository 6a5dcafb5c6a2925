//! The HTTP surface: in process where that is enough, over sockets where it matters.

pub(crate) mod ground;

mod ending;
mod gate;
mod limits;
mod mcp;
mod mistakes;
mod openapi;
mod pages;
mod resources;
mod runs;
mod system;
mod waiting;
