//! How a run ended, or what it waits for, in a few lines; and the same as `taffrail status` tells it.

use serde_json::Value;
use taffrail_mcp_core::{Approver, Decision, RunId, RunStatus, Snapshot, Timestamp};

use super::{
    hint::{hint, shell_word},
    style::{Line, Style},
    text, words,
};

/// Where the values of fields begin.
const VALUES: usize = 14;

/// The lines at the end of a run.
pub(super) fn lines(run: &Snapshot) -> Vec<Line> {
    let (style, sign) = words::run_sign(run.status);
    let mut head = Line::of(style, sign).with(Style::Plain, " ").with(Style::Bold, text::head(&run.playbook, 200));
    head.push(Style::Plain, " ");
    head.push(style, run.status.as_str());
    if let Some(at) = run.at.as_ref().or(run.state.as_ref()).filter(|_| run.status != RunStatus::Done) {
        head.push(Style::Plain, &format!(" at {}", text::head(at, 200)));
    }
    let after = if run.status == RunStatus::Done { "in" } else { "after" };
    head.push(Style::Plain, &format!(" {after} {}", words::duration(run.elapsed_ms)));
    if run.usage.log_lines > 0 {
        head.column(Style::Dim, &words::count(run.usage.log_lines, "line"));
    }
    let mut lines = vec![head];
    lines.extend(error(run));
    lines.extend(clipped(run));
    lines.extend(asked(run));
    lines.extend(go_on(run));
    lines.push(field("run", run.run.as_str()));
    if let Some(spool) = &run.spool {
        lines.push(field("log", spool));
    }
    lines
}

/// All that is known about a run.
pub(super) fn status(run: &Snapshot, now: Timestamp) -> Vec<Line> {
    let (style, sign) = words::run_sign(run.status);
    let mut lines = vec![
        Line::of(style, sign)
            .with(Style::Plain, " ")
            .with(Style::Bold, text::head(&run.playbook, 200))
            .with(Style::Plain, " ")
            .with(style, run.status.as_str()),
        field("run", run.run.as_str()),
    ];
    if run.thread.as_str() != run.run.as_str() {
        lines.push(field("thread", run.thread.as_str()));
    }
    lines.push(field("started", &format!("{} ({})", run.started_at, words::ago(run.started_at, now))));
    lines.push(field("elapsed", &words::duration(run.elapsed_ms)));
    if let Some(state) = run.at.as_ref().or(run.state.as_ref()) {
        lines.push(field("state", &format!("{} (step {})", text::head(state, 200), run.step)));
    }
    lines.extend(error(run));
    lines.push(field(
        "output",
        &format!("{}, {}", words::count(run.usage.log_lines, "line"), words::bytes(run.usage.log_bytes)),
    ));
    lines.extend(clipped(run));
    if let Some(checkpoint) = &run.checkpoint {
        lines.push(field("checkpoint", checkpoint));
    }
    if let Some(spool) = &run.spool {
        lines.push(field("log", spool));
    }
    lines.extend(asked(run));
    lines.extend(go_on(run));
    lines
}

/// The commands that decide or answer, and what an answer is made of.
pub(super) fn how_to_decide(run: &RunId, schema: Option<&Value>) -> Vec<String> {
    let approve = format!("{} approve {run}", hint());
    let Some(schema) = schema else {
        return vec![format!("approve:    {approve}"), format!("reject:     {approve} --reject")];
    };
    let properties = properties(schema);
    let given: String = match properties.is_empty() {
        true => " -i KEY=VALUE".to_owned(),
        false => properties
            .iter()
            .filter(|property| property.required || !properties.iter().any(|other| other.required))
            .map(|property| format!(" -i {}=VALUE", shell_word(property.name)))
            .collect(),
    };
    let mut lines = vec![format!("answer:     {approve}{given}")];
    lines.extend(properties.iter().map(Property::said));
    lines.push(format!("reject:     {approve} --reject"));
    lines
}

struct Property<'a> {
    name: &'a str,
    schema: &'a Value,
    required: bool,
}

impl Property<'_> {
    /// `region    eu or us, required`.
    fn said(&self) -> String {
        let words = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let what = match (self.schema.get("enum").and_then(Value::as_array), self.schema.get("type")) {
            (Some(options), _) => options.iter().map(words).collect::<Vec<_>>().join(" | "),
            (None, Some(kind)) => words(kind),
            (None, None) => "any value".to_owned(),
        };
        let required = if self.required { ", required" } else { "" };
        let about = self.schema.get("description").and_then(Value::as_str).map(|text| format!(" - {text}"));
        format!("  {}: {}{required}{}", self.name, text::head(&what, 400), about.unwrap_or_default())
    }
}

fn properties(schema: &Value) -> Vec<Property<'_>> {
    let required = schema.get("required").and_then(Value::as_array);
    let required = |name: &str| required.is_some_and(|names| names.iter().any(|n| n.as_str() == Some(name)));
    let all = schema.get("properties").and_then(Value::as_object);
    all.into_iter().flatten().map(|(name, schema)| Property { name, schema, required: required(name) }).collect()
}

fn error(run: &Snapshot) -> Vec<Line> {
    let Some(error) = &run.error else { return Vec::new() };
    // `cancelled` needs no reason but itself.
    if run.detail.is_none() && error.as_str() == run.status.as_str() {
        return Vec::new();
    }
    let mut detail = run.detail.as_deref().map(|detail| text::head(detail, 4096).lines()).into_iter().flatten();
    let mut said = text::head(error.as_str(), 200).to_owned();
    if let Some(first) = detail.next() {
        said.push_str(&format!(": {first}"));
    }
    let more = |line: &str| Line::of(Style::Plain, &" ".repeat(VALUES)).with(Style::Plain, line);
    std::iter::once(field("error", &said)).chain(detail.map(more)).collect()
}

fn clipped(run: &Snapshot) -> Option<Line> {
    let usage = &run.usage;
    let said = format!(
        "{} ({}) of output not kept",
        words::count(usage.clipped_lines, "line"),
        words::bytes(usage.clipped_bytes)
    );
    (usage.clipped_lines > 0 || usage.clipped_bytes > 0)
        .then(|| Line::of(Style::Plain, "  ").with(Style::Yellow, &said))
}

fn asked(run: &Snapshot) -> Vec<Line> {
    let Some(asks) = run.approval.as_ref().filter(|_| run.status == RunStatus::Suspended) else { return Vec::new() };
    let margin = || Line::of(Style::Plain, "  ");
    let mut lines: Vec<Line> =
        text::head(&asks.message, 4096).lines().map(|line| margin().with(Style::Bold, line)).collect();
    match asks.decision {
        Some(decision) => {
            let decided = match decision {
                Decision::Approve => "approved",
                Decision::Reject => "rejected",
            };
            lines.push(field(decided, &format!("go on with {} resume {}", hint(), run.run)));
        }
        None => {
            lines.extend(
                how_to_decide(&run.run, asks.schema.as_ref()).iter().map(|how| margin().with(Style::Plain, how)),
            );
            if asks.by == Approver::Agent {
                lines.push(margin().with(Style::Dim, "An agent may decide this too."));
            }
        }
    }
    lines
}

fn go_on(run: &Snapshot) -> Option<Line> {
    match run.status {
        // Without a checkpoint, as of a run that lives elsewhere, there is nothing to go on from.
        RunStatus::Interrupted if run.checkpoint.is_some() => {
            Some(field("go on", &format!("{} resume {}", hint(), run.run)))
        }
        RunStatus::Suspended if run.approval.is_none() => {
            Some(field("go on", &format!("{} resume {}", hint(), run.run)))
        }
        RunStatus::Running => Some(field("follow", &format!("{} logs {} -f", hint(), run.run))),
        _ => None,
    }
}

fn field(name: &str, value: &str) -> Line {
    let mut line =
        Line::of(Style::Plain, "  ").with(if name == "error" { Style::Red } else { Style::Dim }, &format!("{name}:"));
    line.pad(VALUES);
    line.push(Style::Plain, value);
    line
}
