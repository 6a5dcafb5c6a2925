//! Figures as JSON lines.

use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value};

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
