//! The table of goals: what benches say about how ours compares with peers.

use serde_json::{Map, Value};

/// One comparison.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Goal {
    /// Which line of the list of goals it belongs to.
    row: u64,
    work: String,
    ours: String,
    peer: String,
    ratio: Option<f64>,
    must: f64,
    aim: f64,
    /// Whether less is better.
    at_most: bool,
}

/// What a line of a bench says about goals: nothing, or one comparison, or several.
///
/// A line takes part with the fields `row`, `work`, `ours`, `peer` and `ratio` (both absent when the peer is), `must`,
/// `aim`, and `sense` (`at least` or `at most`). The benches of crates that are older than this table print other fields
/// and are read by name.
pub(super) fn goals(line: &Map<String, Value>) -> Vec<Goal> {
    let number = |name: &str| line.get(name).and_then(Value::as_f64);
    let text = |name: &str| line.get(name).and_then(Value::as_str).unwrap_or_default();
    let bench = text("bench");
    if let (Some(row), Some(must), Some(aim)) = (line.get("row").and_then(Value::as_u64), number("must"), number("aim"))
    {
        let unit = text("unit");
        let show =
            |value: Option<f64>| value.map_or_else(|| "?".to_owned(), |value| format!("{} {unit}", short(value)));
        let peer = match number("peer") {
            None => "not here".to_owned(),
            some => format!("{} {}", show(some), text("peer_name")),
        };
        return vec![Goal {
            row,
            work: text("work").to_owned(),
            ours: show(number("ours")).trim_end().to_owned(),
            peer: peer.trim_end().to_owned(),
            ratio: number("ratio"),
            must,
            aim,
            at_most: text("sense") == "at most",
        }];
    }
    let known = |row, work: &str, ours: &str, peer: &str, ratio: &str, (must, aim): (f64, f64), at_most| Goal {
        row,
        work: work.to_owned(),
        ours: number(ours).map_or_else(|| "?".to_owned(), short),
        peer: number(peer).map_or_else(|| "not here".to_owned(), short),
        ratio: number(ratio),
        must,
        aim,
        at_most,
    };
    if bench.starts_with("sqlite append of") {
        vec![known(10, bench, "ours_per_s", "peer_per_s", "ratio", (1.5, 5.0), false)]
    } else if bench.starts_with("sqlite page of") {
        vec![known(10, bench, "ours_p50_us", "peer_p50_us", "ratio_p50", (1.3, 1.0), true)]
    } else if bench == "spool-write" {
        vec![
            known(12, "spool MB/s, s6-log", "file_mb_s", "s6_log_mb_s", "file_to_s6_log", (4.0, 8.0), false),
            known(12, "spool MB/s, cat > file", "file_mb_s", "cat_mb_s", "file_to_cat", (0.5, 0.8), false),
        ]
    } else {
        Vec::new()
    }
}

impl Goal {
    fn met(&self, goal: f64) -> Option<bool> {
        self.ratio.map(|ratio| if self.at_most { ratio <= goal } else { ratio >= goal })
    }

    pub(super) fn missed(&self) -> bool {
        self.met(self.must) == Some(false)
    }

    pub(super) fn name(&self) -> String {
        format!("row {}, {}", self.row, self.work)
    }

    fn verdict(&self) -> &'static str {
        match (self.met(self.must), self.met(self.aim)) {
            (Some(true), Some(true)) => "aim",
            (Some(true), _) => "must",
            (Some(false), _) => "MISSED",
            (None, _) => "not compared",
        }
    }
}

/// All of them, in the order of their rows.
pub(super) fn table(goals: &[Goal]) -> String {
    let mut goals: Vec<&Goal> = goals.iter().collect();
    goals.sort_by_key(|goal| goal.row);
    let mut rows = vec![["row", "work", "ours", "peer", "ratio", "must", "aim", "verdict"].map(str::to_owned)];
    for goal in goals {
        let sense = if goal.at_most { "≤" } else { "≥" };
        rows.push([
            goal.row.to_string(),
            goal.work.clone(),
            goal.ours.clone(),
            goal.peer.clone(),
            goal.ratio.map_or_else(|| "–".to_owned(), short),
            format!("{sense} {}", goal.must),
            format!("{sense} {}", goal.aim),
            goal.verdict().to_owned(),
        ]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; 8] = std::array::from_fn(width);
    let mut out = String::new();
    for (number, row) in rows.iter().enumerate() {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
        if number == 0 {
            let lines: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            out.push_str(&format!("| {} |\n", lines.join(" | ")));
        }
    }
    out
}

/// Three digits: `1.24M`, `531k`, `0.87`.
fn short(value: f64) -> String {
    let (value, unit) = match value.abs() {
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}{unit}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(line: &Value) -> Vec<Goal> {
        goals(line.as_object().unwrap())
    }

    #[test]
    fn a_table_in_the_order_of_rows() {
        let late =
            of(&json!({ "bench": "latency", "row": 4, "work": "p50", "unit": "µs", "ours": 120.0, "peer": 100.0,
            "peer_name": "Nchan", "ratio": 1.2, "must": 1.7, "aim": 1.2, "sense": "at most" }));
        let early = of(&json!({ "bench": "fanout", "row": 1, "work": "100", "unit": "/s", "ours": 1_240_000.0, "peer":
            531_000.0, "ratio": 2.34, "must": 2.5, "aim": 4.0, "sense": "at least" }));
        assert!(early[0].missed() && !late[0].missed());
        let table = table(&[late, early].concat());
        let cells: Vec<Vec<&str>> =
            table.lines().map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect();
        assert_eq!(cells[2], ["1", "100", "1.24M /s", "531k /s", "2.34", "≥ 2.5", "≥ 4", "MISSED"]);
        assert_eq!(cells[3], ["4", "p50", "120 µs", "100 µs Nchan", "1.20", "≤ 1.7", "≤ 1.2", "aim"]);
    }

    #[test]
    fn lines_of_crates_are_known_by_name() {
        let line = json!({ "bench": "sqlite page of 200, in a runtime", "peer_p50_us": 50.0, "ours_p50_us": 40.0, "ratio_p50": 0.8 });
        assert_eq!(of(&line)[0].verdict(), "aim");
        let line = json!({ "bench": "spool-write", "file_mb_s": 800, "cat_mb_s": 1300, "file_to_cat": 0.61 });
        let verdicts: Vec<_> = of(&line).iter().map(Goal::verdict).collect();
        assert_eq!(verdicts, ["not compared", "must"]);
        assert!(of(&json!({ "bench": "emit" })).is_empty());
    }
}
