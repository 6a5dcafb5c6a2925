//! `docs/wire.md`.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context as _, Result};
use serde_json::Value;
use taffrail_mcp_core::{
    Event, Id, MAX_LINE_BYTES, PREVIEW_CHARS, Policy, Reason, RunKind, Timestamp, WIRE_VERSION, gap_schema,
    page_schema, record_schema, snapshot_schema,
};
use taffrail_transport::mcp::{prompt_list, template_list, tool_list};

use crate::table::fields;

/// Where the snapshots of the wire shapes are: the page's examples are what the tests pin.
const SNAPSHOTS: &str = "crates/mcp-core/tests/it/snapshots";
const COMMON: [&str; 5] = ["seq", "thread", "run", "ts", "type"];

/// The pinned bytes by name: `state-done.signal`.
pub(crate) type Samples = BTreeMap<String, String>;

pub(crate) fn samples(root: &Path) -> Result<Samples> {
    let mut samples = Samples::new();
    for entry in fs::read_dir(root.join(SNAPSHOTS)).with_context(|| format!("reading {SNAPSHOTS}"))? {
        let path = entry?.path();
        if let (Some("snap"), Some(name)) = (path.extension().and_then(|e| e.to_str()), path.file_stem()) {
            let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
            // A header between lines of three dashes, then the value.
            let value = text.splitn(3, "---\n").nth(2).with_context(|| format!("{} has no header", path.display()))?;
            samples.insert(name.to_string_lossy().into_owned(), value.trim_end().to_owned());
        }
    }
    Ok(samples)
}

pub(crate) fn render(samples: &Samples) -> Result<String> {
    let record = record_schema();
    let mut out = include_str!("intro.md").to_owned();
    out.push_str(&format!(
        "\nThis is version {WIRE_VERSION} of the encoding.\n\n## Records\n\nCommon fields, first and in this order:\n\n"
    ));
    let log = samples.get("log").context("there is no snapshot of a line of output")?;
    out.push_str(&fields(&record, &[], log));
    out.push('\n');
    fence(&mut out, log);
    out.push_str("\nThe other examples leave the common fields out, but for `type`.\n");
    for kind in Event::KINDS {
        let alternatives = record["oneOf"].as_array().context("the record schema has no alternatives")?;
        let schema = alternatives.iter().find(|a| a["properties"]["type"]["const"] == *kind);
        let schema = schema.with_context(|| format!("the schema does not know {kind}"))?;
        section(&mut out, 3, kind, schema, &COMMON, samples)?;
    }
    out.push_str("\n### Usage\n\nThe `usage` of `run-finished` and of a snapshot:\n\n");
    let usage = &snapshot_schema()["properties"]["usage"];
    let example = samples.get("snapshot").context("there is no snapshot of a snapshot")?;
    out.push_str(&fields(usage, &[], example));
    out.push_str("\n### Types of later versions\n\nAre passed on unchanged, numbers beyond 64 bits included:\n\n");
    fence(&mut out, &without_head(samples.get("other").context("there is no snapshot of an unknown type")?));
    out.push_str("\n### Open words\n\nLater versions may write others.\n\n");
    let policies: Vec<_> = Policy::KNOWN.iter().map(Policy::as_str).collect();
    let reasons: Vec<_> = Reason::KNOWN.iter().map(Reason::as_str).collect();
    for (what, words) in
        [("`policy` of `state-done`", policies), ("`error` of `run-finished` and of a snapshot", reasons)]
    {
        out.push_str(&format!("- {what}: {}\n", words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(" ")));
    }

    section(&mut out, 2, "gap", &gap_schema(), &[], samples)?;
    section(&mut out, 2, "page-meta", &page_schema(), &[], samples)?;
    section(&mut out, 2, "snapshot", &snapshot_schema(), &[], samples)?;
    out.push_str("\nWhat it waits for (`approval`):\n\n");
    let waiting = samples.get("snapshot.suspended").context("there is no snapshot of a suspended run")?;
    out.push_str(&fields(pending(&snapshot_schema()["properties"]["approval"]), &[], waiting));
    tools(&mut out, &tool_list())?;
    resources(&mut out, &template_list())?;
    prompts(&mut out, &prompt_list())?;
    out.push_str(&limits());
    Ok(out)
}

/// The MCP tools and their arguments. What they answer is in `tools.json`.
fn tools(out: &mut String, tools: &Value) -> Result<()> {
    out.push_str("\n## MCP tools\n\nWith the schemas of their results: [tools](schema/tools.json).\n");
    for tool in tools.as_array().context("the list of tools is no list")? {
        let name = tool["name"].as_str().context("a tool has no name")?;
        let description = tool["description"].as_str().unwrap_or_default();
        out.push_str(&format!("\n### `{name}`\n\n{description}\n\n"));
        // What is required comes first.
        let required = tool["inputSchema"]["required"].as_array().into_iter().flatten();
        let first: String = required.map(|name| format!("{name}:")).collect();
        out.push_str(&fields(&tool["inputSchema"], &[], &first));
    }
    Ok(())
}

/// The MCP resources.
fn resources(out: &mut String, templates: &Value) -> Result<()> {
    out.push_str("\n## MCP resources\n\n| URI | type | what it holds |\n| --- | --- | --- |\n");
    for template in templates.as_array().context("the list of templates is no list")? {
        let text = |key: &str| template[key].as_str().context("a template lacks something");
        let (uri, form, description) = (text("uriTemplate")?, text("mimeType")?, text("description")?);
        out.push_str(&format!("| `{uri}` | {form} | {description} |\n"));
    }
    out.push_str(RESOURCES);
    Ok(())
}

/// What lists and templates do not say.
const RESOURCES: &str = "
`resources/list` gives the recent runs, newest first, a page at a time. `notifications/resources/updated` says that a run entered a
state, was suspended, went on or ended: to those who listen (`subscriptions/listen`, which sends one at once for each run, so that
nothing is missed between reading and listening) and, in revisions before it, to sessions that subscribed (`resources/subscribe`,
not over HTTP, where there are none). Changes that come faster than they are taken are told as one; the last one always is.
`completion/complete` completes ids of runs and names of playbooks.
";

/// The MCP prompts and their arguments.
fn prompts(out: &mut String, prompts: &Value) -> Result<()> {
    out.push_str("\n## MCP prompts\n\nEach is one message that holds what it is about.\n");
    for prompt in prompts.as_array().context("the list of prompts is no list")? {
        let name = prompt["name"].as_str().context("a prompt has no name")?;
        let description = prompt["description"].as_str().unwrap_or_default();
        out.push_str(&format!("\n### `{name}`\n\n{description}\n\n| argument | meaning |\n| --- | --- |\n"));
        for argument in prompt["arguments"].as_array().into_iter().flatten() {
            let name = argument["name"].as_str().context("an argument has no name")?;
            let description = argument["description"].as_str().unwrap_or_default();
            let optional = if argument["required"] == true { "" } else { "?" };
            out.push_str(&format!("| `{name}`{optional} | {description} |\n"));
        }
    }
    Ok(())
}

/// The object inside "this or null".
fn pending(schema: &Value) -> &Value {
    let alternatives = schema["anyOf"].as_array();
    alternatives.and_then(|all| all.iter().find(|a| a["properties"].is_object())).unwrap_or(schema)
}

fn section(out: &mut String, level: usize, name: &str, schema: &Value, skip: &[&str], samples: &Samples) -> Result<()> {
    let title = match name {
        "page-meta" => "Page".to_owned(),
        "gap" | "snapshot" => format!("{}{}", name[..1].to_uppercase(), &name[1..]),
        kind => format!("`{kind}`"),
    };
    let description = schema["description"].as_str().unwrap_or_default();
    out.push_str(&format!("\n{} {title}\n\n{description}\n\n", "#".repeat(level)));
    let variants = samples.iter().filter(|(of, _)| of.split('.').next() == Some(name));
    let examples: Vec<_> = variants.map(|(_, example)| example.as_str()).collect();
    anyhow::ensure!(!examples.is_empty(), "there is no snapshot of {name}");
    out.push_str(&fields(schema, skip, &examples.join("\n")));
    out.push('\n');
    // Records are lines and share a fence.
    let between = if examples.iter().any(|example| example.contains('\n')) { "\n```\n\n```json\n" } else { "\n" };
    fence(out, &examples.iter().map(|example| without_head(example)).collect::<Vec<_>>().join(between));
    Ok(())
}

/// An example without what stands before its `type`.
fn without_head(record: &str) -> String {
    match record.split_once(",\"type\":") {
        Some((head, body)) if head.starts_with("{\"seq\":") => format!("{{\"type\":{body}"),
        _ => record.to_owned(),
    }
}

fn fence(out: &mut String, json: &str) {
    out.push_str(&format!("```json\n{json}\n```\n"));
}

fn limits() -> String {
    format!(
        "
## Limits

| what | limit |
| --- | --- |
| an id of a run or thread | 1 to {} letters, digits, `.`, `_`, `-`; begins with a letter or digit |
| one piece of a line of output | {} KiB, its newline not counted; longer lines are split |
| the preview in `state-done` | {PREVIEW_CHARS} characters |
| a time | {} characters, from 1970 to 9999 |
",
        Id::<RunKind>::MAX,
        MAX_LINE_BYTES / 1024,
        Timestamp::TEXT_LEN,
    )
}
