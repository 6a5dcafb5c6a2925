//! The list of expected failures.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// A check that does not succeed, and why that is right.
#[derive(Debug, Clone)]
pub(super) struct Expected {
    /// Parts of the run that it is about: revisions, or `tasks`.
    pub(super) legs: Vec<String>,
    pub(super) scenario: String,
    /// The check's id.
    pub(super) check: String,
    /// What the suite calls it: `FAILURE`, `WARNING`, `SKIPPED`, `INFO`.
    pub(super) status: String,
    /// A part of what the suite says: the same check may fail for another reason, too.
    pub(super) says: String,
}

const FIELDS: [&str; 6] = ["legs", "scenario", "check", "status", "says", "reason"];

pub(super) fn read(path: &Path) -> Result<Vec<Expected>> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    parse(&text).with_context(|| format!("reading {}", path.display()))
}

fn parse(text: &str) -> Result<Vec<Expected>> {
    let list: Vec<Value> = serde_json::from_str(text)?;
    list.iter().map(entry).collect()
}

fn entry(value: &Value) -> Result<Expected> {
    let object = value.as_object().with_context(|| format!("not an object: {value}"))?;
    if let Some(unknown) = object.keys().find(|key| !FIELDS.contains(&key.as_str())) {
        anyhow::bail!("`{unknown}` is not a field of an expected failure: {value}");
    }
    let text = |name: &str| value[name].as_str().with_context(|| format!("`{name}` is missing in {value}"));
    ensure!(!text("reason")?.trim().is_empty(), "without a reason: {value}");
    let legs = value["legs"].as_array().with_context(|| format!("`legs` is missing in {value}"))?;
    let legs: Vec<_> = legs.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    ensure!(!legs.is_empty(), "about no part of the run: {value}");
    Ok(Expected {
        legs,
        scenario: text("scenario")?.to_owned(),
        check: text("check")?.to_owned(),
        status: text("status")?.to_owned(),
        says: text("says")?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_a_reason_and_nothing_unknown() {
        let entry = |reason: &str, more: &str| {
            format!(
                r#"[{{"legs":["tasks"],"scenario":"s","check":"c","status":"FAILURE","says":"","reason":"{reason}"{more}}}]"#
            )
        };
        assert_eq!(parse(&entry("because", "")).unwrap()[0].legs, ["tasks"]);
        assert!(parse(&entry(" ", "")).is_err());
        assert!(parse(&entry("because", r#","typo":1"#)).is_err());
        assert!(parse(r#"[{"reason":"because"}]"#).is_err());
    }

    #[test]
    fn the_list_can_be_read() {
        read(&crate::shell::root().join("conformance/expected.json")).unwrap();
    }
}
