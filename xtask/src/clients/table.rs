//! What the steps came to.

use std::fmt::Write as _;

use anyhow::Result;
use serde_json::Value;

/// Characters of a failure that are shown; the rest is in the script's own output.
const SHOWN: usize = 300;

/// One line of a script.
#[derive(Debug, Clone)]
pub(super) struct Step {
    name: String,
    /// `None`: this client cannot.
    pub(super) ok: Option<bool>,
    detail: String,
}

impl Step {
    /// Clients print words of their own, too: what is not a step is passed over.
    pub(super) fn read(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let name = value.get("step")?.as_str()?.to_owned();
        let ok = match value.get("ok")? {
            Value::Null => None,
            value => Some(value.as_bool()?),
        };
        let detail = value.get("detail").and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(Self { name, ok, detail })
    }
}

/// One client over one transport.
pub(super) struct Row {
    name: String,
    steps: Vec<Step>,
}

impl Row {
    /// A step that was not told of has failed, and so has each when the script did not run.
    pub(super) fn new(client: &str, transport: &str, expected: &[&str], told: Result<Vec<Step>>) -> Self {
        let (told, why) = match told {
            Ok(steps) => (steps, "not told of".to_owned()),
            Err(error) => (Vec::new(), format!("{error:#}")),
        };
        let step = |name: &&str| {
            let mut found = told.iter().filter(|step| step.name == **name);
            match (found.next(), found.next()) {
                (Some(step), None) => step.clone(),
                (Some(_), Some(_)) => {
                    Step { name: (*name).to_owned(), ok: Some(false), detail: "told of twice".to_owned() }
                }
                (None, _) => Step { name: (*name).to_owned(), ok: Some(false), detail: why.clone() },
            }
        };
        Self { name: format!("{client} {transport}"), steps: expected.iter().map(step).collect() }
    }

    /// How far it came, in one line.
    pub(super) fn line(&self) -> String {
        let count = |ok| self.steps.iter().filter(|step| step.ok == ok).count();
        format!("{}: {} ok, {} cannot, {} failed", self.name, count(Some(true)), count(None), count(Some(false)))
    }

    pub(super) fn failures(&self) -> impl Iterator<Item = String> {
        let failed = self.steps.iter().filter(|step| step.ok == Some(false));
        failed.map(|step| {
            let detail: String = step.detail.chars().take(SHOWN).collect();
            let more = if detail.len() < step.detail.len() { "…" } else { "" };
            format!("{}, {}: {detail}{more}", self.name, step.name)
        })
    }
}

/// A row a client and transport, a column a step, and then why a client cannot do what it cannot.
pub(super) fn table(columns: &[&str], rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or_default();
    let mut out = format!("{:<width$}", "");
    for column in columns {
        let _ = write!(out, "  {column}");
    }
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for row in rows {
        let mut line = format!("{:<width$}", row.name);
        for column in columns {
            let step = row.steps.iter().find(|step| step.name == *column);
            let word = match step.map(|step| step.ok) {
                None => "",
                Some(None) => "–",
                Some(Some(true)) => "ok",
                Some(Some(false)) => "FAIL",
            };
            let _ = write!(line, "  {word:<0$}", column.len());
        }
        let _ = write!(out, "\n{}", line.trim_end());
        for step in row.steps.iter().filter(|step| step.ok.is_none()) {
            let why = format!("{}: {}", step.name, step.detail);
            match reasons.iter_mut().find(|(known, _)| *known == why) {
                Some((_, names)) => names.push(row.name.clone()),
                None => reasons.push((why, vec![row.name.clone()])),
            }
        }
    }
    for (why, names) in reasons {
        let _ = write!(out, "\n– {why} ({})", names.join(", "));
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(lines: &[&str]) -> Result<Vec<Step>> {
        Ok(lines.iter().filter_map(|line| Step::read(line)).collect())
    }

    #[test]
    fn every_step_is_in_the_table() {
        let steps = ["connect", "logs", "tasks"];
        let good = told(&[
            r#"{"step":"connect","ok":true,"detail":"8 tools"}"#,
            "words of a client",
            r#"{"step":"logs","ok":true}"#,
            r#"{"step":"tasks","ok":null,"detail":"it has none"}"#,
        ]);
        let bad = told(&[
            r#"{"step":"connect","ok":false,"detail":"refused"}"#,
            r#"{"step":"tasks","ok":true}"#,
            r#"{"step":"tasks","ok":true}"#,
        ]);
        let rows = [
            Row::new("a", "stdio", &steps, good),
            Row::new("b", "http", &steps, bad),
            Row::new("c", "http", &steps[..1], Err(anyhow::anyhow!("it hangs"))),
        ];
        let expected = "         connect  logs  tasks\n\
                        a stdio  ok       ok    –\n\
                        b http   FAIL     FAIL  FAIL\n\
                        c http   FAIL\n\
                        – tasks: it has none (a stdio)\n";
        assert_eq!(table(&steps, &rows), expected);
        assert_eq!(rows[0].line(), "a stdio: 2 ok, 1 cannot, 0 failed");
        let failures: Vec<_> = rows.iter().flat_map(Row::failures).collect();
        let expected = [
            "b http, connect: refused",
            "b http, logs: not told of",
            "b http, tasks: told of twice",
            "c http, connect: it hangs",
        ];
        assert_eq!(failures, expected);
    }
}
