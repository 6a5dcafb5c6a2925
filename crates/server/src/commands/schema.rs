//! `taffrail schema`.

use std::io::{self, Write};

use anyhow::Result;

use crate::{
    cli::{self, SchemaOf},
    exit,
};

/// Prints a schema, indented.
pub(crate) fn schema(args: cli::Schema) -> Result<u8> {
    let schema = match args.of {
        SchemaOf::Playbook => taffrail_engine::playbook::playbook_schema(),
        SchemaOf::Record => taffrail_mcp_core::record_schema(),
        SchemaOf::Snapshot => taffrail_mcp_core::snapshot_schema(),
        SchemaOf::Gap => taffrail_mcp_core::gap_schema(),
    };
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &schema)?;
    writeln!(out)?;
    Ok(exit::DONE)
}
