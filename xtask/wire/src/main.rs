//! Makes the committed files of the wire contract from the code, and prints them as one JSON object: path → text.
//!
//! A program of its own, so that `cargo xtask` builds without the crates it looks after.

#![expect(clippy::print_stdout, reason = "the result")]

mod page;
mod table;

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, Result};
use serde_json::Value;
use taffrail_engine::playbook::playbook_schema;
use taffrail_mcp_core::{gap_schema, page_schema, record_schema, snapshot_schema};
use taffrail_transport::{http::openapi, mcp::tool_list};

fn main() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("the workspace is two folders up")?;
    let schemas: [(&str, Value); 6] = [
        ("gap", gap_schema()),
        ("page", page_schema()),
        ("playbook", playbook_schema()),
        ("record", record_schema()),
        ("snapshot", snapshot_schema()),
        // Not a schema, but the list of tools, whose arguments and results have one each.
        ("tools", tool_list()),
    ];
    let mut files = BTreeMap::new();
    for (name, schema) in &schemas {
        // Keys are sorted whatever the features of serde_json are.
        let mut schema = schema.clone();
        schema.sort_all_objects();
        files.insert(format!("docs/schema/{name}.json"), format!("{}\n", serde_json::to_string_pretty(&schema)?));
    }
    let mut described = openapi();
    described.sort_all_objects();
    files.insert("docs/openapi.json".to_owned(), format!("{}\n", serde_json::to_string_pretty(&described)?));
    files.insert("docs/wire.md".to_owned(), page::render(&page::samples(root)?)?);
    println!("{}", serde_json::to_string(&files)?);
    Ok(())
}
