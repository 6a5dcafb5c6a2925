//! Figures as JSON lines.

use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};

static MISSED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A figure that must be at least this.
pub(crate) fn at_least(what: &str, value: f64, goal: f64) {
    require(what, value >= goal, format!("{} is less than {goal}", round(value)));
}

/// A figure that must be less than this.
pub(crate) fn below(what: &str, value: f64, goal: f64) {
    require(what, value < goal, format!("{} is not below {goal}", round(value)));
}

fn require(what: &str, met: bool, how: String) {
    if !met {
        MISSED.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{what}: {how}"));
    }
}

/// The goals that were not met so far.
pub(crate) fn missed() -> Vec<String> {
    MISSED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Prints one figure.
pub(crate) fn figure(bench: &str, fields: &[(&str, Value)]) {
    let mut line = Map::new();
    line.insert("bench".into(), bench.into());
    line.extend(fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    println!("{}", Value::Object(line));
}

/// What a ratio has to be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal {
    /// More is better: a must and an aim.
    AtLeast(f64, f64),
    /// Less is better.
    AtMost(f64, f64),
}

impl Goal {
    fn numbers(self) -> (f64, f64) {
        match self {
            Self::AtLeast(must, aim) | Self::AtMost(must, aim) => (must, aim),
        }
    }

    fn met(self, ratio: f64, goal: f64) -> bool {
        match self {
            Self::AtLeast(..) => ratio >= goal,
            Self::AtMost(..) => ratio <= goal,
        }
    }

    /// `aim`, `must` or `missed`.
    pub(crate) fn verdict(self, ratio: f64) -> &'static str {
        let (must, aim) = self.numbers();
        match (self.met(ratio, must), self.met(ratio, aim)) {
            (true, true) => "aim",
            (true, false) => "must",
            _ => "missed",
        }
    }
}

/// A line of the table of goals, as rounds that alternated between a peer and ours.
#[derive(Debug)]
pub(crate) struct Comparison {
    row: Option<u8>,
    work: String,
    unit: &'static str,
    peer: &'static str,
    goal: Goal,
    ours: Vec<f64>,
    peers: Vec<f64>,
    ratios: Vec<f64>,
}

impl Comparison {
    /// One of a row of that table, or of none.
    pub(crate) fn new(
        row: impl Into<Option<u8>>,
        work: impl Into<String>,
        unit: &'static str,
        peer: &'static str,
        goal: Goal,
    ) -> Self {
        let (row, work) = (row.into(), work.into());
        Self { row, work, unit, peer, goal, ours: Vec::new(), peers: Vec::new(), ratios: Vec::new() }
    }

    /// One round; a peer that is not there has no figure.
    pub(crate) fn round(&mut self, ours: f64, peer: Option<f64>) {
        self.ours.push(ours);
        if let Some(peer) = peer {
            self.peers.push(peer);
            self.ratios.push(ours / peer);
        }
    }

    /// Prints the medians, and keeps whether the goal was missed.
    pub(crate) fn print(mut self, bench: &str, more: &[(&str, Value)]) {
        let (must, aim) = self.goal.numbers();
        let sense = if matches!(self.goal, Goal::AtLeast(..)) { "at least" } else { "at most" };
        let mut fields: Vec<(&str, Value)> = self.row.map(|row| ("row", row.into())).into_iter().collect();
        fields.extend([
            ("work", self.work.clone().into()),
            ("unit", self.unit.into()),
            ("ours", round(median(&mut self.ours)).into()),
        ]);
        let rounded = |values: &[f64]| json!(values.iter().copied().map(round).collect::<Vec<_>>());
        if self.ratios.is_empty() {
            fields.push(("verdict", "not compared".into()));
        } else {
            let ratio = median(&mut self.ratios);
            require(
                &match self.row {
                    Some(row) => format!("row {row}, {}", self.work),
                    None => self.work.clone(),
                },
                self.goal.met(ratio, must),
                format!("ratio {} to {} is not {sense} {must}", round(ratio), self.peer),
            );
            fields.extend([
                ("peer", round(median(&mut self.peers)).into()),
                ("peer_name", self.peer.into()),
                ("ratio", round(ratio).into()),
                ("ratios", rounded(&self.ratios)),
                ("verdict", self.goal.verdict(ratio).into()),
            ]);
        }
        fields.extend([("sense", sense.into()), ("must", must.into()), ("aim", aim.into())]);
        fields.extend(more.iter().cloned());
        figure(bench, &fields);
    }
}

/// The middle value.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The value that `share` of all are below or at.
pub(crate) fn percentile(sorted: &[f64], share: f64) -> f64 {
    let at = ((sorted.len() as f64 * share).ceil() as usize).clamp(1, sorted.len().max(1)) - 1;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

/// Rounded to three significant digits, for lines that people read.
pub(crate) fn round(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10f64.powi(2 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::Goal;

    #[test]
    fn verdicts() {
        for (ratio, more, less) in [(0.5, "missed", "aim"), (1.5, "must", "must"), (3.0, "aim", "missed")] {
            assert_eq!(Goal::AtLeast(1.0, 2.0).verdict(ratio), more);
            assert_eq!(Goal::AtMost(2.0, 1.0).verdict(ratio), less);
        }
    }
}
